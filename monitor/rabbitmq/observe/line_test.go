package observe

import (
	"slices"
	"testing"

	"curfew/broker/deadline"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// queue is a model of a RabbitMQ queue: a list that loses expired messages only at its head.
type queue struct {
	now     deadline.Instant
	ready   []*message
	unacked []*message
	all     []*message
}

type message struct {
	number   uint64
	deadline deadline.Instant
	missed   bool             // it was ready at its deadline
	left     deadline.Instant // when it expired
	returned bool             // requeued after its deadline
}

func (q *queue) publish(at deadline.Instant) *message {
	m := &message{number: uint64(len(q.all)), deadline: at}
	q.all = append(q.all, m)
	q.ready = append(q.ready, m)
	q.expire()
	return m
}

// advance moves time on, one tick after another, so that each deadline is seen.
func (q *queue) advance(ticks int64) {
	for range ticks {
		q.now++
		for _, m := range q.ready {
			if m.deadline == q.now {
				m.missed = true
			}
		}
		q.expire()
	}
}

func (q *queue) expire() {
	for len(q.ready) > 0 && q.ready[0].deadline != 0 && q.ready[0].deadline <= q.now {
		q.ready[0].left = q.now
		q.ready = q.ready[1:]
	}
}

func (q *queue) consume() {
	if len(q.ready) > 0 {
		q.unacked = append(q.unacked, q.ready[0])
		q.ready = q.ready[1:]
		q.expire()
	}
}

// requeue gives back the message that was delivered last, and it returns to its place. If an earlier one were given back alone, the number
// of messages would not show which of them wait.
func (q *queue) requeue() {
	if n := len(q.unacked); n > 0 {
		q.unacked[n-1].returned = true
		q.ready = slices.Insert(q.ready, 0, q.unacked[n-1])
		q.unacked = q.unacked[:n-1]
		q.expire()
	}
}

// closes reports whether the message that requeue gives back comes right before the others, and will stay.
func (q *queue) closes() bool {
	if len(q.unacked) == 0 || len(q.ready) == 0 {
		return false
	}
	m := q.unacked[len(q.unacked)-1]
	return m.number+1 == q.ready[0].number && (m.deadline == 0 || m.deadline > q.now)
}

// TestLineModel: with a count at each tick the line is right about every message; with counts now and then, and a tap that is late, it
// never reports a miss for a message that was consumed.
func TestLineModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exact := rapid.Bool().Draw(t, "exact")
		q, l := &queue{now: 1}, newLine()
		var tapped int // messages the tap has handed over
		var told []waiting
		deliver := func(count int) {
			for ; count > 0 && tapped < len(q.all); count-- {
				l.Enter(q.all[tapped].deadline, 0, "")
				tapped++
			}
		}
		count := func() {
			before := l.entered
			ready := len(q.ready)
			now := q.now
			if !exact {
				deliver(rapid.IntRange(0, 3).Draw(t, "meanwhile"))
			}
			// After is at least what had entered by the answer.
			after := uint64(len(q.all))
			deliver(len(q.all) - tapped)
			told = l.Count(count{Asked: now, Answered: now, Ready: ready, Consumers: 1, Before: before, After: after}, told)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2:
				at := deadline.Instant(0)
				if rapid.IntRange(0, 3).Draw(t, "expires") > 0 {
					at = q.now + deadline.Instant(rapid.Int64Range(1, 20).Draw(t, "ttl"))
				}
				q.publish(at)
				if exact {
					deliver(1)
				}
			case 3:
				q.consume()
			case 4:
				// When a returned message leaves a gap, since others have expired before it came, the number of messages does not show which of
				// them wait, and a miss may go unreported.
				if exact && !q.closes() {
					continue
				}
				q.requeue()
			case 5:
				deliver(rapid.IntRange(0, 3).Draw(t, "deliver"))
			case 6:
				l.Overdue()
				if exact {
					for range 3 {
						q.advance(1)
						count()
					}
				} else {
					q.advance(rapid.Int64Range(1, 10).Draw(t, "ticks"))
					if rapid.Bool().Draw(t, "count") {
						count()
					}
				}
			}
		}
		seen := map[uint64]bool{}
		n, since := l.Overdue()
		require.Len(t, l.overdue.Items, n)
		earliest := deadline.Instant(0)
		for _, m := range l.overdue.Items {
			if earliest == 0 || m.deadline < earliest {
				earliest = m.deadline
			}
		}
		require.Equal(t, earliest, since)
		for _, m := range slices.Concat(told, l.overdue.Items) {
			truth := q.all[m.number]
			overdue := slices.Contains(q.ready, truth) || slices.Contains(q.unacked, truth) && truth.returned
			if !truth.missed && truth.left == 0 && !overdue || truth.deadline != m.deadline {
				t.Fatalf("message %d was consumed in time: %+v, told %+v", m.number, truth, m)
			}
			if seen[m.number] {
				t.Fatalf("message %d was told twice", m.number)
			}
			seen[m.number] = true
		}
		if exact {
			for _, m := range q.all {
				// A message that was at the head at its deadline may have been consumed at the last moment: nothing is reported.
				stayed := m.missed && (m.left == 0 || m.left > m.deadline) && !slices.Contains(q.unacked, m)
				if stayed && !seen[m.number] && m.deadline <= l.counted {
					t.Fatalf("message %d missed its deadline %d and was not told", m.number, m.deadline)
				}
			}
		}
	})
}

