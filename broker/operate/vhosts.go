package operate

import (
	"context"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
)

// VHostMetadata is the metadata of a virtual host.
type VHostMetadata = broker.VHostMetadata

// VHost is a virtual host with what is in it.
type VHost struct {
	Name string
	VHostMetadata
	Limits         access.Limits // must not be changed
	Queues         int
	Ready, Unacked int // messages, as they were within the last second
	DeadLetters    int // that no queue has taken yet; counted only by VHost
}

// ListVHosts lists the virtual hosts that the actor may look into, by name.
func (o *Operations) ListVHosts(ctx context.Context, a Actor) ([]VHost, error) {
	queues, err := o.ListQueues(ctx, a)
	if err != nil {
		return nil, err
	}
	var list []VHost
	at := map[string]int{}
	for _, vh := range o.VHosts(a) {
		at[vh.Name()] = len(list)
		list = append(list, VHost{Name: vh.Name(), VHostMetadata: vh.Metadata(), Limits: vh.Limits()})
	}
	for _, q := range queues {
		if i, ok := at[q.VHost]; ok { // otherwise it has been deleted since
			list[i].Queues, list[i].Ready, list[i].Unacked = list[i].Queues+1, list[i].Ready+q.Ready, list[i].Unacked+q.Unacked
		}
	}
	return list, nil
}

// VHost returns one virtual host. Error: ErrNoVHost among others.
func (o *Operations) VHost(ctx context.Context, a Actor, name string) (VHost, error) {
	list, err := o.ListVHosts(ctx, a)
	for i := range list {
		vh := &list[i]
		if vh.Name != name {
			continue
		}
		if found, ok := o.Broker.VHost(name); ok {
			for _, q := range found.Queues.List() {
				vh.DeadLetters += q.Retained.Count()
			}
		}
		return *vh, nil
	}
	if err == nil {
		err = ErrNoVHost
	}
	return VHost{}, err
}

// MakeVHost makes a virtual host, or changes the metadata of one.
func (o Topology) MakeVHost(_ context.Context, a Actor, name string, about broker.VHostMetadata) (created bool, err error) {
	if err = o.permit(&a, ChangeVHosts, ""); err == nil {
		_, created, err = o.Broker.PutVHostAs(a.Name, name, about)
	}
	o.Record(a, ChangeVHosts, QueueName{VHost: name}, err)
	return created, err
}

// DeleteVHost deletes a virtual host with all that is in it. Errors: ErrNoVHost, broker.ErrProtected among others.
func (o Topology) DeleteVHost(_ context.Context, a Actor, name string) error {
	_, err := o.vhost(&a, DeleteVHost, name)
	if err == nil {
		err = o.Broker.DeleteVHost(name)
	}
	o.Record(a, DeleteVHost, QueueName{VHost: name}, err)
	return err
}

// ProtectVHost protects a virtual host from deletion, or lifts that protection.
func (o Topology) ProtectVHost(_ context.Context, a Actor, name string, protected bool) error {
	vh, err := o.vhost(&a, ChangeVHosts, name)
	if err == nil {
		err = vh.SetProtected(protected)
	}
	o.Record(a, ChangeVHosts, QueueName{VHost: name}, err, zap.Bool("protected", protected))
	return err
}

// SetVHostLimits sets all limits of a virtual host.
func (o Topology) SetVHostLimits(_ context.Context, a Actor, vhost string, l access.Limits) error {
	vh, err := o.vhost(&a, ChangeVHosts, vhost)
	if err == nil {
		err = vh.SetLimits(l)
	}
	o.Record(a, ChangeVHosts, QueueName{VHost: vhost}, err, zap.Any("limits", l))
	return err
}
