package simulation

import (
	"slices"

	"curfew/broker"
	"curfew/broker/queue"
)

// publish publishes a batch.
func (w *world) publish() {
	batch := make([]publication, 1+w.rng.IntN(6))
	for i := range batch {
		w.nextID++
		batch[i] = randomPublication(w.rng, w.nextID, w.plan.names, w.plan.largest, w.now()/millisecond)
	}
	rolledBack := chance(w.rng, 0.05)
	w.call(func() {
		for i := range batch {
			w.note("    %v", &batch[i])
			if _, err := w.publisher.Add(batch[i].wire()); err != nil {
				w.fail("publish: %v", err)
			}
		}
		if rolledBack {
			w.publisher.Discard()
			w.note("    rolled back")
			return
		}
		want := w.model.publish(batch)
		if got := w.publisher.Flush(nil); !slices.Equal(got, want) {
			w.fail("refused %v, should be %v", got, want)
		}
	}, "publish")
}

// consume starts a consumer with some credit.
func (w *world) consume() {
	m := w.anyQueue()
	if m == nil {
		return
	}
	c := &consumer{w: w, client: pick(w.rng, w.clients), queue: m, credit: 1 + w.rng.IntN(4)}
	c.Consumer = broker.Consumer{Tag: m.name, NoAck: chance(w.rng, 0.15), Sink: c}
	w.call(func() {
		if err := w.queues[m].Messages.Consume(&c.Consumer); err != nil {
			w.fail("%v", err)
		}
		m.consumers, m.idleAt = append(m.consumers, c), 0
		c.client.consumers = append(c.client.consumers, c)
		w.model.dispatch(m)
		w.model.routeDeadLetters(false)
		c.Wake()
	}, "%s consumes %s, credit %d, no-ack %v", c.client.name, m.name, c.credit, c.NoAck)
}

// prefetch gives a consumer more credit.
func (w *world) prefetch() {
	c := w.anyConsumer()
	if c == nil || c.NoAck {
		return
	}
	w.call(func() {
		if c.cancelled {
			return
		}
		c.credit += 1 + w.rng.IntN(3)
		w.model.dispatch(c.queue)
		w.model.routeDeadLetters(false)
		c.Wake()
	}, "%s has credit for more of %s", c.client.name, c.queue.name)
}

func (w *world) cancelConsumer() {
	if c := w.anyConsumer(); c != nil {
		w.cancel(c)
	}
}

// cancel ends a consumer. Its messages stay unacked. An auto-delete queue is deleted with
// its last consumer.
func (w *world) cancel(c *consumer) {
	w.call(func() {
		m := c.queue
		c.client.removeConsumer(c)
		m.consumers = slices.DeleteFunc(m.consumers, func(have *consumer) bool { return have == c })
		if !m.deleted && len(m.consumers) == 0 {
			w.model.use(m)
			if m.autoDelete {
				w.model.remove(m)
			}
		}
		c.Cancel()
	}, "%s cancels its consumer of %s", c.client.name, c.queue.name)
}

func (w *world) anyConsumer() *consumer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := pick(w.rng, w.clients); len(c.consumers) > 0 {
		return pick(w.rng, c.consumers)
	}
	return nil
}

// get takes the head of a queue.
func (w *world) get() {
	if m := w.anyQueue(); m != nil {
		w.getFrom(m, pick(w.rng, w.clients), chance(w.rng, 0.2))
	}
}

func (w *world) getFrom(m *modelQueue, c *client, noAck bool) (got bool) {
	w.call(func() {
		want := w.model.get(m)
		var err error
		got, err = w.queues[m].Messages.Get(noAck, func(d *broker.Delivery) {
			s := see(d)
			s.client, s.noAck = c, noAck
			w.seen[m] = append(w.seen[m], s)
		})
		if err != nil || got != want {
			w.fail("get from %s: %v, should be %v: %v", m.name, got, want, err)
		}
	}, "%s gets from %s, no-ack %v", c.name, m.name, noAck)
	return got
}

// settle ends some of a client's deliveries in one way; some of them twice, some from
// queues that are gone.
func (w *world) settle() {
	c := pick(w.rng, w.clients)
	w.mu.Lock()
	some := w.someOf(c.unacked)
	w.mu.Unlock()
	how := pick(w.rng, []broker.Settlement{broker.Ack, broker.Ack, broker.Reject, broker.Requeue})
	w.end(c, how, some)
	if chance(w.rng, 0.1) {
		w.end(c, how, some)
	}
}

func (w *world) someOf(all []*delivery) (some []*delivery) {
	for _, d := range all {
		if chance(w.rng, 0.5) {
			some = append(some, d)
		}
	}
	return some
}

// end settles deliveries in runs of one queue and consumer, as a channel does.
func (w *world) end(c *client, how broker.Settlement, all []*delivery) {
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].queue == all[0].queue && all[n].from == all[0].from {
			n++
		}
		w.endRun(c, how, all[:n])
		all = all[n:]
	}
}

var verbs = map[broker.Settlement]string{broker.Ack: "acks", broker.Reject: "rejects", broker.Requeue: "requeues"}

func (w *world) endRun(c *client, how broker.Settlement, run []*delivery) {
	var entries []*entry
	var seqs []queue.Seq
	for _, d := range run {
		entries, seqs = append(entries, d.entry), append(seqs, d.entry.seq)
	}
	w.call(func() {
		var wake *broker.Consumer
		if from := run[0].from; from != nil {
			wake = &from.Consumer
			for _, d := range run {
				if slices.Contains(c.unacked, d) {
					from.credit++
				}
			}
		}
		c.settled(run)
		w.model.settles(entries[0].queue, how, entries)
		run[0].queue.Messages.Settle(how, seqs, wake)
	}, "%s %s %v", c.name, verbs[how], entries)
}

func (w *world) purge() {
	m := w.anyQueue()
	if m == nil {
		return
	}
	w.call(func() {
		want := w.model.purge(m)
		if got := w.queues[m].Messages.Purge(); got != want {
			w.fail("purged %d of %s, should be %d", got, m.name, want)
		}
	}, "purge %s", m.name)
}

// loseConnection ends a client: its consumers end, its unacked messages return, and its
// exclusive queues are deleted.
func (w *world) loseConnection() { w.disconnect(pick(w.rng, w.clients)) }

func (w *world) disconnect(c *client) {
	for len(c.consumers) > 0 && !w.failed() {
		w.cancel(c.consumers[0])
	}
	w.end(c, broker.Requeue, slices.Clone(c.unacked))
	w.call(func() {
		for _, m := range w.model.sorted() {
			if m.owner == c {
				w.orphan(m)
				w.model.remove(m)
			}
		}
		w.vhost.Queues.Release(c)
	}, "%s has lost its connection", c.name)
}
