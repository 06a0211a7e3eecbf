package topology

import (
	"cmp"
	"fmt"

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
	if name == policy.UndeliverableQueue { // or a dead letter would be lost
		return nil
	}
	return bound(len(t.queues)+t.coming+1, most, "declare queue '%s': queue limit in vhost '%s'", name, t.vh.guard.name)
}

// bound refuses, with 406, what makes more of something than there may be.
func bound(n, most int, format string, args ...any) error {
	if n <= most {
		return nil
	}
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot %s (%d) is reached", fmt.Sprintf(format, args...), most)
}
