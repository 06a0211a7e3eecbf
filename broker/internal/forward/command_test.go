package forward

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/memory"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// enter publishes one message or command.
func (f *fixture) enter(t require.TestingT, p amqp.Properties, at int64, command bool) {
	pos, err := f.env.Store.Put(store.Message{Exchange: []byte("x"), Properties: p.Append(nil)}, false, 1)
	require.NoError(t, err)
	s := f.env.Begin()
	defer s.Done()
	f.Publish(s, []delivery.Item{{Message: queue.Message{Pos: uint64(pos), ExpiresAt: deadline.Instant(at * 1000)}, Move: -1, Command: command}})
}

// scheduled is a message of the model.
type scheduled struct {
	name string
	at   deadline.Instant
	seq  uint64
}

// Whatever is published, cancelled, replaced and rescheduled under few names, by two users: each
// message leaves once, when it is due or when the answer says so, and a command is about the newest
// message of its sender's that has the id and is not due.
func TestCommandsHaveOneWinner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		defer f.close()
		var waiting []scheduled
		var left []uint64 // in the order in which they were due
		ended := map[string]Result{}
		var next uint64
		nameFor := func(t *rapid.T) (user, id string) {
			return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "user"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "id")
		}
		publish := func(name string, at int64) {
			next++
			waiting = append(waiting, scheduled{name, deadline.Instant(at * 1000), next})
		}
		command := func(header string) func(*rapid.T) {
			return func(t *rapid.T) {
				user, id := nameFor(t)
				at := f.now + rapid.Int64Range(1, 20).Draw(t, "in")
				only := rapid.Bool().Draw(t, "only")
				f.answers = nil
				p := amqp.Properties{UserID: user, MessageID: id, ReplyTo: "r", CorrelationID: "c", Headers: amqp.Table{header: id, "x-replace-only": only, "x-delay": int32(1)}}
				f.enter(t, p, at, true)
				i := len(waiting) - 1
				for i >= 0 && waiting[i].name != user+id {
					i--
				}
				want := cmp.Or(ended[user+id], NotFound)
				waits := i >= 0 && waiting[i].at > deadline.Instant(f.now*1000)
				if i >= 0 && !waits {
					want = TooLate
				}
				switch {
				case waits && header == "x-reschedule":
					want, waiting[i].at = Rescheduled, deadline.Instant(at*1000)
				case waits:
					waiting = slices.Delete(waiting, i, i+1)
					if want = Cancelled; header == "x-replace" {
						want = Replaced
					}
					ended[user+id] = want
				}
				if header == "x-replace" && (waits || !only) {
					publish(user+id, at)
				}
				require.Equal(t, []Answer{{"r", "c", want, ""}}, f.answers)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				user, id := nameFor(t)
				at := f.now + rapid.Int64Range(1, 20).Draw(t, "in")
				f.enter(t, amqp.Properties{UserID: user, MessageID: id}, at, false)
				publish(user+id, at)
			},
			"cancel":     command("x-cancel"),
			"replace":    command("x-replace"),
			"reschedule": command("x-reschedule"),
			"later":      func(t *rapid.T) { f.now += rapid.Int64Range(0, 15).Draw(t, "later") },
			"fire": func(*rapid.T) {
				f.OnTimer()
				due := slices.DeleteFunc(slices.Clone(waiting), func(m scheduled) bool { return m.at > deadline.Instant(f.now*1000) })
				slices.SortFunc(due, func(a, b scheduled) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
				for _, m := range due {
					left, ended[m.name] = append(left, m.seq), TooLate
				}
				waiting = slices.DeleteFunc(waiting, func(m scheduled) bool { return m.at <= deadline.Instant(f.now*1000) })
			},
			"": func(t *rapid.T) {
				var want, have []string
				for _, m := range waiting {
					want = append(want, fmt.Sprint(m.at, m.seq))
				}
				for _, ref := range refs(f.Waiting) {
					have = append(have, fmt.Sprint(ref.Deadline, ref.Seq))
				}
				assert.Equal(t, want, have)
				var gone []uint64
				for _, ref := range refs(f.Leaving) {
					gone = append(gone, ref.Seq)
				}
				assert.Equal(t, left, gone)
				byName := map[string]int{}
				for _, m := range waiting {
					byName[m.name]++
				}
				assert.Len(t, f.names.newest, len(byName))
				assert.Len(t, f.names.older, len(waiting)-len(byName))
				assert.Len(t, f.names.newer, len(waiting)-len(byName))
			},
		})
	})
}

