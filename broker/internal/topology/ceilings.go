package topology

import (
	"cmp"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// Ceilings bound how much clients can declare in a virtual host. Its own max-queues may be
// lower. Zero fields are the defaults.
type Ceilings struct {
	Queues    int // of a virtual host; default 50,000
	Exchanges int // of a virtual host; default 10,000
	Bindings  int // of an exchange; default 200,000
	Policies  int // of a virtual host, and as many operator policies; default 1,000
}

func (c *Ceilings) setDefaults() {
	c.Queues = cmp.Or(c.Queues, 50_000)
	c.Exchanges = cmp.Or(c.Exchanges, 10_000)
	c.Bindings = cmp.Or(c.Bindings, 200_000)
	c.Policies = cmp.Or(c.Policies, 1000)
}

// checkQueueLimitLocked refuses one more queue than the virtual host may have.
func (t *Queues) checkQueueLimitLocked(name string) error {
	most := t.vh.registry.ceilings.Queues
	if own, ok := t.vh.limits.Of(access.MaxQueues); ok {
		most = min(most, own)
	}
	if len(t.queues)+t.coming < most || t.vh.registry.restoring() || name == policy.UndeliverableQueue { // or a dead letter would be lost
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot declare queue '%s': queue limit in vhost '%s' (%d) is reached", name, t.vh.guard.name, most)
}

// checkExchangeLimitLocked refuses one more exchange than the virtual host may have.
func (t *Exchanges) checkExchangeLimitLocked(name string) error {
	most := t.vh.registry.ceilings.Exchanges
	if len(t.exchanges)-len(predeclared) < most || t.vh.registry.restoring() {
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot declare exchange '%s': exchange limit in vhost '%s' (%d) is reached", name, t.vh.guard.name, most)
}

// checkBindingsLocked refuses if x has more bindings than it may, including the one just made.
func (x *Exchange) checkBindingsLocked() error {
	vh := x.vh
	most := vh.registry.ceilings.Bindings
	if x.router.Len() <= most || vh.registry.restoring() {
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot bind to %s: binding limit (%d) is reached", exchangeLabel(vh.guard.name, x.name), most)
}
