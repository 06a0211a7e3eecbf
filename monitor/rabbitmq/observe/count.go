package observe

import (
	"cmp"
	"context"
	"errors"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
)

const (
	// A queue is counted once a second, more often while messages have missed their
	// deadlines, and within dueEvery when one is due. One that RabbitMQ does not count is
	// asked for again after refusedEvery, since each refusal closes a channel.
	restEvery    = time.Second
	overdueEvery = 250 * time.Millisecond
	dueEvery     = 20 * time.Millisecond
	refusedEvery = 30 * time.Second
	// grace is how long after a count its messages may take from the exchange to us.
	grace = 15 * time.Millisecond
)

// count counts the queues of which it is time.
func (o *Observer) count(ctx context.Context, counter *counter) error {
	now := time.Now()
	var due []*watched
	for _, w := range o.watched() {
		if now.Sub(w.counted) >= w.pause(now) {
			due = append(due, w)
		}
	}
	counts := make([]count, len(due))
	reasons := make([]string, len(due))
	for i, w := range due {
		w.counted = now
		before := w.entered()
		// RabbitMQ counts what the queue has taken in, not what is on its way to it, and answers before it takes that in. So
		// only what had entered by the count before this one is certain to be counted.
		counts[i].Before, w.before = min(w.before, before), before
		counts[i].Asked = deadline.At(time.Now())
		var err error
		counts[i].Ready, counts[i].Consumers, err = counter.count(w.name)
		if refused, ok := errors.AsType[*amqp091.Error](err); ok && !counter.conn.IsClosed() {
			reasons[i] = "RabbitMQ does not count its messages: " + refused.Reason
		} else if err != nil {
			return err
		}
		counts[i].Answered = deadline.At(time.Now())
		counts[i].After = before
		if w.tap != nil && reasons[i] == "" {
			waiting, err := w.tap.waiting(counter)
			if err != nil && counter.conn.IsClosed() {
				return err
			}
			if err != nil || waiting >= tapLength*9/10 {
				w.untap() // the next refresh makes another one
			} else if waiting == 0 {
				w.setRead(now)
			}
			counts[i].After = w.entered() + uint64(waiting)
		}
	}
	if len(due) > 0 {
		select { // what had entered by the answers arrives
		case <-time.After(grace):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var told []Missed
	for i, w := range due {
		if w.refused = reasons[i]; w.refused != "" {
			w.untap()
			w.mu.Lock()
			w.reason = cmp.Or(w.reason, w.refused)
			w.mu.Unlock()
			continue
		}
		counts[i].After = max(counts[i].After, w.entered())
		told = w.judge(o.o.VHost, counts[i], told)
		if w.tap != nil && w.strangers >= strangers {
			w.untap()
			w.setReason(bypassed)
		}
	}
	if len(told) > 0 {
		o.o.Missed(told)
	}
	return nil
}
