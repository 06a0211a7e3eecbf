package delivery

import (
	"bytes"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/message"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Browse says which messages of a queue to read.
type Browse struct {
	FromTail bool        // newest first, by the order of delivery; false: from the head
	After    queue.Seq   // the last message of the previous page; 0: begin at the head or at the tail
	Offset   int         // how many messages in State to skip
	Count    int         // how many to return at most
	State    queue.State // queue.Ready, queue.Unacked or queue.Waiting; 0: any
	// BodyBytes is how much of each body to copy; negative: all.
	BodyBytes int
	// Bytes ends the browse once that many bytes have been copied in all, so that fewer than
	// Count messages may be returned; 0: no bound.
	Bytes int
	// Unnoticed: it does not count as use of the queue, since nobody asked for this queue's messages.
	Unnoticed bool
}

// Browsed is a copy of one message in its queue: the slices are the caller's.
type Browsed struct {
	Seq         queue.Seq
	State       queue.State
	Position    int              // among the messages in the wanted state, counted from After or from where the browse began
	Deadline    deadline.Instant // 0: none
	WaitsUntil  deadline.Instant // when a waiting one is ready again; 0 for others
	Expired     bool             // its deadline has come and it is still here: nobody has noticed yet, or a consumer holds it
	Persistent  bool
	Redelivered bool
	Failed      uint16           // deliveries that failed
	EnqueuedAt  deadline.Instant // 0: not known
	Message     store.Message    // Body is cut to BodyBytes; BCC is left out of the Properties
	BodyBytes   int              // the size of the whole body
}

// browseScan is how many entries are read under one lock.
const browseScan = 4096

// Browse reads messages without taking them: nothing is marked. It counts as use for
// x-auto-delete-on-idle, but not for x-expires. The queue's lock is held for one page at a time,
// so a long browse is not a snapshot: it may or may not include messages that enter or leave
// during it. Error: 404, the queue is deleted.
func (q *messages) Browse(b Browse) ([]Browsed, error) {
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

// browser is a browse in progress.
type browser struct {
	q       *messages
	want    Browse
	last    queue.Seq // read
	matched int
	copied  int // bytes
}

// page goes on until the browse is complete, the queue ends (more is false) or the lock has
// been held for long enough. Messages are copied after that, without the lock.
func (at *browser) page(found []Browsed) (_ []Browsed, more bool, err error) {
	page, more, err := at.entries(at.want.Count - len(found))
	for i := range page {
		x := &page[i]
		if at.want.Bytes != 0 && at.copied >= at.want.Bytes {
			at.q.env.Store.Release(x.pos)
			continue
		}
		at.copy(x)
		at.copied += len(x.Message.Body) + len(x.Message.Properties)
		found = append(found, x.Browsed)
	}
	return found, more, err
}

// browsedEntry is a message that is kept in the store until it is copied.
type browsedEntry struct {
	Browsed
	pos    store.Pos
	hidden bool
}

// entries reads the entries of a page, of which most are wanted at most.
func (at *browser) entries(most int) (page []browsedEntry, more bool, err error) {
	q := at.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return nil, false, NoQueue(q.vhost, q.Name)
	}
	seen, now := 0, q.env.Clock.Now()
	if !at.want.Unnoticed {
		q.lastUsedAt = now
	}
	visit := func(s queue.Seq, m queue.Message, state queue.State) bool {
		if seen >= browseScan || len(page) == min(most, queue.AtOnce) {
			more = true
			return false
		}
		at.last = s
		seen++
		if at.want.State != 0 && state != at.want.State {
			return true
		}
		if at.matched++; at.matched > at.want.Offset {
			page = append(page, at.entryLocked(s, m, state, now))
		}
		return true
	}
	if at.want.FromTail {
		q.core.EachBack(at.last, visit)
	} else if at.last != 0 {
		q.core.Each(at.last+1, visit)
	} else {
		q.core.Each(0, visit)
	}
	return page, more, nil
}

func (at *browser) entryLocked(s queue.Seq, m queue.Message, state queue.State, now deadline.Instant) browsedEntry {
	pos := store.Pos(m.Pos)
	at.q.env.Store.Retain(pos, 1)
	_, failed, _ := at.q.core.Find(s)
	return browsedEntry{pos: pos, hidden: m.Flags&queue.Hidden != 0, Browsed: Browsed{
		Seq: s, State: state, Position: at.matched - 1,
		Deadline: m.ExpiresAt, WaitsUntil: at.q.core.WaitsUntil(s), Expired: m.ExpiresAt != 0 && now >= m.ExpiresAt,
		Persistent: m.Flags&queue.Durable != 0, Redelivered: m.Flags&queue.Redelivered != 0,
		Failed: failed, EnqueuedAt: at.q.enqueued.at(s),
	}}
}

// copy copies a message out of the store.
func (at *browser) copy(x *browsedEntry) {
	stored := at.q.env.Store.View(x.pos)
	if x.hidden {
		stored.Properties = message.WithoutBCC(stored.Properties)
	}
	body := stored.Body
	if at.want.BodyBytes >= 0 && len(body) > at.want.BodyBytes {
		body = body[:at.want.BodyBytes]
	}
	x.Message = store.Message{
		Exchange: bytes.Clone(stored.Exchange), RoutingKey: bytes.Clone(stored.RoutingKey),
		Properties: bytes.Clone(stored.Properties), Body: bytes.Clone(body),
	}
	x.BodyBytes = len(stored.Body)
	at.q.env.Store.Release(x.pos)
}

// BrowseOne copies one message as Browse does, with bodyBytes of its body (<0: all); false if
// it is gone. Nothing is marked.
func (q *messages) BrowseOne(seq queue.Seq, bodyBytes int) (x Browsed, ok bool) {
	at := browser{q: q, want: Browse{BodyBytes: bodyBytes}, matched: 1}
	var found browsedEntry
	q.mu.Lock()
	q.core.Find(seq) // one that a purge has left behind is found by Each from then on
	q.core.Each(seq, func(s queue.Seq, m queue.Message, state queue.State) bool {
		if ok = s == seq; ok {
			found = at.entryLocked(s, m, state, q.env.Clock.Now())
		}
		return false
	})
	q.mu.Unlock()
	if ok {
		at.copy(&found)
	}
	return found.Browsed, ok
}

// DeadlinesOf appends the deadline of each message to out: 0 for one that has none, or is gone.
func (q *messages) DeadlinesOf(seqs []queue.Seq, out []deadline.Instant) []deadline.Instant {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, seq := range seqs {
		m, _, _ := q.core.Find(seq)
		out = append(out, m.ExpiresAt)
	}
	return out
}

// Decode parses the message's properties, death headers included.
func (x *Browsed) Decode() (amqp.Properties, error) { return x.DecodeWanted(nil) }

// DecodeWanted is Decode with only some headers (amqp.ParseWanted).
func (x *Browsed) DecodeWanted(wants func(name []byte) bool) (amqp.Properties, error) {
	return amqp.ParseWanted(x.Message.Properties, message.StoredLimits, wants)
}
