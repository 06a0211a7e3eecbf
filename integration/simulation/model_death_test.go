package simulation

import (
	"fmt"
	"slices"
	"strconv"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
)

// death is an entry of a message's death history: how often it died in this queue for this
// reason, and what it was like the first time.
type death struct {
	queue      string
	reason     ending
	count      int64
	seconds    int64 // of the first
	last       int64 // of the last, if there were several; 0: not
	exchange   string
	keys       []any
	expiration string
	expires    bool
	until      any // the absolute deadline that it had
}

// deadLetter is an entry on its way to its queue's dead-letter exchange.
type deadLetter struct {
	entry  *entry
	path   deadline.Path
	at     deadline.Instant // when it died
	action deadline.Action
	copies int64 // number of copies of the message, once it is routed
	begun  bool
	to     []*modelQueue // targets that it has not reached yet
}

// turnLetters and turnEntries bound the dead letters of a queue that are routed in one
// turn, and the number of places they go to.
const (
	turnLetters = 256
	turnEntries = 1024
	// roundLetters is how many are routed in a round of turns, about; with many queues a turn is shorter, but not below turnFewest.
	roundLetters = 1 << 14
	turnFewest   = 8
)

// budget is what is left of a turn.
type budget struct{ letters, entries int }

// queueDeadLetter adds a dead letter to the pending ones of its queue.
func (m *model) queueDeadLetter(b *deadLetter) {
	q := b.entry.queue
	q.pendingDeadLetters = append(q.pendingDeadLetters, b)
	if !slices.Contains(m.sources, q) {
		m.sources = append(m.sources, q)
	}
}

// routeDeadLetters routes the dead letters of the call, and those that they cause, queue by
// queue. A queue that still has pending dead letters then waits behind the other queues that have had a turn; every second turn
// is of one that has had none.
// The caller moves the first of them, unless others wait for the caller (hurried).
func (m *model) routeDeadLetters(hurried bool) {
	var rest []*modelQueue
	left := budget{turnLetters, turnEntries}
	if hurried {
		left = budget{}
	}
	for left.letters > 0 && left.entries > 0 && len(m.sources) > 0 {
		q := m.sources[0]
		m.sources = m.sources[1:]
		if m.turn(q, &left); len(q.pendingDeadLetters) > 0 && !slices.Contains(m.sources, q) {
			rest = append(rest, q)
		}
	}
	newly, had := append(m.sources, rest...), []*modelQueue(nil)
	for turns := 1; len(newly)+len(had) > 0; turns++ {
		left := budget{min(turnLetters, max(turnFewest, roundLetters/(len(newly)+len(had)))), turnEntries}
		list := &had
		if len(newly) > 0 && (len(had) == 0 || turns%2 == 0) {
			list = &newly
		}
		q := (*list)[0]
		*list = (*list)[1:]
		m.sources = nil
		if m.turn(q, &left); len(q.pendingDeadLetters) > 0 {
			had = append(had, q)
		}
		for _, q := range m.sources {
			if !slices.Contains(newly, q) && !slices.Contains(had, q) {
				newly = append(newly, q)
			}
		}
	}
	m.sources = nil
}

// turn routes the first dead letters of a queue, in the order in which they died. A dead
// letter with more targets than are left in this turn continues in the next turn of its
// queue.
func (m *model) turn(q *modelQueue, left *budget) {
	var a arrivals
	var done []*deadLetter
	for n := len(q.pendingDeadLetters); n > 0 && left.letters > 0 && left.entries > 0; n-- {
		b := q.pendingDeadLetters[0]
		if left.letters--; !b.begun {
			b.begun, b.to = true, m.deadLetterTargets(b)
		}
		now := b.to[:min(len(b.to), left.entries)]
		left.entries -= len(now)
		b.to = b.to[len(now):]
		for _, to := range now {
			a.add(to, arrival{entry: b.entry.deadLetter(b), from: b})
		}
		if len(b.to) == 0 {
			q.pendingDeadLetters, done = q.pendingDeadLetters[1:], append(done, b)
		}
	}
	m.arrive(&a)
	for _, b := range done {
		if b.entry.end == expired {
			m.reportExpired(b.entry, b.path, b.action)
		}
	}
}

// deadLetterTargets returns the queues that a dead letter goes to.
func (m *model) deadLetterTargets(b *deadLetter) []*modelQueue {
	targets := m.route(b.entry.queue.dlx, b.keys())
	history := b.entry.history(int64(b.at))
	since := slices.IndexFunc(history, func(d death) bool { return d.reason == rejected })
	if b.copies = b.entry.copies(); since == 0 {
		b.copies = 1
	} else if since < 0 {
		since = len(history)
	}
	if len(targets) == 0 {
		return m.park(b, history)
	}
	kept := slices.DeleteFunc(targets, func(t *modelQueue) bool { return cycles(t.name, history) })
	m.count.cycles += len(targets) - len(kept)
	if len(kept) == 0 {
		m.count.deadLettersLost++
		return nil
	}
	if since > maxDeaths || b.copies > 1 && len(kept) > 1 && b.copies*int64(len(kept)) > maxCopies {
		m.count.bounded++
		return m.park(b, history)
	}
	b.copies *= int64(len(kept))
	b.action = deadline.DeadLettered
	m.count.dead[b.entry.end]++
	return kept
}

const (
	maxDeaths = 64
	maxCopies = 4096
)

// park sends a dead letter without targets to the queue for undeliverable messages, unless
// it died there.
func (m *model) park(b *deadLetter, history []death) []*modelQueue {
	if !m.rules.park || cycles(policy.UndeliverableQueue, history) {
		m.count.deadLettersLost++
		return nil
	}
	b.action = deadline.Parked
	m.count.parked++
	m.count.dead[b.entry.end]++
	return []*modelQueue{m.undeliverable()}
}

