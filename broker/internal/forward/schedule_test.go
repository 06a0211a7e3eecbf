package forward

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// fixture is a schedule whose clock stands still until it is set.
type fixture struct {
	Schedule
	env delivery.Env
	now int64 // in ms

	answers []Answer
}

func newFixture(t require.TestingT) *fixture {
	f := &fixture{now: 1_000}
	s, _, err := store.Open(store.Options{})
	require.NoError(t, err)
	now := func() int64 { return f.now * 1e6 }
	f.env.Store, f.env.Clock, f.env.Log, f.env.Expiries = s, deadline.GivenClock(now, now), zap.NewNop(), new(deadline.Stream)
	f.env.Init()
	ignore := func(...*delivery.Letters) {}
	f.Init(&f.env, 7, "delayed", &delivery.Lines{First: func(*delivery.Transition) {}, Later: ignore}, func(a Answer) { f.answers = append(f.answers, a) })
	return f
}

func (f *fixture) close() {
	f.env.Shrinker.Stop()
	f.env.Store.Close()
}

// publish enters one message that is due at a time in ms, and returns its ref.
func (f *fixture) publish(t require.TestingT, exchange string, at int64) deadline.Ref {
	pos, err := f.env.Store.Put(store.Message{Exchange: []byte(exchange)}, false, 1)
	require.NoError(t, err)
	s := f.env.Begin()
	defer s.Done()
	f.Publish(s, []delivery.Item{{Message: queue.Message{Pos: uint64(pos), ExpiresAt: deadline.Instant(at * 1000)}, Move: -1}})
	page, _ := f.Waiting(0, 1<<20)
	return page[len(page)-1].Ref
}

// Whatever is published and cancelled, and however often the timer fires: a message that was not
// cancelled goes in line once it is due and not earlier, in the order of due times and, among
// equals, of publishing.
func TestMessagesLeaveInOrderWhenDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		defer f.close()
		var waiting, due []deadline.Ref // waiting in the order of publishing
		actions := map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				waiting = append(waiting, f.publish(t, "x", f.now+rapid.Int64Range(1, 20).Draw(t, "in")))
			},
			"cancel": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip("none waits")
				}
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "which")
				assert.True(t, f.Cancel(waiting[i]))
				assert.False(t, f.Cancel(waiting[i]), "it is gone")
				waiting = append(waiting[:i:i], waiting[i+1:]...)
			},
			"fire": func(t *rapid.T) {
				f.now += rapid.Int64Range(0, 15).Draw(t, "later")
				f.OnTimer()
				for {
					first := -1
					for i, ref := range waiting {
						if ref.Deadline <= deadline.Instant(f.now*1000) && (first < 0 || ref.Deadline < waiting[first].Deadline) {
							first = i
						}
					}
					if first < 0 {
						break
					}
					due = append(due, waiting[first])
					waiting = append(waiting[:first:first], waiting[first+1:]...)
				}
			},
			"": func(t *rapid.T) {
				assert.True(t, slices.Equal(waiting, refs(f.Waiting)), "in the order of publishing: %v", waiting)
				assert.True(t, slices.Equal(due, refs(f.Leaving)), "in the order in which they were due: %v", due)
				assert.Equal(t, len(waiting), f.Count())
				assert.Equal(t, len(waiting), f.CountFor("x"))
				assert.EqualValues(t, len(due), f.Letters.Lines.Waiting.Load())
			},
		}
		t.Repeat(actions)
	})
}

// refs reads a list in small pages.
func refs(list func(from uint64, most int) ([]Message, uint64)) (all []deadline.Ref) {
	for from, more := uint64(0), true; more; more = from != 0 {
		var page []Message
		page, from = list(from, 3)
		for _, m := range page {
			all = append(all, m.Ref)
		}
	}
	return all
}

// Cancelled messages do not stay in the heap for as long as they would have waited.
func TestCancelledMessagesLeaveTheHeap(t *testing.T) {
	f := newFixture(t)
	defer f.close()
	kept := f.publish(t, "x", 1e9)
	for range 5 * queue.StaleKept {
		pos, err := f.env.Store.Put(store.Message{Exchange: []byte("y")}, false, 1)
		require.NoError(t, err)
		s := f.env.Begin()
		f.Publish(s, []delivery.Item{{Message: queue.Message{Pos: uint64(pos), ExpiresAt: 5e11}, Move: -1}})
		s.Done()
		page, _ := f.Waiting(kept.Seq+1, 1)
		require.True(t, f.Cancel(page[0].Ref))
		require.LessOrEqual(t, f.dues.Len(), queue.StaleKept+2)
	}
	assert.Zero(t, f.CountFor("y"))
	assert.Equal(t, 1, f.Count())
	f.now = 1e9
	for f.dues.Len() > 0 {
		f.OnTimer()
	}
	assert.Zero(t, f.dues.Stale)
	assert.Equal(t, 1, f.Letters.Count(), "what was kept is due")
}

// What is deleted takes nothing in and keeps nothing, but letters in line go on.
func TestDeletedSchedule(t *testing.T) {
	f := newFixture(t)
	defer f.close()
	f.publish(t, "x", 1_001)
	f.publish(t, "x", 2_000)
	f.now = 1_500
	f.OnTimer()
	f.Delete()
	assert.Zero(t, f.Count())
	assert.Equal(t, 1, f.Letters.Count())
	s := f.env.Begin()
	defer s.Done()
	pos, err := f.env.Store.Put(store.Message{}, false, 1)
	require.NoError(t, err)
	f.Publish(s, []delivery.Item{{Message: queue.Message{Pos: uint64(pos), ExpiresAt: 5e9}, Move: -1}})
	assert.Zero(t, f.Count())
	assert.False(t, f.Retained.Keep(s, delivery.Letter{Settings: settings}, nil, 0))
	assert.Equal(t, deadline.NoTimer, *f.TimerIndex())
	assert.Empty(t, f.RoutingKey("x", "", "id"))
}
