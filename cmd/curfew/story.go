package main

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
	storyQueue = "demo.orders"
	storyDLX   = "demo.expired"
	storyDead  = "demo.dead-letters"
	storyHour  = time.Hour
	// storyPatience is how late a message may be before the story has failed.
	storyPatience = 5 * time.Second
)

// story is a client that publishes messages with deadlines to a queue without a consumer and watches
// them come back as dead letters.
type story struct {
	w     io.Writer
	ch    *amqp091.Channel
	dead  <-chan amqp091.Delivery
	due   map[string]deadline // by message id; those still awaited
	worst time.Duration
	wrong []error
}

// deadline is when a message has to be back at the earliest: counted from before its publish, so that
// the broker can only be later.
type deadline struct {
	at  time.Time
	ttl time.Duration
}

// tellStory runs against the broker at url.
func tellStory(ctx context.Context, w io.Writer, url string, ttls []time.Duration) error {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return fmt.Errorf("demo: connect: %w", err)
	}
	defer conn.Close()
	s := &story{w: w, due: make(map[string]deadline)}
	if s.ch, err = conn.Channel(); err != nil {
		return fmt.Errorf("demo: open channel: %w", err)
	}
	if err := s.declare(); err != nil {
		return fmt.Errorf("demo: declare: %w", err)
	}
	if err := s.publish(ctx, ttls); err != nil {
		return fmt.Errorf("demo: publish: %w", err)
	}
	if err := s.watch(ctx); err != nil {
		return err
	}
	return s.sum(len(ttls))
}

func (s *story) declare() error {
	if err := s.ch.ExchangeDeclare(storyDLX, amqp091.ExchangeFanout, false, false, false, false, nil); err != nil {
		return err
	}
	args := amqp091.Table{"x-dead-letter-exchange": storyDLX}
	if _, err := s.ch.QueueDeclare(storyQueue, false, false, false, false, args); err != nil {
		return err
	}
	if _, err := s.ch.QueueDeclare(storyDead, false, false, false, false, nil); err != nil {
		return err
	}
	if err := s.ch.QueueBind(storyDead, "", storyDLX, false, nil); err != nil {
		return err
	}
	var err error
	s.dead, err = s.ch.Consume(storyDead, "", true, false, false, false, nil)
	return err
}

func (s *story) publish(ctx context.Context, ttls []time.Duration) error {
	fmt.Fprintf(s.w, "Queue %s has no consumer, and a message of an hour stands at its head.\n", storyQueue)
	fmt.Fprintf(s.w, "Behind it: %d messages that live %v, in this order.\n", len(ttls), ttls)
	fmt.Fprintf(s.w, "A broker that looks at the head alone would hold them all for an hour.\n\n")
	if err := s.send(ctx, "the-hour", storyHour); err != nil {
		return err
	}
	for i, ttl := range ttls {
		id := "order-" + strconv.Itoa(i+1)
		s.due[id] = deadline{time.Now().Add(ttl), ttl}
		if err := s.send(ctx, id, ttl); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) send(ctx context.Context, id string, ttl time.Duration) error {
	return s.ch.PublishWithContext(ctx, "", storyQueue, false, false, amqp091.Publishing{
		MessageId:  id,
		Expiration: strconv.FormatInt(ttl.Milliseconds(), 10),
		Body:       []byte(id),
	})
}

// watch takes dead letters until all awaited have come, or the last of them is too late.
func (s *story) watch(ctx context.Context) error {
	var last time.Time
	for _, d := range s.due {
		if d.at.After(last) {
			last = d.at
		}
	}
	giveUp := time.NewTimer(time.Until(last) + 2*storyPatience)
	defer giveUp.Stop()
	for len(s.due) > 0 {
		select {
		case d, open := <-s.dead:
			if !open {
				return errors.New("demo: the connection broke")
			}
			s.take(&d, time.Now())
		case <-giveUp.C:
			return nil
		case <-ctx.Done():
			return errors.New("demo: interrupted")
		}
	}
	return nil
}

// take judges one dead letter that arrived at now.
func (s *story) take(d *amqp091.Delivery, now time.Time) {
	due, awaited := s.due[d.MessageId]
	if !awaited {
		s.fail("%s came back and should not have", d.MessageId)
		return
	}
	delete(s.due, d.MessageId)
	lateness := now.Sub(due.at)
	s.worst = max(s.worst, lateness)
	fmt.Fprintf(s.w, "  %-8s  lived %6s  dead-lettered (%v) %6.1f ms late\n",
		d.MessageId, due.ttl, d.Headers["x-first-death-reason"], millis(lateness))
	switch {
	case lateness < 0:
		s.fail("%s came %.1f ms early", d.MessageId, -millis(lateness))
	case lateness > storyPatience:
		s.fail("%s came %.1f ms late", d.MessageId, millis(lateness))
	}
}

// sum ends the story: everything that went wrong as an error.
func (s *story) sum(sent int) error {
	for id := range s.due {
		s.fail("%s did not come back", id)
	}
	q, err := s.ch.QueueDeclarePassive(storyQueue, false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("demo: look at the queue: %w", err)
	}
	hour := "is still queued"
	if q.Messages != 1 {
		hour = "should be alone in the queue, but " + strconv.Itoa(q.Messages) + " are there"
		s.fail("the message of an hour %s", hour)
	}
	fmt.Fprintf(s.w, "\n%d of %d back, the latest %.1f ms late; the message of an hour %s.\n", sent-len(s.due), sent, millis(s.worst), hour)
	if err := errors.Join(s.wrong...); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	_, err = fmt.Fprint(s.w, demoNext)
	return err
}

func (s *story) fail(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Errorf(format, args...))
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
