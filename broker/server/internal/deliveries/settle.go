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

	// Gathers keeps all runs for Take.
	Gathers bool
	runs    []broker.Settling
}

// keepLocks stands for delivery.Locks.Keep.
const keepLocks broker.Settlement = 255

// add adds one delivery to the run, or begins a new run.
func (b *Batch) add(how broker.Settlement, m Unacked) {
	wake := m.brokers()
	if b.q != m.Queue || b.how != how || b.wake != wake {
		b.Flush()
		b.q, b.how, b.wake = m.Queue, how, wake
	}
	b.seqs = append(b.seqs, m.Seq)
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
		b.q.Messages.Locks.Keep(b.seqs, b.wake)
	} else {
		b.q.Messages.Settle(b.how, b.seqs, b.wake)
	}
	if b.q, b.wake, b.seqs = nil, nil, b.seqs[:0]; cap(b.seqs) > 16*endAtOnce {
		b.seqs = nil
	}
}

// Settle ends the delivery with a tag; with multiple, all deliveries up to it (0: all). It
// takes effect when the batch is flushed. id is the method that settles. Errors: 406, the tag
// is not known, or the lock on the message has lapsed. If a multiple settlement names other
// messages as well, they are settled. The reader's.
func (d *Deliveries) Settle(b *Batch, how broker.Settlement, tag uint64, multiple bool, id amqp.MethodID) (err error) {
	if !multiple {
		n, err := d.settleOne(b, how, tag, id)
		if n == 0 {
			return unknownTag(tag, id)
		}
		return err
	}
	d.mu.Lock()
	last := tag
	if tag == 0 {
		last = d.unacked.next
	} else if tag > d.unacked.next {
		last = 0
	}
	d.mu.Unlock()
	if d.end(b, how, 1, last, nil, func(m Unacked) { err = lapsedLock(last, m.Queue, id) }) == 0 && tag != 0 {
		return unknownTag(tag, id)
	}
	if d.refused {
		b.Flush()
		d.ServeLine()
	}
	return err
}

// settleOne ends one delivery, as most clients do, without the steps of a range, and returns how many there were. err: its lock has lapsed.
func (d *Deliveries) settleOne(b *Batch, how broker.Settlement, tag uint64, id amqp.MethodID) (n int, err error) {
	d.mu.Lock()
	m, found := d.unacked.take(tag)
	if found {
		d.giveCreditLocked(m)
		if how == broker.Ack {
			d.counts.Acked++
		}
	}
	waiting := len(d.shared.line) > 0
	d.mu.Unlock()
	switch {
	case !found:
		return 0, nil
	case m.Seq == 0:
		err = lapsedLock(tag, m.Queue, id)
	default:
		b.add(how, m)
	}
	if waiting {
		b.Flush()
		d.ServeLine()
	}
	return 1, err
}

// SettleRange ends the deliveries with the ids first to last that are still there; it is Settle for AMQP 1.0, whose
// ids are 32 bits of the tags less one: those meant are the last ones given out. Errors: 404, the id last was not given
// out; and that of Settle for lapsed locks; with KeepLocks also 406, some are no longer there. The reader's.
func (d *Deliveries) SettleRange(b *Batch, how broker.Settlement, first, last uint32) (err error) {
	d.mu.Lock()
	newest := d.unacked.next
	behind := uint32(newest-1) - last
	if uint64(behind) >= newest || last-first > math.MaxInt32 {
		d.mu.Unlock()
		return amqp.NewException(amqp.NotFound, 0, 0, "no delivery has the id %d", last)
	}
	d.mu.Unlock()
	to := newest - uint64(behind)
	from := to - min(to-1, uint64(last-first))
	var n int
	if first == last {
		n, err = d.settleOne(b, how, to, 0)
	} else {
		n = d.end(b, how, from, to, nil, func(m Unacked) { err = lapsedLock(to, m.Queue, 0) })
	}
	if d.KeepLocks && uint64(n) <= to-from {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "the lock on delivery %d is lost", last)
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

// ReturnOf requeues or releases what a consumer that is cancelled holds (nil: all), in order. The reader's.
func (d *Deliveries) ReturnOf(b *Batch, how broker.Settlement, of *Consumer) {
	d.mu.Lock()
	last := d.unacked.next
	d.mu.Unlock()
	d.end(b, d.back(how), 1, last, of, func(Unacked) {})
	b.Flush()
}

// Locked calls fn with the locks of the deliveries and of their outbox.
func (d *Deliveries) Locked(fn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out.Lock()
	defer d.out.Unlock()
	fn()
}

// SkipLocked returns a new delivery tag for something that is sent on the channel and is not a message
// of a queue. Only what Locked calls may call it.
func (d *Deliveries) SkipLocked() uint64 { return d.unacked.skip() }

// ReturnAll requeues everything that is unacked, in order. The reader's.
func (d *Deliveries) ReturnAll(b *Batch) {
	d.ReturnOf(b, broker.Requeue, nil)
	d.ServeLine()
}

// endAtOnce is how many deliveries end under one lock: queues that deliver to the channel wait for it. What leaves its queue
// is flushed with each step; what comes back is gathered, since all of it is in its place before one is delivered again.
const endAtOnce = 4096

// end adds the deliveries with the tags first to last to the batch, those of a consumer (nil: of all, which get the credit back). It
// calls lapsed for each whose lock has lapsed, and returns how many there were.
func (d *Deliveries) end(b *Batch, how broker.Settlement, first, last uint64, of *Consumer, lapsed func(Unacked)) (n int) {
	for next := first; next <= last; {
		switch {
		case next == first:
		case how == broker.Ack || how == broker.Reject:
			b.Flush()
		case n == len(d.ended): // after the first step: a slice that grows is copied as a whole, again and again
			d.mu.Lock()
			left := d.unacked.count
			d.mu.Unlock()
			b.seqs = slices.Grow(b.seqs, left)
		}
		next = d.endStep(how, next, last, of)
		for _, m := range d.ended {
			if m.Seq == 0 {
				lapsed(m)
			} else {
				b.add(how, m)
			}
		}
		n += len(d.ended)
	}
	return n
}

// endStep moves some of the deliveries to d.ended, and returns where to go on.
func (d *Deliveries) endStep(how broker.Settlement, first, last uint64, of *Consumer) (next uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended, next = d.unacked.takeSome(first, last, of, endAtOnce, d.ended[:0])
	if of == nil {
		for _, m := range d.ended {
			d.giveCreditLocked(m)
		}
	}
	if how == broker.Ack {
		d.counts.Acked += uint64(len(d.ended))
	}
	d.refused = len(d.shared.line) > 0
	return next
}

// giveCreditLocked stops counting a delivery that ends against the prefetch limits.
func (d *Deliveries) giveCreditLocked(m Unacked) {
	if m.Consumer != nil {
		m.Consumer.inFlight--
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
