package broker

import "fmt"

// minIdleMillis is the least x-auto-delete-on-idle may be (Service Bus: five
// minutes).
const minIdleMillis = 300_000

// idle reads x-auto-delete-on-idle; 0 is none.
func (p *argParser) idle() int64 {
	n := p.integer("x-auto-delete-on-idle", 0, 1, MaxTTLMillis)
	if n != 0 && n < minIdleMillis {
		p.fail("x-auto-delete-on-idle", fmt.Sprintf("{value_too_small,%d}", n))
	}
	return n
}

// use notes that q was used, for x-expires: it has the full period again, or
// for as long as it has consumers no end at all. It also counts for
// x-auto-delete-on-idle, for which publishing, settling and browsing do, too
// (stir). Called with q.mu held.
func (q *Queue) use() {
	q.idleAt = 0
	if q.deleted || q.consumers.count > 0 {
		return
	}
	stamp := q.vh.b.clock.stampAt()
	q.stir(stamp)
	if expires := q.set().expiresMillis; expires != 0 {
		q.idleAt = stamp + expires*milli
	}
	if at := q.lapsesAt(); at != 0 {
		q.vh.b.alarms.add(q, at)
	}
}

// stir notes that something was done with q that does not count for x-expires. The
// alarm finds that out when the old time comes. Called with q.mu held.
func (q *Queue) stir(now int64) { q.stirredAt = now }

// lapsesAt is when q is deleted unless it is used before; 0: not for that reason.
// Called with q.mu held.
func (q *Queue) lapsesAt() int64 {
	at := q.idleAt
	if idle := q.set().idleMillis; idle != 0 && q.consumers.count == 0 {
		if lapse := q.stirredAt + idle*milli; at == 0 || lapse < at {
			at = lapse
		}
	}
	return at
}

// expireIdle deletes q if it was unused for its x-expires or x-auto-delete-on-idle.
func (q *Queue) expireIdle() bool {
	_, err := q.vh.remove(q, func() error {
		if at := q.lapsesAt(); at == 0 || at > q.vh.b.Now() {
			return errInUse
		}
		return nil
	})
	return err == nil
}
