package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
)

// compare compares what the call did with the prediction: deliveries, queues, counts,
// events. It needs mu.
func (w *world) compare() {
	for _, q := range w.model.from {
		w.compareDeliveries(q, w.model.taken[q], w.seen[q])
	}
	for q, got := range w.seen {
		if len(w.model.taken[q]) == 0 {
			w.fail("%s delivered %d messages, none were expected, first %q", q.name, len(got), got[0].body)
		}
	}
	w.findUndeliverable()
	w.compareQueues()
	w.compareExpiries()
	if w.pump == nil && w.model.subscribed {
		w.readFeed()
	}
}

// compareExpiries checks that each message that expired was reported once, and no other
// message was.
func (w *world) compareExpiries() {
	w.expiriesMu.Lock()
	reported := w.expiries
	w.expiries = nil
	w.expiriesMu.Unlock()
	for _, e := range reported {
		want, ok := w.model.ends[e.Ref]
		if !ok || fmt.Sprint(e) != fmt.Sprint(want) {
			w.fail("an expiry was reported as %+v, should be %+v", e, want)
			return
		}
		delete(w.model.ends, e.Ref)
	}
	for _, e := range w.model.ends {
		w.fail("an expiry was not reported: %+v", e)
	}
}

// compareDeliveries checks order and content, and records who holds what.
func (w *world) compareDeliveries(q *modelQueue, predicted []taken, got []seen) {
	for i, p := range predicted {
		if i == len(got) {
			w.fail("%s: %v was not delivered", q.name, p.entry)
			return
		}
		w.compareDelivery(p, &got[i])
		w.model.handed(p.entry, got[i].noAck)
		if !got[i].noAck {
			c := got[i].client
			c.unacked = append(c.unacked, &delivery{entry: p.entry, queue: w.queues[q], from: got[i].consumer})
		}
	}
	if len(got) > len(predicted) {
		w.fail("%s: %q was delivered and should not have been", q.name, got[len(predicted)].body)
	}
}

// compareDelivery checks that the message delivered is the predicted one: in its turn,
// before its deadline, and unchanged except for its death history.
func (w *world) compareDelivery(p taken, got *seen) {
	e := p.entry
	visible := clone(e.props)
	if visible.Headers["BCC"] != nil {
		delete(visible.Headers, "BCC")
	} else if len(visible.Headers) == 0 {
		visible.Headers = e.props.Headers
	}
	properties := visible.Append(nil)
	if e.queue.quorum {
		properties = amqp.AppendWithLong(nil, properties, "x-delivery-count", e.failed)
	}
	want := seen{
		seq: e.seq, body: string(e.body), properties: string(properties),
		exchange: e.exchange, key: e.key, redelivered: e.redelivered, behind: p.behind,
		client: got.client, consumer: got.consumer, noAck: got.noAck,
	}
	if *got != want {
		w.fail("%v was delivered as\n\t%v, should be\n\t%v", e, got, &want)
	}
	if e.deadline != 0 && w.model.nowAt() >= e.deadline && !(e.instant && !e.stale && w.model.nowAt() == e.deadline) {
		w.fail("%v was delivered %d µs past its deadline", e, w.model.nowAt()-e.deadline)
	}
	w.note("    %v delivered to %s", e, got.client.name)
}

// findUndeliverable looks up the queue for undeliverable messages, which the broker
// declares when it needs it.
func (w *world) findUndeliverable() {
	m := w.model.queues[policy.UndeliverableQueue]
	if m == nil || m.id != 0 {
		return
	}
	q, err := w.vhost.Queues.Get(policy.UndeliverableQueue)
	if err != nil {
		w.fail("nothing was parked: %v", err)
		return
	}
	m.id, w.queues[m] = q.ID, q
	w.model.byID[m.id] = m
}

