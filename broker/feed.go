package broker

import (
	"context"
	"sync"
	"sync/atomic"
)

// EventKind says what happened to a message with a deadline.
type EventKind uint8

const (
	// DeadlineEnqueued: it has come into a queue, with this deadline.
	DeadlineEnqueued EventKind = iota
	// DeadlineSettled: it left its queue, or has another deadline, of which
	// DeadlineRescheduled tells next unless it is none. Told only of messages named to
	// TrackDeadlines or Deadlines before. What Expire removed is told to its caller alone.
	DeadlineSettled
	// DeadlineRescheduled: it has this deadline now (Reschedule), maybe one it had before.
	DeadlineRescheduled
)

// Action is what became of an expired message.
type Action uint8

const (
	// Dropped: its queue has no dead-letter exchange, or a cycle was cut.
	Dropped Action = iota
	// DeadLettered: it stands in the queues its dead-letter exchange routes to.
	DeadLettered
	// Parked: its dead-letter exchange is missing or routes nowhere.
	Parked
	// Retained: not all queues its dead-letter exchange routes to took it, and its
	// own keeps it (x-dead-letter-strategy at-least-once) until they do.
	Retained
)

// Path says who noticed an expiry.
type Path uint8

const (
	// Lazy: a delivery or a get met the message.
	Lazy Path = iota
	// Requeued: it came back past its deadline.
	Requeued
	// Eager: Expire named it, as the schedule fired.
	Eager
	// Index: Expire named it, as the monitor's own index fired in place of a schedule
	// that was away.
	Index
	// Stalled: Expire named it, as the index fired in place of a schedule that was up.
	Stalled
	// Manual: Reschedule or FireNow made its deadline come, before its time as a rule.
	Manual
	// Scheduled: a delayed message was due, which is no expiry, and could go nowhere.
	Scheduled
)

// named says whether Expire named it.
func (p Path) named() bool { return p == Eager || p == Index || p == Stalled }

// MessageRef names one message in one queue. Incarnations are not used again, nor
// are sequence numbers within one while the process lives; after a restart it is
// the deadline that tells an old reference from a new message.
type MessageRef struct {
	Deadline int64  // Unix µs
	Queue    uint64 // incarnation of the queue
	Seq      uint64 // sequence number in the queue
}

// DeadlineEvent is one entry of the feed.
type DeadlineEvent struct {
	Ref  MessageRef
	Kind EventKind
}

// feedEvents bounds the feed. A full feed drops events and says so once
// (lagged); the subscriber then takes a new snapshot. 32 B each.
const feedEvents = 1 << 18

// feed carries deadline events to one subscriber. Leaf lock: pushed to under
// queue locks so that the events of one message stay in order.
type feed struct {
	mu      sync.Mutex
	on      atomic.Bool // somebody has subscribed
	lagged  bool
	events  []DeadlineEvent
	reading []DeadlineEvent // what the subscriber takes from, from next on
	next    int
	signal  chan struct{}
}

// feedKeep is how many events' room an emptied buffer keeps when no more than an eighth
// of it was needed.
const feedKeep = 1 << 14

func (f *feed) init() { f.signal = make(chan struct{}, 1) }

// push appends events; never blocks.
func (f *feed) push(events []DeadlineEvent) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	first := len(f.events) == 0
	switch {
	case !f.on.Load():
		first = false
	case len(f.events)+len(events) > feedEvents:
		f.lagged = true
	default:
		f.events = append(f.events, events...)
	}
	f.mu.Unlock()
	if first {
		select {
		case f.signal <- struct{}{}:
		default:
		}
	}
}

// take moves up to len(buf) events into buf.
func (f *feed) take(buf []DeadlineEvent) (n int, lagged bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on.Store(true)
	if f.next == len(f.reading) {
		if cap(f.reading) > feedKeep && len(f.events) < cap(f.reading)/8 {
			f.reading = nil
		}
		f.reading, f.events, f.next = f.events, f.reading[:0], 0
	}
	n = copy(buf, f.reading[f.next:])
	f.next += n
	lagged, f.lagged = f.lagged, false
	return n, lagged
}

// subscribe lets events in.
func (f *feed) subscribe() { f.on.Store(true) }

// DeadlineEvents waits for events of messages with finite deadlines and moves
// them into buf, in order for each message. lagged says that events were lost
// since the last call; Deadlines then gives the present state. The first call
// (or the first of Deadlines) subscribes; there is one subscriber. Its error is that of ctx.
func (b *Broker) DeadlineEvents(ctx context.Context, buf []DeadlineEvent) (n int, lagged bool, err error) {
	for {
		if n, lagged = b.feed.take(buf); n > 0 || lagged {
			return n, lagged, nil
		}
		select {
		case <-b.feed.signal:
		case <-ctx.Done():
			return 0, false, ctx.Err()
		}
	}
}