// copies returns how many copies of the message dead-lettering has made.
func (e *entry) copies() int64 {
	if n, ok := e.props.Headers["x-dead-letter-copies"].(int64); ok && len(e.deaths) > 0 {
		return n
	}
	return 1
}

// undeliverable returns the queue in which dead letters without a destination are parked.
func (m *model) undeliverable() *modelQueue {
	if q := m.queues[policy.UndeliverableQueue]; q != nil {
		return q
	}
	return m.declare(policy.UndeliverableQueue, 0, parking()) // its incarnation is known after the call
}

// route returns the queues of a message, each once, in the order of the keys that lead
// there.
func (m *model) route(exchange string, keys []string) (targets []*modelQueue) {
	add := func(q *modelQueue) {
		if q != nil && !slices.Contains(targets, q) {
			targets = append(targets, q)
		}
	}
	for _, key := range keys {
		if exchange == "" {
			add(m.queues[key])
		}
		for _, b := range m.bindings {
			if b.exchange == exchange && (exchange == "amq.fanout" || b.key == key) {
				add(b.to)
			}
		}
	}
	return targets
}

// keys returns the keys of a dead letter: that of its queue, or all with which its message
// was published.
func (b *deadLetter) keys() []string {
	q := b.entry.queue
	if q.ownKey {
		return []string{q.dlk}
	}
	return b.entry.routingKeys(true)
}

func (e *entry) routingKeys(bcc bool) []string {
	keys := []string{e.key}
	if e.oneKey {
		return keys
	}
	keys = append(keys, keyList(e.props.Headers["CC"])...)
	if bcc {
		keys = append(keys, keyList(e.props.Headers["BCC"])...)
	}
	return keys
}

func keyList(v any) (keys []string) {
	values, _ := v.([]any)
	for _, v := range values {
		keys = append(keys, v.(string))
	}
	return keys
}

// history returns the entry's death history with its present end in front: one item per
// queue and reason, with a count (RabbitMQ: Dead Letter Exchanges, Effects on Messages).
func (e *entry) history(nowAt int64) []death {
	now := death{queue: e.queue.name, reason: e.end, seconds: nowAt / 1e6, exchange: e.exchange}
	for _, key := range e.routingKeys(false) {
		now.keys = append(now.keys, key)
	}
	now.until = e.props.Headers["x-expires-at"]
	if _, has := e.expiration(); has {
		now.expiration, now.expires = e.props.Expiration, true
	}
	var rest []death
	for _, old := range e.deaths {
		if old.queue == now.queue && old.reason == now.reason {
			now = old
			now.last = nowAt / 1e6
		} else {
			rest = append(rest, old)
		}
	}
	now.count++
	return append([]death{now}, rest...)
}

// cycles reports whether a message with this history has died in that queue before, without
// a rejection since.
func cycles(name string, history []death) bool {
	for _, d := range history {
		if d.reason == rejected {
			return false
		}
		if d.queue == name {
			return true
		}
	}
	return false
}

// deadLetter returns the entry of the message in a queue that it was dead-lettered to.
func (e *entry) deadLetter(b *deadLetter) *entry {
	d := &entry{id: e.id, body: e.body, exchange: e.queue.dlx, key: b.keys()[0], deaths: e.history(int64(b.at)), oneKey: e.oneKey || e.queue.ownKey}
	d.props = clone(e.props)
	d.props.Expiration, d.props.Has = "", d.props.Has&^amqp.HasExpiration
	h := d.props.Headers
	delete(h, "x-expires-at")
	if delete(h, "x-dead-letter-copies"); b.copies > 1 {
		h["x-dead-letter-copies"] = b.copies
	}
	if e.end == undelivered && e.queue.maxDeliveries > 0 {
		h["DeadLetterReason"] = "MaxDeliveryCountExceeded"
		h["DeadLetterErrorDescription"] = fmt.Sprintf("Message could not be consumed after %d delivery attempts.", e.failed)
	}
	if len(e.deaths) == 0 {
		h["x-first-death-queue"], h["x-first-death-reason"], h["x-first-death-exchange"] = e.queue.name, string(e.end), e.exchange
	}
	h["x-last-death-queue"], h["x-last-death-reason"], h["x-last-death-exchange"] = e.queue.name, string(e.end), e.exchange
	var list []any
	for _, past := range d.deaths {
		list = append(list, past.table())
	}
	h["x-death"] = list
	return d
}

func (d *death) table() amqp.Table {
	t := amqp.Table{
		"count": d.count, "reason": string(d.reason), "queue": d.queue, "time": amqp.Timestamp(d.seconds),
		"exchange": d.exchange, "routing-keys": d.keys,
	}
	if d.last != 0 {
		t["last-time"] = amqp.Timestamp(d.last)
	}
	if d.expires {
		t["original-expiration"] = d.expiration
	}
	if d.until != nil {
		t["original-expires-at"] = d.until
	}
	return t
}

// clone copies properties so that the headers can be changed.
func clone(p amqp.Properties) amqp.Properties {
	headers := amqp.Table{}
	for name, v := range p.Headers {
		headers[name] = v
	}
	p.Headers = headers
	return p
}

// expiresAt returns the message's absolute deadline in Unix µs; 0: none.
func (e *entry) expiresAt() int64 {
	at, _ := e.props.Headers["x-expires-at"].(int64)
	return at * 1000
}

// expiration returns the message's own time to live in ms.
func (e *entry) expiration() (millis int64, has bool) {
	if e.props.Expiration == "" {
		return 0, false
	}
	millis, err := strconv.ParseInt(e.props.Expiration, 10, 64)
	return millis, err == nil
}
