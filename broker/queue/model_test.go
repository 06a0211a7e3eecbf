package queue

import (
	"cmp"
	"slices"

	"curfew/broker/deadline"
)

// model is the queue as one would write it without a thought for speed: a map
// of messages that is searched or sorted whenever order matters.
type model struct {
	opts Options
	msgs map[Seq]*modelMessage
	next map[uint8]uint64
	left []Settled
}

type modelMessage struct {
	Message
	seq     Seq
	state   State
	failed  uint16
	until   deadline.Instant // while it waits
	tracked bool
}

func newModel(o Options) *model {
	return &model{opts: o, msgs: map[Seq]*modelMessage{}, next: map[uint8]uint64{}}
}

func (m *model) publish(msg Message, priority uint8) Seq {
	p := min(priority, m.opts.Priorities)
	s := Seq(p)<<56 | Seq(m.next[p]+1)
	m.restore(s, msg, 0)
	return s
}

func (m *model) restore(s Seq, msg Message, failed uint16) {
	m.msgs[s] = &modelMessage{Message: msg, seq: s, state: Ready, failed: failed}
	m.next[uint8(s>>56)] = uint64(s) & (1<<56 - 1)
}

// before is the order of delivery.
func (x *modelMessage) before(y *modelMessage) bool {
	if x.seq>>56 != y.seq>>56 {
		return x.seq>>56 > y.seq>>56
	}
	return x.seq < y.seq
}

// in lists the messages in a state (or in any, for gone) in order of delivery.
func (m *model) in(state State) []*modelMessage {
	var all []*modelMessage
	for _, x := range m.msgs {
		if state == gone || x.state == state {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b *modelMessage) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return all
}

func (m *model) firstReady() (first *modelMessage) {
	for _, x := range m.msgs {
		if x.state == Ready && (first == nil || x.before(first)) {
			first = x
		}
	}
	return first
}

func (m *model) count(state State) (n int, bytes int64) {
	for _, x := range m.msgs {
		if x.state == state {
			n, bytes = n+1, bytes+int64(x.Bytes)
		}
	}
	return n, bytes
}

func (m *model) settle(x *modelMessage, r Reason) {
	delete(m.msgs, x.seq)
	m.left = append(m.left, Settled{x.seq, x.Message, r, x.tracked, x.failed})
}

func (m *model) take(now deadline.Instant) (Delivery, bool) {
	for x := m.firstReady(); x != nil; x = m.firstReady() {
		late := x.ExpiresAt != 0 && now >= x.ExpiresAt
		if late && (x.Flags&Immediate == 0 || now > x.ExpiresAt) {
			m.settle(x, Expired)
			continue
		}
		x.state = Unacked
		return Delivery{x.seq, x.Message, x.Flags&Redelivered != 0, x.failed}, true
	}
	return Delivery{}, false
}

func (m *model) settleUnacked(s Seq, r Reason) bool {
	x := m.msgs[s]
	if x == nil || x.state != Unacked {
		return false
	}
	m.settle(x, r)
	return true
}

func (m *model) requeue(now deadline.Instant, s Seq, failed bool) bool {
	x := m.msgs[s]
	if x == nil || x.state != Unacked {
		return false
	}
	if failed {
		x.failed++
	}
	m.back(now, x, 0)
	return true
}

func (m *model) back(now deadline.Instant, x *modelMessage, wait deadline.Millis) {
	if x.ExpiresAt != 0 && now >= x.ExpiresAt {
		m.settle(x, Expired)
	} else if limit := m.opts.DeliveryLimit; limit >= 0 && int64(x.failed) > limit {
		m.settle(x, DeliveryLimit)
	} else {
		x.state, x.Flags = Ready, x.Flags|Redelivered
		if wait > 0 {
			x.state, x.until = Waiting, now.AddMillis(wait)
		}
	}
}

func (m *model) returned(now deadline.Instant, s Seq, counted, failed bool) bool {
	x := m.msgs[s]
	if x == nil || x.state != Unacked {
		return false
	}
	if counted {
		x.failed++
	}
	wait, times := deadline.Millis(0), max(x.failed, 1)
	if m.opts.Retry != NoRetry {
		if r := m.opts.Retry.Value(); failed && r.Failed || !failed && r.Returned {
			wait = min(r.Min*deadline.Millis(times), r.Max)
			if r.Count > 0 {
				wait = r.Steps[min(int(times), int(r.Count))-1]
			}
		}
	}
	m.back(now, x, wait)
	return true
}

func (m *model) endWait(now deadline.Instant, x *modelMessage) {
	x.state = Ready
	if x.ExpiresAt != 0 && now >= x.ExpiresAt {
		m.settle(x, Expired)
	}
}

// wake returns when the next message is ready again.
func (m *model) wake(now deadline.Instant) (next deadline.Instant) {
	waiting := m.in(Waiting)
	slices.SortStableFunc(waiting, func(a, b *modelMessage) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.seq, b.seq))
	})
	for _, x := range waiting {
		if x.until > now {
			return x.until
		}
		m.endWait(now, x)
	}
	return 0
}

