package load

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"curfew/broker/amqp"
)

// Due is a workload of many messages that all come due at one instant, on a queue that
// nobody consumes.
type Due struct {
	URL        string        `json:"url"`
	Count      int           `json:"count"`
	Lead       time.Duration `json:"lead"` // from the first publish to the instant; publishing must end before it
	Size       int           `json:"size"`
	DeadLetter bool          `json:"deadLetter,omitempty"` // to a queue with a consumer; false: they are dropped
	Persist    bool          `json:"persistent,omitempty"`
	QueueType  string        `json:"queueType,omitempty"`
	Queue      string        `json:"queue,omitempty"` // an existing queue, which is left as it is; "": a new one
	MaxWait    time.Duration `json:"patience"`        // how long to wait after the instant
}

// DueResult is how long after the instant the last message had been dead-lettered to its
// consumer, or was gone. To see that it is gone, Run asks for the length of the queue about
// every millisecond.
type DueResult struct {
	Count   int     `json:"count"`
	Gone    int     `json:"gone"` // within MaxWait
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"perSecond"`
	Publish float64 `json:"publishedPerSecond"`
}

// ErrLead means that the broker did not accept all messages before the instant.
var ErrLead = errors.New("longer than the lead")

// Run publishes, waits for the instant, and measures. It removes what it declared.
func (d Due) Run(ctx context.Context) (result DueResult, err error) {
	d.Size = max(d.Size, minBody)
	d.MaxWait = cmp.Or(d.MaxWait, time.Minute)
	admin, err := logIn(d.URL)
	if err != nil {
		return result, err
	}
	defer admin.Close()
	queues := newDeadlineQueues()
	if d.Queue == "" {
		d.Queue = queues.from
		if err := queues.declare(admin, d.Persist, d.QueueType, d.DeadLetter); err != nil {
			return result, fmt.Errorf("load: declare: %w", err)
		}
		defer func() { err = errors.Join(err, removeQueues(admin, queues)) }()
	}
	before, err := length(admin, d.Queue)
	if err != nil {
		return result, err
	}
	var dead *Conn
	if d.DeadLetter {
		if dead, err = consumeDead(d.URL, queues.dead); err != nil {
			return result, err
		}
		defer dead.Close()
	}
	start := time.Now()
	instant := start.Add(d.Lead)
	if err := d.publish(ctx, instant); err != nil {
		return result, err
	}
	result = DueResult{Count: d.Count, Publish: float64(d.Count) / time.Since(start).Seconds()}
	limit, cancel := context.WithDeadline(ctx, instant.Add(d.MaxWait))
	defer cancel()
	if left := time.Until(instant); left < 20*time.Millisecond {
		late := fmt.Errorf("load: publishing %d messages took %v, %w", d.Count, d.Lead-left, ErrLead)
		_, _, err := d.watch(limit, admin, before, instant) // otherwise the next run finds them in the queue
		return result, errors.Join(late, err)
	}
	var last time.Time
	if dead != nil {
		result.Gone, last, err = countDead(limit, dead, d.Count)
	} else {
		result.Gone, last, err = d.watch(limit, admin, before, instant)
	}
	result.Seconds = last.Sub(instant).Seconds()
	if result.Gone > 0 && result.Seconds > 0 {
		result.Rate = float64(result.Gone) / result.Seconds
	}
	return result, err
}

// publish sends the messages, each batch with the remaining time to live, and waits for the
// last confirm.
func (d *Due) publish(ctx context.Context, instant time.Time) error {
	c, err := logIn(d.URL)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Call(channel, &amqp.ConfirmSelect{}, amqp.ConfirmSelectOkID); err != nil {
		return err
	}
	const batch, ahead = 500, 20_000
	confirmed := 0
	follow := newConfirms(ahead)
	a := arrivals{onBody: func([]byte) {}, onConfirm: func(tag uint64, multiple, nack bool) {
		confirmed += follow.confirm(tag, multiple, nack, 1)
	}}
	body := make([]byte, d.Size)
	var out []byte
	for sent := 0; confirmed < d.Count && ctx.Err() == nil; {
		n := min(batch, d.Count-sent)
		if n > 0 && sent-confirmed < ahead {
			out = out[:0]
			ttl := max(time.Millisecond, time.Until(instant))
			for i := range n {
				binary.BigEndian.PutUint64(body[stampSize:], uint64(sent+i))
				out = appendPublish(out, d.Queue, ttl, d.Persist, body)
			}
			follow.add(n, 1)
			if _, err := c.Write(out); err != nil {
				return err
			}
			sent += n
			continue
		}
		if err := c.fill(); err != nil {
			return err
		}
		used, err := a.walk(c.buf[c.from:c.to])
		if err != nil {
			return err
		}
		c.from += used
	}
	return ctx.Err()
}

// consumeDead subscribes to the dead letters.
func consumeDead(url, queue string) (*Conn, error) {
	c, err := logIn(url)
	if err != nil {
		return nil, err
	}
	_, err = c.Call(channel, &amqp.BasicConsume{Queue: queue, NoAck: true}, amqp.BasicConsumeOkID)
	return c, err
}

// countDead returns how many dead letters arrived, and when the last one did.
func countDead(ctx context.Context, c *Conn, count int) (n int, last time.Time, err error) {
	defer context.AfterFunc(ctx, func() { c.Close() })()
	a := arrivals{onBody: func([]byte) {}, onConfirm: func(uint64, bool, bool) {}}
	err = c.readEach(func(b []byte) (int, error) {
		used, err := a.walk(b)
		if a.deliveries > n {
			n, last = a.deliveries, time.Now()
		}
		if n == count {
			c.Close()
		}
		return used, err
	})
	return n, last, exceptClosed(err)
}

// watch asks for the queue's length until it is what it was before.
func (d *Due) watch(ctx context.Context, c *Conn, before int, instant time.Time) (n int, last time.Time, err error) {
	pause(ctx, time.Until(instant))
	for ctx.Err() == nil {
		left, err := length(c, d.Queue)
		last = time.Now()
		if n = d.Count - max(0, left-before); err != nil || left <= before {
			return n, last, err
		}
		pause(ctx, time.Millisecond)
	}
	return n, last, nil
}

// length returns how many messages are ready in a queue.
func length(c *Conn, queue string) (int, error) {
	m, err := c.Call(channel, &amqp.QueueDeclare{Queue: queue, Passive: true}, amqp.QueueDeclareOkID)
	if err != nil {
		return 0, err
	}
	return int(m.(*amqp.QueueDeclareOk).MessageCount), nil
}

// QueueLength returns how many messages are ready in a queue of the broker.
func QueueLength(url, queue string) (int, error) {
	c, err := logIn(url)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return length(c, queue)
}
