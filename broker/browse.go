package broker

import (
	"time"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Browse says which of a queue's messages to look at.
type Browse struct {
	FromTail bool        // newest first, by the order of delivery; else from the head
	After    queue.Seq   // goes on behind this message of a page before; 0: at the end looked from
	Offset   int         // how many of State to pass over
	Count    int         // how many to return at most
	State    queue.State // queue.Ready or queue.Unacked; 0: both
	// BodyBytes is how much of each body to copy; negative: all.
	BodyBytes int
	// Bytes ends the browse once so much was copied in all, so that fewer than Count
	// are returned before the end; 0: no bound.
	Bytes int
}

// Browsed is one message as it stands in its queue, copied: the slices are the
// caller's.
type Browsed struct {
	Seq         queue.Seq
	State       queue.State
	Position    int   // among those of the wanted state, from the end looked from or After
	Deadline    int64 // Unix µs; 0: none
	Expired     bool  // its deadline has come, and it is still here: nobody met it, or somebody holds it
	Persistent  bool
	Redelivered bool
	Message     store.Message // Body is cut to BodyBytes; BCC is left out of the Properties
	BodyBytes   int           // the size of the whole body
}

const (
	// browseScan is how many entries are passed over under one lock, browseCopy how
	// many bytes are copied.
	browseScan = 4096
	browseCopy = 256 << 10
)

// Browse looks at messages without taking them: nothing is marked, nothing
// counts as use. The queue's lock is held for a page at a time, so a long browse is
// no snapshot: what comes or goes meanwhile may be seen or not. Error: 404, the queue
// is deleted.
func (q *Queue) Browse(b Browse) ([]Browsed, error) {
	var found []Browsed
	at := browser{q: q, want: b, last: b.After}
	for more := true; more && len(found) < b.Count && (b.Bytes == 0 || at.copied < b.Bytes); {
		var err error
		if found, more, err = at.page(found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// browser is a browse under way.
type browser struct {
	q       *Queue
	want    Browse
	last    queue.Seq // seen
	matched int
	copied  int // bytes
}

// page looks on until the browse is complete, the queue ends (more is false) or
// the lock has been held for long enough.
func (at *browser) page(found []Browsed) (_ []Browsed, more bool, err error) {
	q := at.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return nil, false, q.vh.noQueue(q.name)
	}
	seen, copied, now := 0, 0, q.vh.b.Now()
	q.stir(now)
	look := func(s queue.Seq, m queue.Message, state queue.State) bool {
		full := at.want.Bytes != 0 && at.copied+copied >= at.want.Bytes
		if seen >= browseScan || copied >= browseCopy || full || len(found) == at.want.Count {
			more = true
			return false
		}
		at.last = s
		seen++
		if at.want.State != 0 && state != at.want.State {
			return true
		}
		if at.matched++; at.matched > at.want.Offset {
			one := at.copy(s, m, state, now)
			copied += len(one.Message.Body) + len(one.Message.Properties)
			found = append(found, one)
		}
		return true
	}
	if at.want.FromTail {
		q.core.EachBack(at.last, look)
	} else if at.last != 0 {
		q.core.Each(at.last.Next(), look)
	} else {
		q.core.Each(0, look)
	}
	at.copied += copied
	return found, more, nil
}

// copy takes a message out of the store's memory, which may change after unlock.
func (at *browser) copy(s queue.Seq, m queue.Message, state queue.State, now int64) Browsed {
	stored := at.q.vh.b.store.View(store.Pos(m.Pos))
	if m.Flags&queue.Hidden != 0 {
		stored.Properties = withoutBCC(stored.Properties)
	}
	body := stored.Body
	if at.want.BodyBytes >= 0 && len(body) > at.want.BodyBytes {
		body = body[:at.want.BodyBytes]
	}
	return Browsed{
		Seq: s, State: state, Position: at.matched - 1,
		Deadline: m.ExpiresAt, Expired: m.ExpiresAt != 0 && now >= m.ExpiresAt,
		Persistent: m.Flags&queue.Durable != 0, Redelivered: m.Flags&queue.Redelivered != 0,
		Message: store.Message{
			Exchange: clone(stored.Exchange), RoutingKey: clone(stored.RoutingKey),
			Properties: clone(stored.Properties), Body: clone(body),
		},
		BodyBytes: len(stored.Body),
	}
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// Decode parses the message's properties, death headers included.
func (x *Browsed) Decode() (amqp.Properties, error) {
	return amqp.ParseProperties(x.Message.Properties, stored)
}

// ParseStored parses the property list of a message that the broker handed out.
func ParseStored(properties []byte) (amqp.Properties, error) {
	return amqp.ParseProperties(properties, stored)
}

// headTimestamp is the timestamp property of the first ready message; called
// with mu held.
func (q *Queue) headTimestamp() time.Time {
	_, m, ok := q.core.Head()
	if !ok {
		return time.Time{}
	}
	p, err := amqp.ParseProperties(q.vh.b.store.View(store.Pos(m.Pos)).Properties, stored)
	if err != nil || p.Timestamp == 0 {
		return time.Time{}
	}
	return time.Unix(int64(p.Timestamp), 0)
}
