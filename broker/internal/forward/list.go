package forward

import (
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Message is a message that waits to be enqueued.
type Message struct {
	Ref        deadline.Ref // Deadline is when it is due
	Exchange   string
	RoutingKey string
	Properties []byte // raw property list
	ID, User   string // message-id, and the user who published it; both are empty without the first
	Bytes      uint32 // of the body
}

// Waiting lists up to most messages that are not due yet, in the order of publishing, starting at a
// sequence number (0: the first); next is where to go on, 0 at the end. It is read in steps, so a
// message that leaves meanwhile may be missing.
func (d *Schedule) Waiting(from uint64, most int) (page []Message, next uint64) {
	for more := true; more && len(page) < most; more = next != 0 {
		page, next = d.waitingStep(from, most, page)
		from = next
	}
	return page, next
}

func (d *Schedule) waitingStep(from uint64, most int, page []Message) (_ []Message, next uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	most = min(most, len(page)+queue.AtOnce)
	d.read = 0
	d.core.Each(queue.Seq(from), func(seq queue.Seq, m queue.Message, _ queue.State) bool {
		if len(page) == most || d.read >= propertiesAtOnce {
			next = uint64(seq)
			return false
		}
		page = append(page, d.messageLocked(seq, &m))
		return true
	})
	return page, next
}

// RoutingKey is the routing key of the newest message with a message-id that a user has published to an
// exchange and that waits; empty: there is none.
func (d *Schedule) RoutingKey(exchange, user, id string) (key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seq, waits := d.findLocked(name{[]byte(exchange), []byte(user), []byte(id)}); waits {
		m, _, _ := d.core.Find(seq)
		key = string(d.env.Store.View(store.Pos(m.Pos)).RoutingKey)
	}
	return key
}

// Body copies the body of a message that waits; nil: it is gone.
func (d *Schedule) Body(ref deadline.Ref) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, _, ok := d.core.Find(queue.Seq(ref.Seq))
	if !ok || ref.Queue != d.id {
		return nil
	}
	return append([]byte{}, d.env.Store.View(store.Pos(m.Pos)).Body...)
}

// Leaving lists up to most messages that are due and on their way, starting at a number (0: the
// first); next is where to go on, 0 at the end.
func (d *Schedule) Leaving(from uint64, most int) (page []Message, next uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Letters.EachLocked(from, func(number uint64, x *delivery.Letter) bool {
		if len(page) == most {
			next = number
			return false
		}
		page = append(page, d.messageLocked(x.Settled.Seq, &x.Settled.Message))
		return true
	})
	return page, next
}

// messageLocked copies a message out of the store.
func (d *Schedule) messageLocked(seq queue.Seq, m *queue.Message) Message {
	src := d.env.Store.View(store.Pos(m.Pos))
	n, _, _ := nameOf(src)
	d.read += len(src.Properties)
	return Message{
		ID: string(n.id), User: string(n.user),
		Ref:      deadline.Ref{Deadline: m.ExpiresAt, Queue: d.id, Seq: uint64(seq)},
		Exchange: string(src.Exchange), RoutingKey: string(src.RoutingKey),
		Properties: append([]byte(nil), src.Properties...), Bytes: m.Bytes,
	}
}

// Count is how many messages wait.
func (d *Schedule) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.core.Ready.Count
}

// CountFor is how many messages to an exchange wait.
func (d *Schedule) CountFor(exchange string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byExchange[exchange]
}
