package broker

import (
	"curfew/broker/access"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/store"
)

// Rights are what a user may do in a virtual host. They remember what they have
// allowed until users or permissions change, so that asking again costs neither a
// match nor an allocation. For one goroutine.
type Rights struct {
	b    *Broker
	user string
	*catalog.Rights
	putter *store.Putter   // of all publishers with these rights: they belong to one goroutine
	Pacing delivery.Pacing // of the same publishers, to be read only
	turn   turn            // likewise
	own    bool            // they are the broker's
}

// RightsOf returns the rights of a user in a virtual host; neither needs to exist.
func (b *Broker) RightsOf(user, vhost string) *Rights {
	return &Rights{b: b, user: user, Rights: catalog.RightsOf(b.Accounts, user, vhost)}
}

// Topic refuses an operation by a routing key on an exchange with 403 where it is
// a topic exchange and topic permissions forbid it.
func (r *Rights) Topic(op access.Operation, vh *VHost, name, key []byte) error {
	if !r.RestrictsTopics(name) || vh.Exchanges.KindOf(name) != "topic" {
		return nil
	}
	return r.Rights.Topic(op, name, key)
}

// Pace sets whether the caller will call Pacing.AwaitLetters and AwaitConsumers after publishes with these rights; at
// first it does not. A caller that stops need not wait for earlier publishes.
func (r *Rights) Pace(on bool) {
	if r.Pacing.On = on; !on {
		r.Pacing = delivery.Pacing{}
	}
}

// AwaitConsumers makes the publisher wait until the consumers of the queues it has published
// to have given it credit (internal/delivery, flow): for half a second at most, or until done is
// closed. No lock may be held.
func (r *Rights) AwaitConsumers(done <-chan struct{}) {
	p := &r.Pacing
	if len(p.Crowded) > 0 {
		p.Await(done)
	}
	p.Crowded = nil
}