func TestLineHead(t *testing.T) {
	l := newLine()
	count := func(now deadline.Instant, ready, consumers int) []waiting {
		return l.Count(count{Asked: now, Answered: now, Ready: ready, Consumers: consumers, Before: l.entered, After: l.entered}, nil)
	}
	l.Enter(10, 0, "a")
	require.Empty(t, count(5, 1, 0))
	require.Equal(t, []waiting{{0, 10, 0, "a"}}, count(11, 0, 0), "nobody could have consumed it")
	l.Enter(20, 0, "b")
	require.Empty(t, count(15, 1, 1))
	require.Empty(t, count(21, 0, 1), "its consumer may have had it in time")
	l.Enter(0, 0, "")
	l.Enter(30, 0, "c")
	require.Empty(t, count(31, 2, 1))
	n, since := l.Overdue()
	require.Equal(t, 1, n)
	require.EqualValues(t, 30, since)
	require.Empty(t, count(32, 1, 1), "the one before it has left")
	require.Equal(t, []waiting{{3, 30, 0, "c"}}, count(33, 0, 1))
	require.Equal(t, Counts{Entered: 4, Expire: 3, InTime: 1, Unsure: 1, Missed: 2, Expired: 2}, l.Counts())
}

// TestLineBound: deadlines beyond the bound are counted, and messages that have left make room.
func TestLineBound(t *testing.T) {
	const left = maxDeadlines / 4
	l := newLine()
	for i := range maxDeadlines + 15 {
		l.Enter(deadline.Instant(1000+i), 0, "")
	}
	require.EqualValues(t, 15, l.Counts().Unknown)
	l.Count(count{Asked: 1, Answered: 1, Ready: maxDeadlines + 15 - left, Before: l.entered, After: l.entered}, nil)
	for range left + 5 {
		l.Enter(2_000_000, 0, "")
	}
	require.EqualValues(t, 20, l.Counts().Unknown)
	require.EqualValues(t, left, l.Counts().InTime)
	require.Len(t, l.due.Items, maxDeadlines)
}

// BenchmarkOverdue asks for the earliest of a million deadlines that were missed, while others are missed as well.
func BenchmarkOverdue(b *testing.B) {
	l := newLine()
	look := func(now deadline.Instant) {
		l.Count(count{Asked: now, Answered: now, Ready: int(l.entered), Consumers: 1, Before: l.entered, After: l.entered}, nil)
		l.Overdue()
	}
	for i := range maxDeadlines {
		l.Enter(deadline.Instant(1+i%1000), 0, "")
	}
	look(2000)
	for i := 0; b.Loop(); i++ {
		l.Enter(deadline.Instant(2000+i), 0, "")
		look(deadline.Instant(2001 + i))
	}
}

// TestSamplesOfALine: what has missed its deadline is no longer at risk, and counts as a message without one.
func TestSamplesOfALine(t *testing.T) {
	l := newLine()
	for _, at := range []deadline.Instant{100, 0, 5, 0, 90} {
		l.Enter(at, 1, "")
	}
	l.Count(count{Asked: 10, Answered: 10, Ready: 4, Before: 5, After: 5}, nil)
	n, since := l.Overdue()
	require.Equal(t, 1, n)
	require.EqualValues(t, 5, since)
	last := deadline.Sample{Ref: deadline.Ref{Deadline: 90, Seq: 4}, Ahead: 3}
	require.Equal(t, []deadline.Sample{{}, {Ahead: 1}, {Ahead: 2}, last}, l.samples(1))
	require.Equal(t, []deadline.Sample{{}, last}, l.samples(3))
}
