package simulation

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// settings are the settings with which a queue is declared.
type settings struct {
	durable, autoDelete, exclusive bool
	quorum                         bool

	ttlMillis, maxLength, maxBytes int64 // <0: none
	deliveryLimit                  int64 // <0: none
	maxDeliveries                  int64 // x-max-delivery-count; 0: none
	expiresMillis                  int64 // x-expires; 0: none
	overflow                       string
	priorities                     uint8
	deadLetters                    bool // has a dead-letter exchange
	dlx                            string
	ownKey                         bool // has a dead-letter routing key
	dlk                            string
}

// plain returns the settings of a queue without arguments.
func plain() settings { return settings{ttlMillis: -1, maxLength: -1, maxBytes: -1, deliveryLimit: -1} }

// parking returns the settings of the queue for undeliverable messages.
func parking() settings {
	s := plain()
	s.durable = true
	return s
}

func (s *settings) declare() broker.QueueDeclare {
	args := amqp.Table{}
	number := func(name string, v int64) {
		if v >= 0 {
			args[name] = v
		}
	}
	number("x-message-ttl", s.ttlMillis)
	number("x-max-length", s.maxLength)
	number("x-max-length-bytes", s.maxBytes)
	if s.quorum {
		args["x-queue-type"] = "quorum"
		args["x-delivery-limit"] = s.deliveryLimit
	}
	if s.maxDeliveries > 0 {
		args["x-max-delivery-count"] = s.maxDeliveries
	}
	if s.expiresMillis > 0 {
		args["x-expires"] = s.expiresMillis
	}
	if s.overflow != "" {
		args["x-overflow"] = s.overflow
	}
	if s.priorities > 0 {
		args["x-max-priority"] = int64(s.priorities)
	}
	if s.deadLetters {
		args["x-dead-letter-exchange"] = s.dlx
	}
	if s.ownKey {
		args["x-dead-letter-routing-key"] = s.dlk
	}
	return broker.QueueDeclare{Durable: s.durable, AutoDelete: s.autoDelete, Exclusive: s.exclusive, Args: args}
}

// outlives reports whether the queue exists after a restart.
func (s *settings) outlives() bool { return s.durable && !s.exclusive }

// counts reports whether failed deliveries are still counted after a restart.
func (s *settings) counts() bool { return s.quorum || s.maxDeliveries > 0 }

// overDelivered reports whether this number of failed deliveries is too high.
func (s *settings) overDelivered(failed int64) bool {
	return s.deliveryLimit >= 0 && failed > s.deliveryLimit || s.maxDeliveries > 0 && failed >= s.maxDeliveries
}

func (s *settings) limited() bool { return s.maxLength >= 0 || s.maxBytes >= 0 }

func (s *settings) exceeded(ready int, bytes int64) bool {
	return s.maxLength >= 0 && int64(ready) > s.maxLength || s.maxBytes >= 0 && bytes > s.maxBytes
}

// modelQueue is one incarnation of a queue.
type modelQueue struct {
	settings
	name               string
	id                 uint64
	entries            []*entry // ready and held: by priority, then as published
	last               []uint64 // the last number given, by priority
	highTaken          int      // of a quorum queue: messages taken in a row without a turn of the normal ones
	consumers          []*consumer
	idleAt             int64 // Unix µs; when x-expires deletes it; 0: not in its present state
	deleted            bool
	owner              *client
	pendingDeadLetters []*deadLetter // dead letters that have not reached their targets
}

func (m *model) declare(name string, id uint64, s settings) *modelQueue {
	q := &modelQueue{settings: s, name: name, id: id, last: make([]uint64, max(int(s.priorities), 1)+1)}
	m.queues[name] = q
	if id != 0 {
		m.byID[id] = q
	}
	m.use(q)
	return q
}

// use restarts the time of a queue with x-expires.
func (m *model) use(q *modelQueue) {
	q.idleAt = 0
	if q.expiresMillis > 0 && len(q.consumers) == 0 {
		q.idleAt = int64(m.stampAt()) + q.expiresMillis*1000
	}
}

// remove deletes a queue with everything in it, which is not dead-lettered. It returns how
// many messages were ready.
func (m *model) remove(q *modelQueue) int {
	n := q.count(ready)
	for len(q.entries) > 0 {
		m.settle(q.entries[0], purged, 0)
	}
	q.deleted, q.consumers, q.idleAt = true, nil, 0
	m.unbind(q)
	delete(m.queues, q.name)
	delete(m.byID, q.id)
	return n
}

// purge drops the ready messages.
func (m *model) purge(q *modelQueue) int {
	n := 0
	for e := q.head(); e != nil; e = q.head() {
		m.settle(e, purged, 0)
		n++
	}
	return n
}

func (m *model) unbind(q *modelQueue) {
	for i := len(m.bindings) - 1; i >= 0; i-- {
		if m.bindings[i].to == q {
			m.dropBinding(i)
		}
	}
}

// put gives an entry its number and its place: behind all others of its priority. A quorum queue has two: high above 4, and normal.
func (q *modelQueue) put(e *entry) {
	p := min(e.props.Priority, q.priorities)
	if q.quorum && e.props.Priority > 4 {
		p = 1
	}
	q.last[p]++
	e.seq, e.queue = queue.Seq(uint64(p)<<56|q.last[p]), q
	q.insert(e)
}

func (q *modelQueue) insert(e *entry) {
	at := len(q.entries)
	for at > 0 && q.entries[at-1].seq.Priority() < e.seq.Priority() {
		at--
	}
	q.entries = append(q.entries, nil)
	copy(q.entries[at+1:], q.entries[at:])
	q.entries[at] = e
}

// head returns the first ready entry, due or not. In a quorum queue each third is a normal one, if there is any.
func (q *modelQueue) head() (first *entry) {
	normal := q.quorum && q.highTaken == 2
	for _, e := range q.entries {
		if e.state != ready {
			continue
		}
		if !normal || e.seq.Priority() == 0 {
			return e
		}
		if first == nil {
			first = e
		}
	}
	return first
}

func (q *modelQueue) count(s state) (n int) {
	for _, e := range q.entries {
		if e.state == s {
			n++
		}
	}
	return n
}

func (q *modelQueue) readyBytes() (n int64) {
	for _, e := range q.entries {
		if e.state == ready {
			n += int64(len(e.body))
		}
	}
	return n
}

// credit returns how many more messages the consumers will take in this call. The messages
// taken in this call are not in the consumers' own counts yet.
func (m *model) credit(q *modelQueue) int {
	n := -m.spent[q]
	for _, c := range q.consumers {
		if c.NoAck {
			return 1
		}
		n += c.credit
	}
	return n
}
