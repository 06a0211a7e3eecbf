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
	// A tapped queue is counted once a second, more often while messages have missed their
	// deadlines, and within dueEvery when one is due. If RabbitMQ refuses to count it, the next
	// try is after refusedEvery, since each refusal closes a channel.
	restEvery    = time.Second
	overdueEvery = 250 * time.Millisecond
	dueEvery     = 20 * time.Millisecond
	refusedEvery = 30 * time.Second
	// grace is how long after a count we wait for its messages to arrive from the exchange.
	grace = 15 * time.Millisecond
)

// count counts the tapped queues that are due for it. Of the others views have the totals.
func (o *Observer) count(ctx context.Context, counter *counter) error {
	now := time.Now()
	var due []*watched
	for _, w := range o.watched() {
		if (w.tap != nil || w.refused != "") && now.Sub(w.counted) >= w.pause(now) {
			due = append(due, w)
		}
	}
	if len(due) == 0 {
		return nil
	}
	counts := make([]count, len(due))
	reasons := make([]string, len(due))
	for i, w := range due {
		var err error
		if counts[i], reasons[i], err = w.count(counter, now); err != nil {
			return err
		}
	}
	select { // messages that had entered by the answers arrive
	case <-time.After(grace):
	case <-ctx.Done():
		return ctx.Err()
	}
	o.judge(due, counts, reasons)
	return nil
}

// count asks RabbitMQ how many messages are ready in the queue and in its tap. reason is why RabbitMQ does not count them; the error
// is that of a lost connection.
func (w *watched) count(counter *counter, now time.Time) (c count, reason string, err error) {
	w.counted = now
	before := w.entered()
	// RabbitMQ counts what the queue has taken in, not what is on its way to it, and answers before it takes that in. So
	// only messages that had entered by the previous count are certain to be counted.
	c.Before, w.before = min(w.before, before), before
	c.Asked = deadline.At(time.Now())
	c.Ready, c.Consumers, err = counter.count(w.name)
	if refused, ok := errors.AsType[*amqp091.Error](err); ok && !counter.conn.IsClosed() {
		reason = "RabbitMQ does not count its messages: " + refused.Reason
	} else if err != nil {
		return c, "", err
	}
	c.Answered = deadline.At(time.Now())
	c.After = before
	if w.tap == nil || reason != "" {
		return c, reason, nil
	}
	waiting, _, err := counter.count(w.tap.name) // have not been delivered to us yet
	switch {
	case err != nil && counter.conn.IsClosed():
		return c, "", err
	case err != nil || waiting >= tapLength*9/10:
		w.untap() // the next view makes another one
	case waiting == 0:
		w.mu.Lock()
		w.readAt = now
		w.mu.Unlock()
	}
	c.After = w.entered() + uint64(waiting)
	return c, "", nil
}

// judge hands the counts to the queues' lines, and reports the messages that have expired.
func (o *Observer) judge(due []*watched, counts []count, reasons []string) {
	var expired []deadline.Expiry
	for i, w := range due {
		if w.refused = reasons[i]; w.refused != "" {
			w.untap()
			w.mu.Lock()
			w.reason = cmp.Or(w.reason, w.refused)
			w.mu.Unlock()
			continue
		}
		counts[i].After = max(counts[i].After, w.entered())
		expired = w.judge(o.o.VHost, counts[i], expired)
		if w.tap != nil && w.strangers >= strangers {
			w.untap()
			w.setReason(bypassed)
		}
	}
	if len(expired) > 0 {
		o.o.Expired(expired)
	}
}