func (m *model) wakeNow(now deadline.Instant, s Seq, deadline deadline.Instant) bool {
	x := m.msgs[s]
	if x == nil || x.state != Waiting || x.ExpiresAt != deadline {
		return false
	}
	m.endWait(now, x)
	return true
}

func (m *model) remove(s Seq, deadline deadline.Instant) bool {
	x := m.msgs[s]
	if x == nil || x.state == Unacked || x.ExpiresAt != deadline {
		return false
	}
	m.settle(x, Purged)
	return true
}

func (m *model) expire(now deadline.Instant, s Seq, dueAt deadline.Instant) deadline.Answer {
	x := m.msgs[s]
	switch {
	case x == nil || dueAt == 0 || x.ExpiresAt != dueAt:
		return deadline.Answer{Outcome: deadline.Gone}
	case now < dueAt:
		return deadline.Answer{Outcome: deadline.NotDue, At: dueAt}
	case x.state == Unacked:
		return deadline.Answer{Outcome: deadline.Held}
	}
	m.settle(x, Expired)
	return deadline.Answer{Outcome: deadline.Expired, At: now}
}

func (m *model) reschedule(now deadline.Instant, s Seq, dueAt, next deadline.Instant) (deadline.Outcome, bool) {
	x := m.msgs[s]
	if x == nil || x.ExpiresAt != dueAt {
		return deadline.Gone, false
	}
	was := x.tracked
	switch {
	case next == 0 || now < next:
		x.ExpiresAt, x.tracked, x.Flags = next, false, x.Flags&^Immediate
		return deadline.Rescheduled, was
	case x.state == Unacked:
		x.ExpiresAt, x.tracked, x.Flags = next, false, x.Flags&^Immediate
		return deadline.Held, was
	}
	m.settle(x, Expired)
	return deadline.Expired, was
}

func (m *model) track(s Seq, deadline deadline.Instant) bool {
	x := m.msgs[s]
	if x != nil && x.ExpiresAt == deadline {
		x.tracked = true
		return true
	}
	return false
}

func (m *model) over(count int, bytes int64) bool {
	return m.opts.MaxLength >= 0 && int64(count) > m.opts.MaxLength ||
		m.opts.MaxBytes >= 0 && bytes > m.opts.MaxBytes
}

func (m *model) full(more uint32) bool {
	count, bytes := m.count(Ready)
	return m.opts.Overflow != DropHead && m.over(count+1, bytes+int64(more))
}

func (m *model) trim() {
	count, bytes := m.count(Ready)
	for count > 0 && m.opts.Overflow == DropHead && m.over(count, bytes) {
		x := m.firstReady()
		count, bytes = count-1, bytes-int64(x.Bytes)
		m.settle(x, MaxLength)
	}
}

// purge settles the messages that no consumer holds, or all of them.
func (m *model) purge(held bool) int {
	all := m.in(gone)
	if !held {
		all = slices.DeleteFunc(all, func(x *modelMessage) bool { return x.state == Unacked })
	}
	for _, x := range all {
		m.settle(x, Purged)
	}
	return len(all)
}
