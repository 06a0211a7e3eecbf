package deliveries

import (
	"math"
	"slices"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// Batch gathers settlements, so that a queue is locked once for a run of them. A connection
// has one for all its channels; it belongs to the reader. The zero value is empty.
type Batch struct {
	how  broker.Settlement
	q    *broker.Queue
	wake *broker.Consumer
	seqs []queue.Seq

	// Why is what the client says about what it rejects; nil: nothing.
	Why *broker.Rejection
	// Gathers keeps all runs for Take.
	Gathers bool
	runs    []broker.Settling
}

// keepLocks stands for broker.Queue.KeepLocks.
const keepLocks broker.Settlement = 255

// add adds one delivery to the run, or begins a new run.
func (b *Batch) add(how broker.Settlement, m delivery) {
	wake := m.brokers()
	if b.q != m.queue || b.how != how || b.wake != wake {
		b.Flush()
		b.q, b.how, b.wake = m.queue, how, wake
	}
	b.seqs = append(b.seqs, m.seq)
}

// Take returns the runs that were gathered.
func (b *Batch) Take() []broker.Settling {
	b.Flush()
	return b.runs
}

// Flush passes the run to its queue.
func (b *Batch) Flush() {
	if len(b.seqs) == 0 {
		return
	}
	if b.Gathers {
		b.runs = append(b.runs, broker.Settling{Queue: b.q, How: b.how, Seqs: slices.Clone(b.seqs), Consumer: b.wake})
	} else if b.how == keepLocks {
		b.q.KeepLocks(b.seqs, b.wake)
	} else {
		b.q.SettleFor(b.how, b.seqs, b.wake, b.Why)
	}
	b.q, b.wake, b.seqs = nil, nil, b.seqs[:0]
}

// Settle ends the delivery with a tag; with multiple, all deliveries up to it (0: all). It
// takes effect when the batch is flushed. id is the method that settles. Errors: 406, the tag
// is not known, or the lock on the message has lapsed. If a multiple settlement names other
// messages as well, they are settled. The reader's.
func (d *Deliveries) Settle(b *Batch, how broker.Settlement, tag uint64, multiple bool, id amqp.MethodID) (err error) {
	if !d.end(tag, multiple) {
		return unknownTag(tag, id)
	}
	d.mu.Lock()
	if how == broker.Ack {
		d.counts.Acked += uint64(len(d.ended))
	}
	waiting := len(d.shared.line) > 0
	d.mu.Unlock()
	for _, m := range d.ended {
		if m.seq == 0 {
			err = lapsedLock(tag, m.queue, id)
			continue
		}
		b.add(how, m)
	}
	if waiting {
		b.Flush()
		d.ServeLine()
	}
	return err
}

// SettleRange ends the deliveries with the ids first to last that are still there; it is Settle for AMQP 1.0, whose
// ids are 32 bits of the tags less one: those meant are the last ones given out. Errors: 404, the id last was not given
// out; and that of Settle for lapsed locks. The reader's.
func (d *Deliveries) SettleRange(b *Batch, how broker.Settlement, first, last uint32) (err error) {
	d.mu.Lock()
	newest := d.unacked.next
	behind := uint32(newest-1) - last
	if uint64(behind) >= newest || last-first > math.MaxInt32 {
		d.mu.Unlock()
		return amqp.NewException(amqp.NotFound, 0, 0, "no delivery has the id %d", last)
	}
	to := newest - uint64(behind)
	from := to - min(to-1, uint64(last-first))
	d.ended = d.unacked.takeRange(from, to, d.ended[:0])
	for _, m := range d.ended {
		d.giveCreditLocked(m)
	}
	if how == broker.Ack {
		d.counts.Acked += uint64(len(d.ended))
	}
	d.mu.Unlock()
	for _, m := range d.ended {
		if m.seq == 0 {
			err = lapsedLock(from, m.queue, 0)
			continue
		}
		b.add(how, m)
	}
	return err
}

// back is how deliveries end that the client gives up.
func (d *Deliveries) back(how broker.Settlement) broker.Settlement {
	if d.KeepLocks {
		return keepLocks
	}
	return how
}

// ReturnOf requeues or releases what a consumer holds, in order. The reader's.
func (d *Deliveries) ReturnOf(b *Batch, how broker.Settlement, c *Consumer) {
	d.mu.Lock()
	d.ended = d.unacked.takeOf(c, d.ended[:0])
	d.mu.Unlock()
	for _, m := range d.ended {
		if m.seq != 0 {
			b.add(d.back(how), m)
		}
	}
	b.Flush()
}

// Locked calls fn with the locks of the deliveries and of their outbox, and with the last delivery tag
// that was given out.
func (d *Deliveries) Locked(fn func(lastTag uint64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out.Lock()
	defer d.out.Unlock()
	fn(d.unacked.next)
}

// SkipLocked returns a new delivery tag for something that is sent on the channel and is not a message
// of a queue. Only what Locked calls may call it.
func (d *Deliveries) SkipLocked() uint64 { return d.unacked.skip() }

// ReturnAll requeues everything that is unacked, in order. The reader's.
func (d *Deliveries) ReturnAll(b *Batch) {
	d.end(0, true)
	for _, m := range d.ended {
		if m.seq != 0 {
			b.add(d.back(broker.Requeue), m)
		}
	}
	b.Flush()
	d.ServeLine()
}

// endAtOnce is how many deliveries end under one lock: queues that deliver to the channel wait for it.
const endAtOnce = 4096

// end moves the deliveries that a settlement names to d.ended, and gives their consumers
// the credit back. It returns false if there are none.
func (d *Deliveries) end(tag uint64, multiple bool) bool {
	d.ended = d.ended[:0]
	last := tag
	for more := true; more; {
		last, more = d.endStep(last, multiple)
	}
	return len(d.ended) > 0 || multiple && tag == 0
}

// endStep ends some of the deliveries. It returns the last tag that is meant.
func (d *Deliveries) endStep(tag uint64, multiple bool) (last uint64, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if multiple && tag == 0 {
		tag = d.unacked.next
	}
	from := len(d.ended)
	if multiple {
		d.ended, more = d.unacked.takeUpTo(tag, endAtOnce, d.ended)
	} else if m, ok := d.unacked.take(tag); ok {
		d.ended = append(d.ended, m)
	}
	for _, m := range d.ended[from:] {
		d.giveCreditLocked(m)
	}
	return tag, more
}

// giveCreditLocked stops counting a delivery that ends against the prefetch limits.
func (d *Deliveries) giveCreditLocked(m delivery) {
	if m.consumer != nil {
		m.consumer.inFlight--
		d.shared.inFlight--
	}
}

// lapsedLock refuses to settle a message whose lock has lapsed.
func lapsedLock(tag uint64, q *broker.Queue, id amqp.MethodID) error {
	return amqp.NewException(amqp.PreconditionFailed, id.Class(), id.Method(),
		"the lock on delivery tag %d has lapsed: the message went back to %s after its x-lock-duration", tag, q.Label())
}

func unknownTag(tag uint64, id amqp.MethodID) error {
	return amqp.NewException(amqp.PreconditionFailed, id.Class(), id.Method(), "unknown delivery tag %d", tag)
}
