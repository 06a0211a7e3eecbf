package queue

import (
	"testing"
	"time"
	"unique"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadline"
)

func TestWaitOfRetry(t *testing.T) {
	steps := Retry{Failed: true, Returned: true, Count: 2, Steps: [MaxSteps]deadline.Millis{10, 50}}
	linear := Retry{Failed: true, Min: 10, Max: 25}
	for _, c := range []struct {
		r      Retry
		times  uint16
		failed bool
		want   deadline.Millis
	}{
		{steps, 1, true, 10},
		{steps, 2, false, 50},
		{steps, 65535, false, 50},
		{linear, 1, true, 10},
		{linear, 2, true, 20},
		{linear, 3, true, 25},
		{linear, 1, false, 0},
		{Retry{Returned: true, Min: 10, Max: 25}, 1, true, 0},
		{Retry{Failed: true, Min: 315_360_000_000, Max: 315_360_000_000}, 65535, true, 315_360_000_000},
		{Retry{}, 1, true, 0},
	} {
		assert.Equal(t, c.want, c.r.wait(7, c.times, c.failed), "%+v", c)
	}
}

// BenchmarkWaiting is one message that comes back, waits beside a million others and is ready again. longest-µs is the longest that a step
// of as many as are worked on under one lock took.
func BenchmarkWaiting(b *testing.B) {
	const depth, step = 1_000_000, AtOnce / 2
	o := unlimited
	o.Retry = unique.Make(Retry{Returned: true, Count: 1, Jitter: 100, Steps: [MaxSteps]deadline.Millis{3_600_000}})
	q := New(o)
	var fx Effects
	now := deadline.Instant(0)
	back := func(n int) {
		for range n {
			d, _ := q.Take(now, &fx)
			q.Return(now, now, d.Seq, true, false, &fx)
		}
	}
	longest := time.Duration(0)
	timed := func(fn func()) {
		began := time.Now()
		fn()
		longest = max(longest, time.Since(began))
	}
	for range depth / step {
		for range step {
			q.Publish(Message{ExpiresAt: farAway, Bytes: 100}, 0)
		}
		timed(func() { back(step) })
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += step {
		for q.Ready.Count < step { // each step of the clock ends the wait of some
			now = max(now, q.Wake(now, 0, &fx))
			timed(func() { q.Wake(now, step-q.Ready.Count, &fx) })
		}
		timed(func() { back(q.Ready.Count) })
	}
	b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
}
