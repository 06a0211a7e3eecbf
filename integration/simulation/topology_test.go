package simulation

import (
	"fmt"
	"slices"

	"curfew/broker"
	"curfew/broker/policy"
)

// declareQueue declares a queue, or declares an existing one again.
func (w *world) declareQueue() {
	name := pick(w.rng, w.plan.names)
	w.mu.Lock()
	m := w.model.queues[name]
	w.mu.Unlock()
	if m != nil {
		w.redeclare(m)
		return
	}
	w.declare(name, w.randomSettings(name))
}

func (w *world) declare(name string, s settings) {
	owner := pick(w.rng, w.clients)
	w.call(func() {
		q, err := w.vhost.Queues.Declare(owner, name, s.declare())
		if err != nil {
			w.fail("%v", err)
			return
		}
		m := w.model.declare(name, q.ID, s)
		w.queues[m] = q
		if s.exclusive {
			m.owner = owner
		}
	}, "declare %s %+v", name, s)
}

func (w *world) redeclare(m *modelQueue) {
	w.call(func() {
		w.model.use(m)
		q, err := w.vhost.Queues.Declare(m.declaredBy(w.clients[0]), m.name, m.declare())
		if err != nil || q.ID != m.id {
			w.fail("declaring %s again: %v", m.name, err)
		}
	}, "declare %s again", m.name)
}

// declaredBy returns who may use a queue: its owner if it is exclusive, otherwise anybody.
func (q *modelQueue) declaredBy(anybody *client) *client {
	if q.owner != nil {
		return q.owner
	}
	return anybody
}

func (w *world) deleteQueue() {
	m := w.anyQueue()
	if m == nil {
		return
	}
	w.call(func() {
		w.orphan(m)
		want := w.model.remove(m)
		got, err := w.vhost.Queues.Delete(m.declaredBy(nil), m.name, broker.QueueDeletion{})
		if err != nil || got != want {
			w.fail("deleting %s: %d ready, should be %d: %v", m.name, got, want, err)
		}
	}, "delete %s", m.name)
}

// orphan takes the consumers of a deleted queue away from their clients.
func (w *world) orphan(m *modelQueue) {
	for _, c := range m.consumers {
		c.client.removeConsumer(c)
	}
}

// bindQueue binds a queue to the fanout, or by a key, or undoes that.
func (w *world) bindQueue() {
	m := w.anyQueue()
	if m == nil {
		return
	}
	b := binding{exchange: pick(w.rng, []string{"amq.fanout", "amq.direct"}), key: pick(w.rng, w.plan.names), to: m}
	if b.exchange == "amq.fanout" {
		b.key = ""
	}
	w.bind(b, chance(w.rng, 0.3))
}

func (w *world) bind(b binding, undo bool) {
	verb := "bind"
	if undo {
		verb = "unbind"
	}
	w.call(func() {
		wire := broker.Binding{Source: b.exchange, Destination: b.to.name, RoutingKey: b.key}
		do := w.vhost.Bind
		if undo {
			do = w.vhost.Unbind
		}
		if err := do(b.to.declaredBy(nil), wire); err != nil {
			w.fail("%v", err)
		}
		w.model.bind(b, undo)
	}, "%s %s to %s by %q", verb, b.to.name, b.exchange, b.key)
}

func (m *model) bind(b binding, undo bool) {
	for i, have := range m.bindings {
		if have == b {
			if undo {
				m.dropBinding(i)
			}
			return
		}
	}
	if !undo {
		m.bindings = append(m.bindings, b)
	}
}

// dropBinding removes a binding. The last of its exchange, or of its key, takes its place.
func (m *model) dropBinding(i int) {
	last := i
	for j := i; j < len(m.bindings); j++ {
		if m.bindings[j].exchange == m.bindings[i].exchange && m.bindings[j].key == m.bindings[i].key {
			last = j
		}
	}
	m.bindings[i] = m.bindings[last]
	m.bindings = slices.Delete(m.bindings, last, last+1)
}

// anyQueue draws an existing queue; nil if there is none.
func (w *world) anyQueue() *modelQueue {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all := w.model.sorted(); len(all) > 0 {
		return pick(w.rng, all)
	}
	return nil
}

func (w *world) randomSettings(name string) settings {
	if name == policy.UndeliverableQueue {
		return parking()
	}
	rng, s := w.rng, plain()
	s.durable = chance(rng, 0.7)
	s.autoDelete = chance(rng, 0.08)
	s.exclusive = chance(rng, 0.05)
	if chance(rng, 0.4) {
		s.ttlMillis = randomTTL(rng)
	}
	if chance(rng, 0.25) {
		s.maxLength = rng.Int64N(8)
	}
	if chance(rng, 0.1) {
		s.maxBytes = rng.Int64N(200)
	}
	if chance(rng, 0.4) {
		s.overflow = pick(rng, []string{"drop-head", "reject-publish", "reject-publish-dlx"})
	}
	if chance(rng, 0.25) {
		s.priorities = uint8(1 + rng.IntN(4))
	}
	if chance(rng, 0.25) {
		w.randomQuorum(&s)
	}
	if chance(rng, 0.25) {
		s.maxDeliveries = 1 + rng.Int64N(3)
	}
	if chance(rng, 0.15) && !w.plan.monitored {
		s.expiresMillis = 1 + rng.Int64N(4000)
	}
	if chance(rng, 0.7) {
		w.randomDeadLettering(&s)
	}
	return s
}

// randomQuorum makes it a quorum queue, which is durable and not exclusive, has no
// priorities, and has a delivery limit.
func (w *world) randomQuorum(s *settings) {
	s.quorum, s.durable, s.autoDelete, s.exclusive, s.priorities = true, true, false, false, 0
	s.deliveryLimit = w.rng.Int64N(4) - 1
	if s.overflow == "reject-publish-dlx" {
		s.overflow = "drop-head"
	}
}

// randomDeadLettering draws where dead letters go: to a queue that may be missing, back
// where they came from, to several queues, or nowhere.
func (w *world) randomDeadLettering(s *settings) {
	s.deadLetters = true
	s.dlx = pick(w.rng, []string{"", "", "", "amq.fanout", "amq.direct", "missing"})
	if chance(w.rng, 0.75) {
		s.ownKey, s.dlk = true, pick(w.rng, w.plan.names)
	}
}

// weave declares a web of queues that keep no message: a fan, in which the dead letters of
// each queue go to all others, or, if that is too many for the model, a chain.
func (w *world) weave() {
	fan, slow := len(w.plan.names) <= 9, chance(w.rng, 0.3)
	for i, name := range w.plan.names {
		if name == policy.UndeliverableQueue {
			continue
		}
		s := plain()
		s.durable, s.deadLetters = chance(w.rng, 0.5), true
		switch w.rng.IntN(4) {
		case 0:
			s.maxLength, s.overflow = 0, "reject-publish-dlx"
		case 1:
			s.maxLength = 0
		default:
			s.ttlMillis = 0
		}
		if slow && chance(w.rng, 0.3) {
			s.maxLength, s.ttlMillis = w.rng.Int64N(3), randomTTL(w.rng)
		}
		if s.dlx = "amq.fanout"; !fan {
			s.dlx, s.ownKey, s.dlk = "", true, w.plan.names[(i+1)%len(w.plan.names)]
		}
		w.declare(name, s)
		if fan {
			w.bind(binding{exchange: "amq.fanout", to: w.model.queues[name]}, false)
		}
	}
}

func (s settings) String() string { return fmt.Sprint(s.declare()) }
