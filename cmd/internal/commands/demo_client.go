package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	queue       = "demo.orders"
	expired     = "demo.expired"
	deadLetters = "demo.dead-letters"
	longTTL     = time.Hour
	// maxLateness is how late a message may be before the demo has failed.
	maxLateness = 5 * time.Second
)

// watcher publishes messages with deadlines to a queue without a consumer and watches
// them come back as dead letters.
type watcher struct {
	w     io.Writer
	ch    *amqp091.Channel
	dead  <-chan amqp091.Delivery
	due   map[string]promised // by message ID; still awaited
	worst time.Duration
	wrong []error
}

// promised is the earliest instant at which a message may be back. It is counted from before the publish, so
// the message can only come later.
type promised struct {
	at  time.Time
	ttl time.Duration
}

// runWatcher runs against the broker at url.
func runWatcher(ctx context.Context, w io.Writer, url string, ttls []time.Duration) error {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return fmt.Errorf("demo: connect: %w", err)
	}
	defer conn.Close()
	c := &watcher{w: w, due: make(map[string]promised)}
	if c.ch, err = conn.Channel(); err != nil {
		return fmt.Errorf("demo: open channel: %w", err)
	}
	if err := c.declare(); err != nil {
		return fmt.Errorf("demo: declare: %w", err)
	}
	if err := c.publish(ctx, ttls); err != nil {
		return fmt.Errorf("demo: publish: %w", err)
	}
	if err := c.watch(ctx); err != nil {
		return err
	}
	return c.summarize(len(ttls))
}

func (c *watcher) declare() error {
	if err := c.ch.ExchangeDeclare(expired, amqp091.ExchangeFanout, false, false, false, false, nil); err != nil {
		return err
	}
	args := amqp091.Table{"x-dead-letter-exchange": expired}
	if _, err := c.ch.QueueDeclare(queue, false, false, false, false, args); err != nil {
		return err
	}
	if _, err := c.ch.QueueDeclare(deadLetters, false, false, false, false, nil); err != nil {
		return err
	}
	if err := c.ch.QueueBind(deadLetters, "", expired, false, nil); err != nil {
		return err
	}
	var err error
	c.dead, err = c.ch.Consume(deadLetters, "", true, false, false, false, nil)
	return err
}

func (c *watcher) publish(ctx context.Context, ttls []time.Duration) error {
	fmt.Fprintf(c.w, "Queue %s has no consumer, and a message of one hour is at its head.\n", queue)
	fmt.Fprintf(c.w, "Behind it are %d messages that live %v, in this order.\n", len(ttls), ttls)
	fmt.Fprintf(c.w, "A broker that looks only at the head would keep them all for an hour.\n\n")
	for i, ttl := range append([]time.Duration{longTTL}, ttls...) {
		id := "the-hour"
		if i > 0 {
			id = "order-" + strconv.Itoa(i)
			c.due[id] = promised{time.Now().Add(ttl), ttl}
		}
		m := amqp091.Publishing{MessageId: id, Expiration: strconv.FormatInt(ttl.Milliseconds(), 10), Body: []byte(id)}
		if err := c.ch.PublishWithContext(ctx, "", queue, false, false, m); err != nil {
			return err
		}
	}
	return nil
}

// watch takes dead letters until all awaited have come, or the last of them is too late.
func (c *watcher) watch(ctx context.Context) error {
	var last time.Time
	for _, d := range c.due {
		if d.at.After(last) {
			last = d.at
		}
	}
	giveUp := time.NewTimer(time.Until(last) + 2*maxLateness)
	defer giveUp.Stop()
	for len(c.due) > 0 {
		select {
		case d, open := <-c.dead:
			if !open {
				return errors.New("demo: the connection broke")
			}
			c.check(&d, time.Now())
		case <-giveUp.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// check judges one dead letter that arrived at now.
func (c *watcher) check(d *amqp091.Delivery, now time.Time) {
	due, awaited := c.due[d.MessageId]
	if !awaited {
		c.fail("%s came back and should not have", d.MessageId)
		return
	}
	delete(c.due, d.MessageId)
	lateness := now.Sub(due.at)
	c.worst = max(c.worst, lateness)
	fmt.Fprintf(c.w, "  %-8s  lived %6s  dead-lettered (%v) %6.1f ms late\n",
		d.MessageId, due.ttl, d.Headers["x-first-death-reason"], millis(lateness))
	switch {
	case lateness < 0:
		c.fail("%s came %.1f ms early", d.MessageId, -millis(lateness))
	case lateness > maxLateness:
		c.fail("%s came %.1f ms late", d.MessageId, millis(lateness))
	}
}

// summarize prints the result. The error names everything that went wrong.
func (c *watcher) summarize(sent int) error {
	for id := range c.due {
		c.fail("%s did not come back", id)
	}
	q, err := c.ch.QueueDeclarePassive(queue, false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("demo: inspect the queue: %w", err)
	}
	hour := "is still queued"
	if q.Messages != 1 {
		hour = "should be the only one in the queue, but it has " + strconv.Itoa(q.Messages)
		c.fail("the one-hour message %s", hour)
	}
	fmt.Fprintf(c.w, "\n%d of %d back, the latest %.1f ms late; the one-hour message %s.\n", sent-len(c.due), sent, millis(c.worst), hour)
	if err := errors.Join(c.wrong...); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	_, err = fmt.Fprint(c.w, next)
	return err
}

func (c *watcher) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Errorf(format, args...))
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
