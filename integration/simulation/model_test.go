package simulation

import (
	"fmt"
	"slices"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// model is what the broker should do, said as plainly as possible: lists that are searched
// from the front, one goroutine, no store. A call into the broker is first predicted here
// and then compared with what the broker did.
type model struct {
	now        int64 // Unix ns; of the present call
	rules      rules
	queues     map[string]*modelQueue
	byID       map[uint64]*modelQueue
	bindings   []binding
	subscribed bool // somebody reads the broker's feed
	all        []*entry
	broken     func(format string, args ...any)

	// What the present call did.
	taken  map[*modelQueue][]taken           // to consumers and gets, in order
	from   []*modelQueue                     // the queues in taken, in order
	spent  map[*modelQueue]int               // of the credit of its consumers
	events map[deadline.Ref][]deadline.Event // reported but not yet read from the feed
	ends   map[deadline.Ref]deadline.Expiry  // what expired in the call
	count  counts

	sources []*modelQueue // with pending dead letters
}

// rules are the options of the broker that affect messages.
type rules struct {
	messageFirst bool // of two times to live, the message's counts
	park         bool // dead letters that cannot be routed
}

// state is where an entry is.
type state uint8

const (
	ready state = iota
	leaving
	held // by a consumer or a get, unacked
	gone
)

// ending is the reason for which a message left its queue.
type ending string

const (
	acked    ending = "acked"
	expired  ending = "expired"
	rejected ending = "rejected"
	maxlen   ending = "maxlen"
	purged   ending = "purged"
	refused  ending = "refused"

	undelivered ending = "delivery_limit"
	crashed     ending = "lost in a crash, unconfirmed or transient"
)

// entry is a message in one queue, from its arrival to its end. A dead letter is a new
// entry.
type entry struct {
	id            int // of its publish
	body          []byte
	props         amqp.Properties // as a consumer must see them, apart from BCC
	exchange, key string
	oneKey        bool // it was routed by the dead-letter routing key of a queue: CC and BCC no longer count

	queue       *modelQueue
	seq         queue.Seq
	deadline    deadline.Instant // 0: never
	dueNanos    int64            // Unix ns, the exact value: nothing may expire before it
	instant     bool             // a time to live of zero, or a deadline that had passed
	stale       bool             // a deadline that had passed: nobody may take it
	redelivered bool
	tracked     bool
	failed      int64   // failed deliveries
	deaths      []death // newest first
	state       state
	end         ending
}

// binding leads from amq.fanout or amq.direct to a queue.
type binding struct {
	exchange, key string
	to            *modelQueue
}

// taken is a delivery: its entry, and how many messages were ready behind it.
type taken struct {
	entry  *entry
	behind int
}

func newModel(r rules, broken func(string, ...any)) *model {
	m := &model{
		rules: r, queues: map[string]*modelQueue{}, byID: map[uint64]*modelQueue{},
		events: map[deadline.Ref][]deadline.Event{}, broken: broken,
	}
	m.begin(0)
	return m
}

// begin forgets what the last call did.
func (m *model) begin(nowNanos int64) {
	m.now = nowNanos
	m.from = nil
	m.ends = map[deadline.Ref]deadline.Expiry{}
	m.taken, m.spent = map[*modelQueue][]taken{}, map[*modelQueue]int{}
}

const (
	millisecond = int64(1e6)
	microsecond = int64(1e3)
)

func (m *model) nowAt() deadline.Instant { return deadline.Instant(m.now / microsecond) }
func (m *model) stampAt() deadline.Instant {
	return deadline.Instant((m.now + microsecond - 1) / microsecond)
}

func (e *entry) String() string {
	return fmt.Sprintf("m%d in %s (%v)", e.id, e.queue.name, e.seq)
}

// persistent: a quorum queue keeps every message.
func (e *entry) persistent() bool { return e.props.DeliveryMode == 2 || e.queue.quorum }

func (e *entry) ref() deadline.Ref {
	return deadline.Ref{Deadline: e.deadline, Queue: e.queue.id, Seq: uint64(e.seq)}
}

// due reports whether whoever meets the entry must let it expire.
func (m *model) due(e *entry) bool { return e.deadline != 0 && m.nowAt() >= e.deadline }

// deliverable: the entry is not due, or was published for this very instant.
func (m *model) deliverable(e *entry) bool {
	return !m.due(e) || e.instant && !e.stale && m.nowAt() == e.deadline
}

// leave is the only way out of a queue: once for each entry, and never by expiry before its
// time.
func (m *model) leave(e *entry, end ending) {
	if e.state == gone || e.end != "" {
		m.broken("%v left as %s after it had left as %s", e, end, e.end)
	}
	if end == expired && m.now < e.dueNanos {
		m.broken("%v expired %d ns early", e, e.dueNanos-m.now)
	}
	e.state, e.end = gone, end
	q := e.queue
	if i := slices.Index(q.entries, e); i >= 0 {
		q.entries = slices.Delete(q.entries, i, i+1)
	}
}

// settle lets an entry leave. It becomes a dead letter if the queue has a dead-letter
// exchange. settle also records the event that the feed must report.
func (m *model) settle(e *entry, end ending, path deadline.Path) {
	m.leave(e, end)
	m.reportSettled(e, path)
	if e.queue.deadLetters && (end == expired || end == rejected || end == maxlen || end == undelivered) {
		m.queueDeadLetter(&deadLetter{entry: e, path: path, at: m.nowAt()})
		return
	}
	if end == expired {
		m.count.expiredDropped++
		m.reportExpired(e, path, deadline.Dropped)
	}
}

// reportSettled records the feed's event. What Expire removed is in its answer and not in
// the feed.
func (m *model) reportSettled(e *entry, path deadline.Path) {
	if e.tracked && path != deadline.Eager && path != deadline.Index && path != deadline.Stalled {
		m.reportEvent(e, deadline.Event{Kind: deadline.Left})
	}
}

func (m *model) reportEvent(e *entry, event deadline.Event) {
	if m.subscribed {
		event.Ref = e.ref()
		m.events[event.Ref] = append(m.events[event.Ref], event)
	}
}

// reportExpired records an expiry, which the broker must report once, with what became of
// the message.
func (m *model) reportExpired(e *entry, path deadline.Path, action deadline.Action) {
	m.ends[e.ref()] = deadline.Expiry{VHost: "/", Queue: e.queue.name, Ref: e.ref(), Arrived: m.nowAt(), Path: path, Action: action}
}
