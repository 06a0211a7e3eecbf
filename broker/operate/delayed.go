package operate

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadline"
)

// MaxDelayedCount is how many delayed messages one answer has at most.
const MaxDelayedCount = 1000

// DelayedMessage waits to be enqueued.
type DelayedMessage struct {
	broker.DelayedMessage
	ID        string // to cancel it by
	DueMillis int64  // Unix ms by the wall clock
}

// ListDelayed lists the delayed messages of a virtual host in the order of publishing, from the number that an earlier call returned as next (0: the first).
func (o *Operations) ListDelayed(_ context.Context, a Actor, vhost string, from uint64, count int) (list []DelayedMessage, next uint64, err error) {
	vh, err := o.vhost(&a, ListDelayed, vhost)
	if err != nil {
		return nil, 0, err
	}
	page, next := vh.Delayed(from, min(max(count, 0), MaxDelayedCount))
	for _, m := range page {
		id := fmt.Sprintf("%d-%d-%d", m.Ref.Queue, m.Ref.Seq, m.Ref.Deadline)
		list = append(list, DelayedMessage{m, id, o.Broker.UnixMillis(m.Ref.Deadline)})
	}
	return list, next, nil
}

// CancelDelayed drops a delayed message by its ID. Error: ErrNotFound if it was enqueued or cancelled before.
func (o *Operations) CancelDelayed(ctx context.Context, a Actor, vhost, id string) error {
	vh, err := o.vhost(&a, CancelDelayed, vhost)
	if err == nil {
		var ref deadline.Ref
		if n, _ := fmt.Sscanf(id, "%d-%d-%d", &ref.Queue, &ref.Seq, &ref.Deadline); n != 3 || !vh.CancelDelayed(ref) {
			err = ErrNotFound
		}
	}
	if err == nil {
		err = o.commit(ctx)
	}
	o.Record(a, CancelDelayed, QueueName{VHost: vhost}, err, zap.String("id", id))
	return err
}
