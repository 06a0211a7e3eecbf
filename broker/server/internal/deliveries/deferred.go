package deliveries

import (
	"slices"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/chunked"
)

// deferredSettlement is a delivery that ends when the channel's transaction is committed. Until
// then it counts against the prefetch limits. A rollback restores it under its tag.
type deferredSettlement struct {
	how broker.Settlement
	tag uint64
	m   Unacked // m.Seq is 0 if its lock has lapsed
}

// deferrals are the settlements of a transaction.
type deferrals struct {
	list   chunked.Slice[deferredSettlement]
	locked map[lockKey]int // where in the list those are that have a lock
	lapsed error           // the last of these locks that has lapsed; nil: none
}

// maxDeferred is how many settlements a transaction may have: as many as the store keeps together.
const maxDeferred = 1 << 18

// Defer is Settle in a transaction: the deliveries end when TakeDeferred is called. Errors as
// of Settle, and 406 if the transaction becomes too large. The reader's.
func (d *Deliveries) Defer(how broker.Settlement, tag uint64, multiple bool, id amqp.MethodID) (err error) {
	tags := []uint64{tag}
	if multiple {
		tags = d.tagsUpTo(tag)
	}
	if d.deferred != nil && d.deferred.list.Len()+len(tags) > maxDeferred || len(tags) > maxDeferred {
		return amqp.NewException(amqp.PreconditionFailed, id.Class(), id.Method(), "transaction is larger than %d settlements; commit more often", maxDeferred)
	}
	found := multiple && tag == 0
	for some := range slices.Chunk(tags, endAtOnce) {
		if err = d.deferSome(how, some, id, &found); err != nil {
			return err
		}
	}
	if !found {
		return unknownTag(tag, id)
	}
	return nil
}

func (d *Deliveries) tagsUpTo(tag uint64) []uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unacked.tagsUpTo(tag, maxDeferred+1)
}

// deferSome defers up to endAtOnce settlements.
func (d *Deliveries) deferSome(how broker.Settlement, tags []uint64, id amqp.MethodID, found *bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deferred == nil {
		d.deferred = &deferrals{locked: map[lockKey]int{}}
	}
	for _, t := range tags {
		if m, ok := d.unacked.take(t); ok {
			if m.Seq == 0 {
				return lapsedLock(t, m.Queue, id)
			}
			if m.locked {
				d.deferred.locked[m.lockKey()] = d.deferred.list.Len()
			}
			d.deferred.list.Push(deferredSettlement{how, t, m})
			*found = true
		}
	}
	return nil
}

// TakeDeferred returns the deferred settlements as the broker takes them, to be passed to
// broker.Publisher.Transact: one for each run of the same queue, kind and consumer. Their
// deliveries end, and from then on no lock lapses. If one has lapsed before, it returns 406
// and takes nothing out. ServeLine must follow. The reader's.
func (d *Deliveries) TakeDeferred() (runs []broker.Settling, err error) {
	d.mu.Lock()
	x := d.deferred
	if x != nil {
		if err = x.lapsed; err == nil {
			d.deferred = nil
		}
	}
	d.mu.Unlock()
	if x == nil || err != nil {
		return nil, err
	}
	d.eachDeferred(x, func(s *deferredSettlement) {
		d.giveCreditLocked(s.m)
		if s.how == broker.Ack {
			d.counts.Acked++
		}
	})
	b := Batch{Gathers: true}
	for i := range x.list.Len() {
		s := x.list.At(i)
		b.add(s.how, s.m)
	}
	return b.Take(), nil
}

// PutBackDeferred makes the deferred deliveries unacked again. They are not delivered again
// (AMQP 0-9-1 tx.rollback). The reader's.
func (d *Deliveries) PutBackDeferred() {
	x := d.deferred
	if x == nil {
		return
	}
	d.eachDeferred(x, func(s *deferredSettlement) {
		delete(x.locked, s.m.lockKey())
		d.unacked.putBack(s.tag, s.m)
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deferred = nil
}

// eachDeferred calls fn with mu held, but not all the time: queues that deliver to the channel wait for it.
func (d *Deliveries) eachDeferred(x *deferrals, fn func(*deferredSettlement)) {
	for i, n := 0, x.list.Len(); i < n; {
		d.mu.Lock()
		for end := min(i+endAtOnce, n); i < end; i++ {
			fn(x.list.At(i))
		}
		d.mu.Unlock()
	}
}

// lapseDeferredLocked marks the deferred settlement of a message as too late. It returns false
// if the message is not among them.
func (d *Deliveries) lapseDeferredLocked(key lockKey) bool {
	if d.deferred == nil {
		return false
	}
	i, found := d.deferred.locked[key]
	if found {
		s := d.deferred.list.At(i)
		if s.m.Seq = 0; d.deferred.lapsed == nil {
			d.deferred.lapsed = lapsedLock(s.tag, s.m.Queue, amqp.TxCommitID)
		}
		delete(d.deferred.locked, key)
	}
	return found
}
