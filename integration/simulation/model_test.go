package simulation

import (
	"fmt"
	"slices"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// model is what the broker should do, as plainly as it can be said: lists that are
// searched from the front, one goroutine, no store. A call into the broker is
// predicted here first and then compared with what the broker did.
type model struct {
	now        int64 // Unix ns; of the call under way
	rules      rules
	queues     map[string]*modelQueue
	byID       map[uint64]*modelQueue
	bindings   []binding
	subscribed bool // somebody reads the broker's feed
	all        []*entry
	broken     func(format string, args ...any)

	// What the call under way did.
	taken map[*modelQueue][]taken                      // to consumers and gets, in order
	from  []*modelQueue                                // the queues in taken, as they come
	spent map[*modelQueue]int                          // of its consumers' credit
	told  map[broker.MessageRef][]broker.DeadlineEvent // and not yet read from the feed
	ends  map[broker.MessageRef]broker.Expiry          // of what expired in the call
	count counts

	sources []*modelQueue // with dead letters in line
}

// rules are the options of the broker that decide about messages.
type rules struct {
	messageFirst bool // of two times to live, the message's
	park         bool // dead letters that cannot be routed
}

// state says where an entry is.
type state uint8

const (
	ready state = iota
	leaving
	held // by a consumer or a get, unacked
	gone
)

// ending is the one reason for which a message left its queue.
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

// entry is a message in one queue, from its arrival there to its one end. A dead
// letter is a new entry.
type entry struct {
	id            int // of its publish
	body          []byte
	props         amqp.Properties // as a consumer is to see them, BCC aside
	exchange, key string
	oneKey        bool // it came by the key of a queue it died in: CC and BCC do not count any more

	queue       *modelQueue
	seq         queue.Seq
	deadline    int64 // Unix µs; 0: never
	dueNanos    int64 // Unix ns, by exact reckoning: before it, nothing may expire
	instant     bool  // a time to live of zero, or a deadline that had passed
	stale       bool  // the latter: nobody may take it
	redelivered bool
	tracked     bool
	failed      int64   // deliveries
	deaths      []death // newest first
	state       state
	end         ending
}

// binding leads from amq.fanout or amq.direct to a queue.
type binding struct {
	exchange, key string
	to            *modelQueue
}

// taken is a delivery: of which entry, and how many were ready behind it.
type taken struct {
	entry  *entry
	behind int
}

func newModel(r rules, broken func(string, ...any)) *model {
	m := &model{
		rules: r, queues: map[string]*modelQueue{}, byID: map[uint64]*modelQueue{},
		told: map[broker.MessageRef][]broker.DeadlineEvent{}, broken: broken,
	}
	m.begin(0)
	return m
}

// begin clears what the last call did.
func (m *model) begin(nowNanos int64) {
	m.now = nowNanos
	m.from = nil
	m.ends = map[broker.MessageRef]broker.Expiry{}
	m.taken, m.spent = map[*modelQueue][]taken{}, map[*modelQueue]int{}
}

const (
	millisecond = int64(1e6)
	microsecond = int64(1e3)
)

func (m *model) nowAt() int64   { return m.now / microsecond }
func (m *model) stampAt() int64 { return (m.now + microsecond - 1) / microsecond }

func (e *entry) String() string {
	return fmt.Sprintf("m%d in %s (%v)", e.id, e.queue.name, e.seq)
}

// persistent: a quorum queue keeps what it is given.
func (e *entry) persistent() bool { return e.props.DeliveryMode == 2 || e.queue.quorum }

func (e *entry) ref() broker.MessageRef {
	return broker.MessageRef{Deadline: e.deadline, Queue: e.queue.id, Seq: uint64(e.seq)}
}

// due: whoever looks at it, lets it expire.
func (m *model) due(e *entry) bool { return e.deadline != 0 && m.nowAt() >= e.deadline }

// deliverable: not due, or published for this very instant.
func (m *model) deliverable(e *entry) bool {
	return !m.due(e) || e.instant && !e.stale && m.nowAt() == e.deadline
}

// leave is the one way out of a queue: once for each entry, and never by expiry
// before its time.
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

// settle lets an entry leave, for its grave if the queue has a dead-letter
// exchange, and says what the feed will tell of it.
func (m *model) settle(e *entry, end ending, path broker.Path) {
	m.leave(e, end)
	m.tellSettled(e, path)
	if e.queue.deadLetters && (end == expired || end == rejected || end == maxlen || end == undelivered) {
		m.post(&burial{entry: e, path: path, at: m.nowAt()})
		return
	}
	if end == expired {
		m.count.expiredDropped++
		m.tellExpired(e, path, broker.Dropped)
	}
}

// tellSettled: what Expire removed is answered to who asked for it.
func (m *model) tellSettled(e *entry, path broker.Path) {
	if e.tracked && path != broker.Eager && path != broker.Index && path != broker.Stalled {
		m.tell(e, broker.DeadlineEvent{Kind: broker.DeadlineSettled})
	}
}

func (m *model) tell(e *entry, event broker.DeadlineEvent) {
	if m.subscribed {
		event.Ref = e.ref()
		m.told[event.Ref] = append(m.told[event.Ref], event)
	}
}

// tellExpired: each expiry is told once, with what became of it.
func (m *model) tellExpired(e *entry, path broker.Path, action broker.Action) {
	m.ends[e.ref()] = broker.Expiry{VHost: "/", Queue: e.queue.name, Ref: e.ref(), At: m.nowAt(), Path: path, Action: action}
}