// What has no message-id takes no memory in the index, and what has left only as much as its bound.
func TestNamesAreBounded(t *testing.T) {
	f := newFixture(t)
	defer f.close()
	f.enter(t, amqp.Properties{UserID: "a"}, 1e9, false)
	assert.Empty(t, f.names.newest)
	for i := range 3*endedKept + 1 {
		id := fmt.Sprint(i)
		f.enter(t, amqp.Properties{UserID: "a", MessageID: id}, 1e9, false)
		f.enter(t, amqp.Properties{UserID: "a", Headers: amqp.Table{"x-cancel": id}}, 0, true)
	}
	assert.Empty(t, f.names.newest)
	assert.Len(t, f.names.ended[0], 1)
	assert.Len(t, f.names.ended[1], endedKept)
	assert.LessOrEqual(t, f.dues.Len(), queue.StaleKept+2)
}

// A message that is put off again and again does not fill the heap.
func TestRescheduledMessagesLeaveTheHeap(t *testing.T) {
	f := newFixture(t)
	defer f.close()
	f.enter(t, amqp.Properties{UserID: "a", MessageID: "m"}, 1e9, false)
	for i := range 5 * queue.StaleKept {
		f.enter(t, amqp.Properties{UserID: "a", Headers: amqp.Table{"x-reschedule": "m", "x-delay": int32(1)}}, 1e9+1+int64(i), true)
		require.LessOrEqual(t, f.dues.Len(), queue.StaleKept+2)
	}
	f.now = 1e9 + 5*queue.StaleKept - 1
	f.OnTimer()
	assert.Equal(t, 1, f.Count(), "not early")
	f.now++
	for f.dues.Len() > 0 {
		f.OnTimer()
	}
	assert.Equal(t, 1, f.Letters.Count())
	assert.Zero(t, f.dues.Stale)
}

// An empty schedule gives back the memory for the names of what waited, and still answers and schedules.
func TestNamesShrinkWhenIdle(t *testing.T) {
	f := newFixture(t)
	defer f.close()
	cancel := amqp.Properties{UserID: "a", ReplyTo: "r", Headers: amqp.Table{"x-cancel": "m"}}
	for _, want := range []Result{NotFound, Cancelled} {
		f.enter(t, cancel, 0, true)
		f.enter(t, amqp.Properties{UserID: "a", MessageID: "m"}, f.now+1e6, false)
		f.enter(t, cancel, 0, true)
		assert.Equal(t, []Answer{{"r", "", want, ""}, {"r", "", Cancelled, ""}}, f.answers)
		f.now, f.answers = f.now+memory.ShrinkAfter.Milliseconds(), nil
		assert.True(t, f.ShrinkIfIdle())
	}
}

// Long property lists end a step: the name of a message is in its list, and others wait for the lock.
func TestLongPropertyListsEndAStep(t *testing.T) {
	f := newFixture(t)
	defer f.close()
	items := func(count int, p amqp.Properties, command bool) (all []delivery.Item) {
		for range count {
			pos, err := f.env.Store.Put(store.Message{Exchange: []byte("x"), Properties: p.Append(nil)}, false, 1)
			require.NoError(t, err)
			all = append(all, delivery.Item{Message: queue.Message{Pos: uint64(pos), ExpiresAt: deadline.Instant(2e6)}, Move: -1, Command: command})
		}
		return all
	}
	s := f.env.Begin()
	defer s.Done()
	long := amqp.Properties{UserID: "a", MessageID: "1", Headers: amqp.Table{"long": strings.Repeat(".", propertiesAtOnce/2)}}
	rest, _ := f.publishStep(s, items(8, long, false), nil)
	assert.Len(t, rest, 6)
	f.Publish(s, rest)
	require.Equal(t, 8, f.Count())
	page, next := f.waitingStep(0, 100, nil)
	assert.Len(t, page, 2)
	assert.NotZero(t, next)
	all, next := f.Waiting(0, 100)
	assert.Len(t, all, 8)
	assert.Zero(t, next)
	commands := items(5, amqp.Properties{UserID: "a", Headers: amqp.Table{"x-reschedule": "1", "x-delay": int32(1)}}, true)
	rest, _ = f.publishStep(s, commands, slices.Repeat([]command{commandOf(f.env.Store.View(store.Pos(commands[0].Message.Pos)))}, 5))
	assert.Len(t, rest, 3, "of the message that they name")
	f.Publish(s, rest)
	f.now = 3000
	for left := 6; left >= 0; left -= 2 {
		f.OnTimer()
		assert.Equal(t, left, f.Count())
	}
}
