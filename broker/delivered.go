package broker

import (
	"cmp"
	"slices"

	"curfew/broker/queue"
	"curfew/broker/store"
)

// delivered lists the messages that consumers have seen and not settled, for the next
// run to mark redelivered. Consumers rely on a message that is not marked never having
// been delivered before. So after a crash, when there is no such list, all are marked,
// as RabbitMQ's classic queues do: to know more, a record of each delivery would have
// to be on the disk before the delivery.
func (b *Broker) delivered() (runs []store.Delivered) {
	for _, q := range b.allQueues() {
		if q.durable() {
			runs = q.deliveredTo(runs)
		}
	}
	return runs
}

// deliveredTo appends the queue's. A run ends at a message that nobody has seen.
func (q *Queue) deliveredTo(runs []store.Delivered) []store.Delivered {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := len(runs)
	var run *store.Delivered
	q.core.Each(0, func(seq queue.Seq, m queue.Message, state queue.State) bool {
		switch {
		case state != queue.Unacked && m.Flags&queue.Redelivered == 0:
			run = nil
		case run == nil || queue.Seq(run.First).Priority() != seq.Priority():
			runs = append(runs, store.Delivered{Queue: q.id, First: uint64(seq), Count: 1})
			run = &runs[len(runs)-1]
		default:
			run.Count = uint64(seq) - run.First + 1
		}
		return true
	})
	if len(q.retained.line)+q.letters.len() == 0 {
		return runs
	}
	of := q.retained.delivered(q.id, runs[from:])
	return append(runs[:from], withoutCovered(q.letters.delivered(q.id, of))...)
}

// delivered appends those of them that a consumer has seen: in the next run they are in
// the queue again.
func (r *retained) delivered(id uint64, runs []store.Delivered) []store.Delivered {
	for _, d := range r.line {
		if d.wasDelivered() {
			runs = append(runs, store.Delivered{Queue: id, First: uint64(d.settled.Seq), Count: 1})
		}
	}
	return runs
}

// withoutCovered drops runs of one message that stand within another run.
func withoutCovered(runs []store.Delivered) []store.Delivered {
	slices.SortFunc(runs, func(a, b store.Delivered) int { return cmp.Compare(a.First, b.First) })
	kept := runs[:0]
	for _, r := range runs {
		if n := len(kept); n == 0 || r.First >= kept[n-1].First+kept[n-1].Count {
			kept = append(kept, r)
		}
	}
	return kept
}
