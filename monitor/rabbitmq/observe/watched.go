package observe

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

const (
	// strangers is how often more messages may be ready than have entered, before a queue
	// counts as reached in other ways.
	strangers = 3
	// statisticsAge is how old RabbitMQ's statistics in an inventory may be, twice over.
	statisticsAge = 20 * time.Second
	// longestID bounds the part of a message-id that is kept, in bytes.
	longestID = 128
)

// watched is one queue that is observed. Only the loop changes it, except for the fields
// below mu, which others read or the tap changes.
type watched struct {
	name      string
	bindings  []cluster.Binding
	tap       *tap             // nil: none
	counted   time.Time        // last
	refused   string           // why RabbitMQ did not count it then; "": it did
	strangers int              // how often more were ready than have entered
	before    uint64           // how many had entered when it was last counted
	oddSince  deadline.Instant // since when more are ready than have entered; 0: that is not so
	published int64            // by RabbitMQ's statistics, when they first covered the tap; -1: not yet
	since     time.Time        // when the line began
	number    uint64           // of the line, from lines
	lines     *atomic.Uint64

	mu        sync.Mutex
	line      *line           // nil: it is not tapped
	from      *tap            // the tap whose messages line counts
	ttl       deadline.Millis // -1: none
	restarts  int
	ready     int
	consumers int
	seen      cluster.TTLStats
	reason    string // why it is not tapped

	deadLettered bool
	readAt       time.Time // when the tap was last read to its end
}

// untap closes the tap; the counts are dropped.
func (w *watched) untap() {
	if w.tap != nil {
		go w.tap.ch.Close() // which deletes it, and waits for the answer
		w.tap = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != nil {
		w.line = nil
		w.restarts++
	}
}

func (w *watched) setReason(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reason = reason
}

// checkPublished compares RabbitMQ's statistics with the tap. The first statistics that are
// no older than the tap are the base: every message published after them has to have reached
// the tap, since the statistics are older than the tap's count. Without statistics, one way to notice
// messages that bypass taps is missing.
func (w *watched) checkPublished(q *cluster.Queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil || time.Since(w.since) < statisticsAge || q.Unknown&cluster.UnknownGets != 0 {
		return
	}
	if w.published < 0 {
		w.published = q.Published
	} else if q.Published-w.published > int64(w.line.entered) {
		w.strangers = strangers
	}
}

// bypassed is the reason not to tap a queue that messages reach in other ways.
const bypassed = "It has more ready messages than its exchanges have routed to it: some arrive through the default exchange."

// adjust adapts the tap to the queue's settings and bindings.
func (w *watched) adjust(conn *amqp091.Connection, q *cluster.Queue, reason string, all []cluster.Binding) error {
	var bindings []cluster.Binding
	for _, b := range all {
		if b.Queue == q.Name {
			bindings = append(bindings, b)
		}
	}
	ttl := deadline.Millis(-1)
	if ms, ok := q.TTLMillis(); ok {
		ttl = ms
	}
	_, deadLettered := q.DeadLetterExchange()
	same := slices.EqualFunc(bindings, w.bindings, func(a, b cluster.Binding) bool {
		return a.Exchange == b.Exchange && a.RoutingKey == b.RoutingKey && fmt.Sprint(a.Arguments) == fmt.Sprint(b.Arguments)
	})
	w.setReason(reason)
	w.mu.Lock()
	w.ttl, w.deadLettered = ttl, deadLettered
	w.mu.Unlock()
	if w.tap != nil && reason == "" && same && !w.tap.gone.Load() {
		return nil
	}
	if !same {
		w.strangers = 0
	}
	w.untap()
	w.bindings = bindings
	if reason != "" {
		return nil
	}
	tap, err := openTap(conn, q.Name, bindings)
	if err != nil {
		return err
	}
	w.tap = tap
	w.mu.Lock()
	w.from = tap
	w.beginLocked()
	w.mu.Unlock()
	go tap.read(w.enter)
	return nil
}

// beginLocked starts counting from nothing.
func (w *watched) beginLocked() {
	w.line, w.number, w.published, w.since = newLine(), w.lines.Add(1), -1, time.Now()
	w.readAt = w.since
}

// enter notes a message at the moment the tap receives it.
func (w *watched) enter(tap *tap, d *amqp091.Delivery) {
	at := deadline.At(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil || w.from != tap {
		return
	}
	own := cluster.TimeToLive(d.Expiration)
	w.seen.Add(own, w.ttl)
	ttl, due := w.ttl, deadline.Instant(0)
	if ttl < 0 || own >= 0 && own < ttl {
		ttl = own
	}
	if ttl >= 0 {
		due = at.AddMillis(ttl)
	}
	id := d.MessageId
	if len(id) > longestID {
		id = id[:longestID]
	}
	w.line.Enter(due, ttl, strings.Clone(id))
}

func (w *watched) entered() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil {
		return 0
	}
	return w.line.entered
}

// pause returns how long the next count may wait.
func (w *watched) pause(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused != "" {
		return refusedEvery
	}
	if w.line == nil {
		return restEvery
	}
	if next := w.line.NextDeadline(); len(w.line.doubt) > 0 || next != 0 && next <= deadline.At(now) {
		return dueEvery
	}
	if len(w.line.overdue.Items) > 0 {
		return overdueEvery
	}
	return restEvery
}

// judge hands a count to the line, and appends the messages that are seen to have expired.
func (w *watched) judge(vhost string, c count, told []deadline.Expiry) []deadline.Expiry {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready, w.consumers = c.Ready, c.Consumers
	if w.line == nil || c.After < c.Before { // the tap was replaced
		return told
	}
	// While nobody consumes, messages only leave. If more are ready than the tap has seen, they came in another way.
	// (Or a consumer that was cancelled gave some back: so this has to happen more than once.) A tap that is a little
	// behind, on a busy machine, looks the same, but not for long.
	if w.line.counted != 0 && w.line.consumers == 0 && c.Consumers == 0 && int64(c.After)-int64(c.Ready) < w.line.gone {
		if w.oddSince == 0 {
			w.oddSince = c.Answered
		}
		if c.Answered.Sub(w.oddSince) < restEvery {
			return told
		}
		w.oddSince = 0
		w.strangers++
		w.restarts++
		w.beginLocked()
		return told
	}
	w.oddSince = 0
	action := deadline.Dropped
	if w.deadLettered {
		action = deadline.DeadLettered
	}
	for _, m := range w.line.Count(c, nil) {
		told = append(told, deadline.Expiry{Ref: deadline.Ref{Deadline: m.deadline, Queue: w.number, Seq: m.number}, VHost: vhost, Queue: w.name,
			Path: deadline.Lazy, Observed: true, Action: action, Arrived: c.Answered, MessageID: []byte(m.id)})
	}
	return told
}
