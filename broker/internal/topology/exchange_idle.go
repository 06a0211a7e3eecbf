package topology

import (
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/broker/exchange"
	"curfew/broker/internal/delivery"
)

// An exchange with x-auto-delete-on-idle corresponds to a Service Bus topic, and what is bound to
// it to the topic's subscriptions. Sends, updates (a repeated or passive declare, a binding made or
// removed, a policy that changes it) and delayed messages that would pass through it count as use.
// So do operations on what is bound to it: whoever receives from one of its queues uses it.
// The queues stay when it is deleted.
//
// A send is noted when it is routed, so no route through such an exchange is remembered
// (Routes.ByTable). The queues are asked for their last use when the period is over.

// useLocked notes a use of x. Called with vh.mu held, at least for reading.
func (x *Exchange) useLocked() {
	if x.idleMillis == 0 {
		return
	}
	now := x.vh.registry.env.Clock.Stamp()
	x.lastUsedAt.Store(int64(now))
	x.vh.registry.env.Timers.Add(x, now.AddMillis(deadline.Millis(x.idleMillis)))
}

// reboundLocked notes that d was bound to x or unbound from it, which is use of both. It is not use
// if one end was deleted because it was idle: then x takes over the last use of what was bound to
// it. Called with vh.mu held.
func (x *Exchange) reboundLocked(d destination) {
	switch {
	case x.expired:
	case d.exchange != nil && d.exchange.expired:
		x.noteEarlierUseLocked(deadline.Instant(d.exchange.lastUsedAt.Load())) // ExpireIdle has put it there
	case d.queue != nil && d.queue.marks.Load()&expired != 0:
		x.noteEarlierUseLocked(d.queue.Messages.Idle.LastUse(x.vh.registry.env.Clock.Now()))
	case d.exchange != nil:
		x.useLocked()
		d.exchange.useLocked()
	case d.queue.Settings().IdleMillis != 0:
		x.useLocked()
		d.queue.Messages.Idle.MarkUsed(x.vh.registry.env.Clock.Now())
	default:
		x.useLocked()
	}
}

// noteEarlierUseLocked notes a use at an earlier instant. Called with vh.mu held.
func (x *Exchange) noteEarlierUseLocked(at deadline.Instant) {
	x.lastUsedAt.Store(max(x.lastUsedAt.Load(), int64(at)))
}

// expiresIdleAtLocked is when x is deleted unless it is used before; 0: never. Called with vh.mu
// held, at least for reading.
func (x *Exchange) expiresIdleAtLocked(goOn func() bool) deadline.Instant {
	if x.idleMillis == 0 || x.gone {
		return 0
	}
	return x.lastUseLocked(x.vh.registry.env.Clock.Now(), goOn).AddMillis(deadline.Millis(x.idleMillis))
}

// lastUseLocked is when x was used last, or anything bound to it, directly or through other
// exchanges. It stops at a use that is not before now, and when goOn, which is called for each binding,
// returns false. Called with vh.mu held, at least for reading.
func (x *Exchange) lastUseLocked(now deadline.Instant, goOn func() bool) (last deadline.Instant) {
	var met reached
	defer met.reset()
	met.first(x)
	for ahead := []*Exchange{x}; len(ahead) > 0; {
		x, ahead = ahead[len(ahead)-1], ahead[:len(ahead)-1]
		last = max(last, deadline.Instant(x.lastUsedAt.Load()))
		x.router.Each(func(b exchange.Binding[destination]) bool {
			switch d := b.Destination; {
			case d.goneLocked():
			case d.queue != nil:
				last = max(last, d.queue.Messages.Idle.LastUse(now), d.queue.useOfPartsLocked(now))
			case met.first(d.exchange):
				ahead = append(ahead, d.exchange)
			}
			return last < now && goOn()
		})
		if last >= now || !goOn() {
			return last
		}
	}
	return last
}

// idleSteps is how many bindings are looked at in one go: each means the locks of up to four queues.
const idleSteps = 1 << 8

// expiresIdleAt is expiresIdleAtLocked if few bindings have to be looked at for it; otherwise ok is
// false.
func (x *Exchange) expiresIdleAt() (at deadline.Instant, ok bool) {
	x.vh.guard.mu.RLock()
	defer x.vh.guard.mu.RUnlock()
	n := 0
	at = x.expiresIdleAtLocked(func() bool { n++; return n < idleSteps })
	return at, n < idleSteps
}

// OnTimer deletes x if it has been idle for its period.
func (x *Exchange) OnTimer() {
	if at, ok := x.expiresIdleAt(); ok {
		x.judgeIdle(at)
		return
	}
	x.vh.registry.run(func() { x.judgeIdle(x.findIdleAt()) })
}

// findIdleAt is expiresIdleAtLocked for many bindings: changes go on meanwhile.
func (x *Exchange) findIdleAt() deadline.Instant {
	x.vh.guard.mu.RLock()
	defer x.vh.guard.mu.RUnlock()
	p := exchange.Pace{Pause: x.vh.guard.pause}
	return x.expiresIdleAtLocked(func() bool { p.Step(exchange.PaceSteps / idleSteps); return true })
}

func (x *Exchange) judgeIdle(at deadline.Instant) {
	switch {
	case at == 0:
	case at > x.vh.registry.env.Clock.Now():
		x.vh.registry.env.Timers.Add(x, at)
	case x.vh.judge(nil, x):
	default:
		x.ExpireIdle()
	}
}

// ExpireIdle deletes x if it has been idle for its period, and otherwise sets the timer for the
// next check. It does not wait for the disk. If so many bindings have to be looked at that changes have to
// go on meanwhile, a use of what was looked at first may be missed, of a period that is over.
func (x *Exchange) ExpireIdle() {
	r, bindings := x.vh.registry, 0
	_, few := x.expiresIdleAt()
	var found deadline.Instant
	if !few {
		found = x.findIdleAt()
	}
	err := x.vh.guard.locked(func() error {
		at := found
		if few {
			at = x.expiresIdleAtLocked(func() bool { return true })
		}
		if at == 0 || x.gone {
			return delivery.ErrGone
		}
		at = max(at, deadline.Instant(x.lastUsedAt.Load()).AddMillis(deadline.Millis(x.idleMillis)))
		if at > r.env.Clock.Now() {
			r.env.Timers.Add(x, at)
			return delivery.ErrInUse
		}
		bindings = x.router.Len()
		x.expired = true
		x.lastUsedAt.Store(int64(at.AddMillis(-deadline.Millis(x.idleMillis))))
		x.removeLocked()
		x.vh.sweeps.stepLocked(sweepStep)
		return nil
	})
	if err != nil {
		return
	}
	x.vh.sweepSoon()
	if x.declared.Durable {
		r.saveDeletedSoon()
	}
	r.log.Info("exchange expired: unused for its x-auto-delete-on-idle",
		zap.String("vhost", x.vh.guard.name), zap.String("exchange", x.name), zap.Int("bindings", bindings))
}

// TimerIndex is where the timers keep its index among them.
func (x *Exchange) TimerIndex() *int32 { return &x.alarmIndex }
