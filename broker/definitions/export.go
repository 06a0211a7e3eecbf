package definitions

import (
	"maps"
	"slices"
	"strings"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/policy"
)

// Version names the product that writes a document, and the RabbitMQ version it claims to
// be.
type Version struct{ RabbitMQ, Product, ProductVersion string }

// Export returns all definitions of the broker.
func Export(b *broker.Broker, v Version) *Document {
	d := &Document{
		RabbitVersion: v.RabbitMQ, RabbitMQVersion: v.RabbitMQ, ProductName: v.Product, ProductVersion: v.ProductVersion,
		Permissions: b.Accounts.Permissions(), TopicPermissions: append([]access.TopicPermission{}, b.Accounts.TopicPermissions()...), GlobalParameters: []GlobalParameter{},
	}
	for _, u := range b.Accounts.Users() {
		if u.Limits == nil {
			u.Limits = access.Limits{} // RabbitMQ does not accept null
		}
		d.Users = append(d.Users, User{Name: u.Name, PasswordHash: append([]byte{}, u.PasswordHash...), Algorithm: u.Algorithm, Tags: u.Tags, Limits: u.Limits})
	}
	global := b.GlobalParameters()
	for _, name := range slices.Sorted(maps.Keys(global)) {
		if !strings.HasPrefix(name, "internal") { // those belong to this broker only, as in RabbitMQ
			d.GlobalParameters = append(d.GlobalParameters, GlobalParameter{name, global[name]})
		}
	}
	d.makeLists()
	for _, vh := range b.VHosts() {
		about := vh.Metadata()
		d.VHosts = append(d.VHosts, VHost{Name: vh.Name(), Metadata: vhostMetadata{about.Description, about.Tags, about.DefaultQueueType, about.Protected}})
		d.add(vh, vh.Name())
	}
	return d
}

// ExportVHost returns the definitions of one virtual host.
func ExportVHost(vh *broker.VHost, v Version) *Document {
	d := &Document{RabbitVersion: v.RabbitMQ}
	d.makeLists()
	d.add(vh, "")
	return d
}

// makeLists makes every list non-nil, so that empty lists are written as [].
func (d *Document) makeLists() {
	d.Parameters, d.Policies = []Parameter{}, []Policy{}
	d.Queues, d.Exchanges, d.Bindings = []Queue{}, []Exchange{}, []Binding{}
}

// add adds the objects of a virtual host. label is the name of the virtual host in
// exchanges, queues and bindings.
func (d *Document) add(vh *broker.VHost, label string) {
	d.Parameters = append(d.Parameters, vh.Parameters()...)
	for _, p := range vh.Policies.List(policy.User) {
		d.Policies = append(d.Policies, makePolicy(vh.Name(), &p))
	}
	for _, x := range vh.Exchanges.List() {
		if !predeclared(x.Name) {
			d.Exchanges = append(d.Exchanges, Exchange{x.Name, label, x.Kind, x.Durable, x.AutoDelete, x.Internal, Arguments(x.Args)})
		}
	}
	owned := map[string]bool{}
	for _, q := range vh.Queues.List() {
		i := q.Info()
		if owned[i.Name] = i.Exclusive; !i.Exclusive && !policy.IsSubqueue(i.Name) { // its queue declares it
			d.Queues = append(d.Queues, Queue{i.Name, label, i.Durable, i.AutoDelete, Arguments(i.Args)})
		}
	}
	for _, x := range vh.Bindings() {
		if x.Source == "" || !x.ToExchange && owned[x.Destination] {
			continue
		}
		to := "queue"
		if x.ToExchange {
			to = "exchange"
		}
		d.Bindings = append(d.Bindings, Binding{x.Source, label, x.Destination, to, x.RoutingKey, Arguments(x.Args)})
	}
}

// predeclared reports whether every virtual host has the exchange anyway, or must not have
// it.
func predeclared(name string) bool { return name == "" || strings.HasPrefix(name, "amq.") }