// compareQueues checks that exactly the predicted queues exist, and how many messages and
// consumers each has.
func (w *world) compareQueues() {
	for _, name := range append([]string{policy.UndeliverableQueue}, w.plan.names...) {
		if _, err := w.vhost.Queues.Get(name); err == nil && w.model.queues[name] == nil {
			w.fail("%s is there and should not be", name)
		}
	}
	for _, m := range w.model.sorted() {
		q, err := w.vhost.Queues.Get(m.name)
		if err != nil || q.ID != m.id {
			w.fail("%s is not there as it was declared: %v", m.name, err)
			continue
		}
		waiting, unacked, consumers := q.Messages.Counts()
		if waiting != m.count(ready) || unacked != m.count(held) || consumers != len(m.consumers) {
			w.fail("%s has %d ready, %d unacked, %d consumers; should have %d, %d, %d",
				m.name, waiting, unacked, consumers, m.count(ready), m.count(held), len(m.consumers))
		}
	}
}

// readFeed reads the broker's events and compares them with the prediction: all events, no
// others, and those of one message in order.
func (w *world) readFeed() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var buf [64]deadline.Event
	for {
		n, lagged, err := w.broker.Deadlines().Events(ended, buf[:])
		if lagged {
			w.fail("the feed lagged")
		}
		w.checkEvents(buf[:n])
		if errors.Is(err, context.Canceled) {
			break
		}
	}
	w.checkAllReported()
}

func (w *world) checkEvents(events []deadline.Event) {
	for _, e := range events {
		expected := w.model.events[e.Ref]
		if len(expected) == 0 || expected[0] != e {
			w.fail("the feed reported %+v, expected %+v", e, expected)
			return
		}
		if w.model.events[e.Ref] = expected[1:]; len(expected) == 1 {
			delete(w.model.events, e.Ref)
		}
	}
}

// checkAllReported checks that no event is missing.
func (w *world) checkAllReported() {
	for _, events := range w.model.events {
		w.fail("the feed did not report %+v", events[0])
	}
}

// sorted returns the queues ordered by name.
func (m *model) sorted() []*modelQueue {
	return slices.SortedFunc(maps.Values(m.queues), func(a, b *modelQueue) int { return strings.Compare(a.name, b.name) })
}

// live returns every queued message.
func (m *model) live() (entries []*entry) {
	for _, q := range m.sorted() {
		entries = append(entries, q.entries...)
	}
	return entries
}

// compareDeadlines reads the broker's own list of deadlines.
func (w *world) compareDeadlines() {
	var got, want []deadline.Ref
	err := w.broker.Deadlines().Snapshot(context.Background(), func(page []deadline.Ref) error {
		got = append(got, page...)
		return nil
	})
	if err != nil {
		w.fail("Deadlines: %v", err)
	}
	for _, e := range w.model.live() {
		if e.deadline != 0 {
			e.tracked = true
			want = append(want, e.ref())
		}
	}
	w.model.subscribed = true
	if only := missing(got, want); len(only) > 0 {
		w.fail("the broker lists deadlines it should not have: %+v", only)
	}
	if only := missing(want, got); len(only) > 0 {
		w.fail("the broker does not list the deadlines %+v", only)
	}
}

// missing returns the elements of a that are not in b.
func missing[T comparable](a, b []T) (only []T) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			only = append(only, x)
		}
	}
	return only
}

// idleGrace is how late, on the bubble's clock, a queue may be deleted after its x-expires:
// its timer is set in whole µs, and after a suspend, during which timers stand still, it
// checks within a minute.
const idleGrace = 2 * time.Microsecond

// noteIdle finds out which queues were deleted because of their x-expires: none too early,
// and each in time.
func (w *world) noteIdle() {
	w.model.begin(w.now())
	for _, m := range w.model.sorted() {
		if m.idleAt == 0 {
			continue
		}
		late := time.Duration(w.now() - m.idleAt*microsecond)
		q, err := w.vhost.Queues.Get(m.name)
		switch there := err == nil && q.ID == m.id; {
		case !there && late < 0:
			w.fail("%s was deleted %v before its x-expires", m.name, -late)
		case !there:
			w.note("%s is deleted, unused for its x-expires", m.name)
			w.orphan(m)
			w.model.remove(m)
			w.remember()
		case late > idleGrace && time.Since(w.jumpAt) > time.Minute:
			w.fail("%s is still there %v after its x-expires", m.name, late)
		}
	}
	if w.pump == nil && w.model.subscribed {
		w.readFeed()
	}
}
