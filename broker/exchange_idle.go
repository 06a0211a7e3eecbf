package broker

import (
	"go.uber.org/zap"

	"curfew/broker/exchange"
)

// An exchange with x-auto-delete-on-idle is Service Bus's topic, and what is bound to it its
// subscriptions. Sends, updates (a repeated or passive declare, a binding made or removed, a
// policy that changes it) and delayed messages that would pass through it are use, and so
// are operations on what is bound to it: whoever receives from one of its queues uses it.
// The queues stay when it goes.
//
// A send is noted when it is routed, so no way through such an exchange is remembered
// (routing.byTable); what was done with queues they are asked once the period is over.

// use notes that something was done with x. Called with vh.mu held, be it for reading.
func (x *Exchange) use() {
	if x.idleMillis == 0 {
		return
	}
	now := x.vh.b.clock.stampAt()
	x.usedAt.Store(now)
	x.vh.b.alarms.add(x, now+x.idleMillis*milli)
}

// rebound notes that d was bound to x, or is so no longer. Called with vh.mu held.
func (x *Exchange) rebound(d destination) {
	x.use()
	switch {
	case d.exchange != nil:
		d.exchange.use()
	case d.queue.set().idleMillis != 0:
		d.queue.mu.Lock()
		defer d.queue.mu.Unlock()
		d.queue.stir(x.vh.b.Now())
	}
}

// lapsesAt is when x is deleted unless it is used before; 0: never. Called with vh.mu held,
// be it for reading.
func (x *Exchange) lapsesAt() int64 {
	if x.idleMillis == 0 || x.vh.exchanges[x.name] != x {
		return 0
	}
	return x.lastUse(x.vh.b.Now(), map[*Exchange]bool{}) + x.idleMillis*milli
}

// lastUse is when x was used last, or what is bound to it, be it by other exchanges; those
// that were asked are not asked again. After now it does not look on. Called with vh.mu
// held, be it for reading.
func (x *Exchange) lastUse(now int64, asked map[*Exchange]bool) int64 {
	last := x.usedAt.Load()
	asked[x] = true
	x.router.Each(func(b exchange.Binding[destination]) bool {
		switch d := b.Destination; {
		case d.queue != nil:
			last = max(last, d.queue.lastUse(now))
			if beside := x.vh.queues[d.queue.set().subqueue]; beside != nil {
				last = max(last, beside.lastUse(now))
			}
		case !asked[d.exchange]:
			last = max(last, d.exchange.lastUse(now, asked))
		}
		return last < now
	})
	return last
}

// ring looks whether x has been idle for its period.
func (x *Exchange) ring() {
	x.vh.mu.RLock()
	at := x.lapsesAt()
	x.vh.mu.RUnlock()
	switch {
	case at == 0:
	case at > x.vh.b.Now():
		x.vh.b.alarms.add(x, at)
	case x.vh.waiting.Load() != nil:
		x.vh.judge(nil, x)
	default:
		x.expireIdle()
	}
}

// expireIdle deletes x if it has been idle for its period, else sees to it that this is
// looked at again. It does not wait for the disk.
func (x *Exchange) expireIdle() {
	b, bindings := x.vh.b, 0
	err := x.vh.locked(func() error {
		at := x.lapsesAt()
		if at == 0 {
			return errGone
		}
		if at > b.Now() {
			b.alarms.add(x, at)
			return errInUse
		}
		bindings = x.router.Len()
		x.vh.removeExchange(x)
		return nil
	})
	if err != nil {
		return
	}
	if x.declared.Durable {
		b.saveDeletedSoon()
	}
	b.log.Info("exchange expired: unused for its x-auto-delete-on-idle",
		zap.String("vhost", x.vh.name), zap.String("exchange", x.name), zap.Int("bindings", bindings))
}
