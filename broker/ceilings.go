package broker

import (
	"curfew/broker/access"
	"curfew/broker/amqp"
)

// Ceilings bound what clients can have a virtual host remember. A virtual host's
// own max-queues may be lower. Zero fields are the defaults.
type Ceilings struct {
	Queues    int // of a virtual host; default 50,000
	Exchanges int // of a virtual host; default 10,000
	Bindings  int // of an exchange; default 200,000
}

func (c *Ceilings) setDefaults() {
	if c.Queues == 0 {
		c.Queues = 50_000
	}
	if c.Exchanges == 0 {
		c.Exchanges = 10_000
	}
	if c.Bindings == 0 {
		c.Bindings = 200_000
	}
}

// restoring: what is restored is counted, not refused.
func (vh *VHost) restoring() bool { return !vh.b.recovered.Load() }

// checkQueueLimit refuses one more queue than the virtual host may have. Called
// with mu held, as the checks below.
func (vh *VHost) checkQueueLimit(name string) error {
	most := vh.b.opts.Ceilings.Queues
	if own, ok := vh.limits.Of(access.MaxQueues); ok {
		most = min(most, own)
	}
	if len(vh.queues)+vh.coming < most || vh.restoring() || name == UndeliverableQueue { // a dead letter must not be lost for it
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot declare queue '%s': queue limit in vhost '%s' (%d) is reached", name, vh.name, most)
}

// checkExchangeLimit refuses one more exchange than the virtual host may have.
func (vh *VHost) checkExchangeLimit(name string) error {
	most := vh.b.opts.Ceilings.Exchanges
	if len(vh.exchanges)-len(predeclared) < most || vh.restoring() {
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot declare exchange '%s': exchange limit in vhost '%s' (%d) is reached", name, vh.name, most)
}

// overBound says whether x has more bindings than it may, one just made included.
func (vh *VHost) overBound(x *Exchange) error {
	most := vh.b.opts.Ceilings.Bindings
	if x.router.Len() <= most || vh.restoring() {
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot bind to %s: binding limit (%d) is reached", vh.exchangeLabel(x.name), most)
}
