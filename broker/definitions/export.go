package definitions

import (
	"maps"
	"slices"
	"strings"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/policy"
)

// Version is who writes a document, and which version of RabbitMQ it says to be.
type Version struct{ RabbitMQ, Product, ProductVersion string }

// Export writes down all there is.
func Export(b *broker.Broker, v Version) *Document {
	d := &Document{
		RabbitVersion: v.RabbitMQ, RabbitMQVersion: v.RabbitMQ, ProductName: v.Product, ProductVersion: v.ProductVersion,
		Permissions: b.Permissions(), TopicPermissions: append([]access.TopicPermission{}, b.TopicPermissions()...), GlobalParameters: []GlobalParameter{},
	}
	for _, u := range b.Users() {
		if u.Limits == nil {
			u.Limits = access.Limits{} // RabbitMQ takes no null
		}
		d.Users = append(d.Users, User{Name: u.Name, PasswordHash: append([]byte{}, u.PasswordHash...), Algorithm: u.Algorithm, Tags: u.Tags, Limits: u.Limits})
	}
	global := b.GlobalParameters()
	for _, name := range slices.Sorted(maps.Keys(global)) {
		if strings.HasPrefix(name, "internal") { // of this broker alone, as in RabbitMQ
			continue
		}
		d.GlobalParameters = append(d.GlobalParameters, GlobalParameter{name, global[name]})
	}
	d.empty()
	for _, vh := range b.VHosts() {
		about := vh.Metadata()
		d.VHosts = append(d.VHosts, VHost{Name: vh.Name(), Metadata: vhostMetadata{about.Description, about.Tags, about.DefaultQueueType, about.Protected}})
		d.add(vh, vh.Name())
	}
	return d
}

// ExportVHost writes down what one virtual host holds.
func ExportVHost(vh *broker.VHost, v Version) *Document {
	d := &Document{RabbitVersion: v.RabbitMQ}
	d.empty()
	d.add(vh, "")
	return d
}

// empty has the lists written even if nothing is in them.
func (d *Document) empty() {
	d.Parameters, d.Policies = []Parameter{}, []Policy{}
	d.Queues, d.Exchanges, d.Bindings = []Queue{}, []Exchange{}, []Binding{}
}

// add writes down a virtual host's own; label names it in exchanges, queues and
// bindings.
func (d *Document) add(vh *broker.VHost, label string) {
	d.Parameters = append(d.Parameters, vh.Parameters()...)
	for _, p := range vh.Policies(policy.User) {
		d.Policies = append(d.Policies, makePolicy(vh.Name(), &p))
	}
	for _, x := range vh.Exchanges() {
		if !predeclared(x.Name) {
			d.Exchanges = append(d.Exchanges, Exchange{x.Name, label, x.Kind, x.Durable, x.AutoDelete, x.Internal, Arguments(x.Args)})
		}
	}
	owned := map[string]bool{}
	for _, q := range vh.Queues() {
		i := q.Info()
		if owned[i.Name] = i.Exclusive; !i.Exclusive && !broker.IsSubqueue(i.Name) { // its queue makes it
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

// predeclared says whether every virtual host has it already, or may not have it.
func predeclared(name string) bool { return name == "" || strings.HasPrefix(name, "amq.") }
