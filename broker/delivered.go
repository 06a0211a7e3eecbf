package broker

import (
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
	return runs
}
