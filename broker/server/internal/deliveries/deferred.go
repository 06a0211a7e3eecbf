package deliveries

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
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
	list   []deferredSettlement
	locked map[[2]uint64]int // where in the list those are that have a lock, by queue and sequence number
}

// maxDeferred is how many settlements a transaction may have: as many as the store keeps together.
const maxDeferred = 1 << 18

// Defer is Settle in a transaction: the deliveries end when TakeDeferred is called. Errors as
// of Settle, and 406 if the transaction becomes too large. The reader's.
func (d *Deliveries) Defer(how broker.Settlement, tag uint64, multiple bool, id amqp.MethodID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	tags := []uint64{tag}
	if multiple {
		tags = d.unacked.tagsUpTo(tag, maxDeferred+1)
	}
	if d.deferred != nil && len(d.deferred.list)+len(tags) > maxDeferred || len(tags) > maxDeferred {
		return amqp.NewException(amqp.PreconditionFailed, id.Class(), id.Method(), "transaction is larger than %d settlements; commit more often", maxDeferred)
	}
	found := multiple && tag == 0
	for _, t := range tags {
		if m, ok := d.unacked.take(t); ok {
			if m.Seq == 0 {
				return lapsedLock(t, m.Queue, id)
			}
			if d.deferred == nil {
				d.deferred = &deferrals{locked: map[[2]uint64]int{}}
			}
			if m.locked {
				d.deferred.locked[[2]uint64{m.Queue.ID, uint64(m.Seq)}] = len(d.deferred.list)
			}
			d.deferred.list = append(d.deferred.list, deferredSettlement{how, t, m})
			found = true
		}
	}
	if !found {
		return unknownTag(tag, id)
	}
	return nil
}

// TakeDeferred returns the deferred settlements as the broker takes them, to be passed to
// broker.Publisher.Transact: one for each run of the same queue, kind and consumer. Their
// deliveries end, and from then on no lock lapses. If one has lapsed before, it returns 406
// and takes nothing out. ServeLine must follow. The reader's.
func (d *Deliveries) TakeDeferred() (runs []broker.Settling, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deferred == nil {
		return nil, nil
	}
	for _, x := range d.deferred.list {
		if x.m.Seq == 0 {
			return nil, lapsedLock(x.tag, x.m.Queue, amqp.TxCommitID)
		}
	}
	b := Batch{Gathers: true}
	for _, x := range d.deferred.list {
		b.add(x.how, x.m)
		d.giveCreditLocked(x.m)
		if x.how == broker.Ack {
			d.counts.Acked++
		}
	}
	d.deferred = nil
	return b.Take(), nil
}

// PutBackDeferred makes the deferred deliveries unacked again. They are not delivered again
// (AMQP 0-9-1 tx.rollback). The reader's.
func (d *Deliveries) PutBackDeferred() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deferred == nil {
		return
	}
	for _, x := range d.deferred.list {
		d.unacked.putBack(x.tag, x.m)
	}
	d.deferred = nil
}

// lapseDeferredLocked marks the deferred settlement of a message as too late. It returns false
// if the message is not among them.
func (d *Deliveries) lapseDeferredLocked(id uint64, seq queue.Seq) bool {
	if d.deferred == nil {
		return false
	}
	key := [2]uint64{id, uint64(seq)}
	i, found := d.deferred.locked[key]
	if found {
		d.deferred.list[i].m.Seq = 0
		delete(d.deferred.locked, key)
	}
	return found
}
