package delay

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// story drives a core like a session whose RabbitMQ has one queue.
type story struct {
	t   *testing.T
	c   *core
	ch  *channel
	now deadline.Instant
	tag uint64
	ids map[uint64]string // by tag
}

func newStory(t *testing.T, who cluster.Cancel) *story {
	s := &story{t: t, c: newCore("foo.delay", who, func(name string) bool { return name == "other.delay" }), ch: &channel{}, now: deadline.FromUnixMilli(1e12), ids: map[uint64]string{}}
	s.c.begin(s.now, 0)
	s.c.beganAt = 0 // that is long ago
	return s
}

func (s *story) deliver(d *amqp091.Delivery) {
	s.tag++
	s.ids[s.tag] = d.MessageId
	m := read(keeper.NewFingerprints(), "foo.delay", d)
	s.c.deliver(s.now, s.ch, s.tag, &m)
}

// published is a message with headers.
func published(id string, headers amqp091.Table) *amqp091.Delivery {
	return &amqp091.Delivery{MessageId: id, Headers: headers, ReplyTo: "r", CorrelationId: id, UserId: "u", RoutingKey: "k"}
}

// after lets time pass and returns what was done in it: +id is delivered, -id acknowledged, id=outcome answered.
func (s *story) after(d time.Duration) (done []string) {
	s.now = s.now.Add(d)
	s.c.tick(s.now)
	for _, e := range s.c.out {
		switch {
		case e.channel == nil:
			done = append(done, e.correl+"="+string(e.answer))
		case e.ack:
			done = append(done, "-"+s.ids[e.tag])
		default:
			done = append(done, "+"+s.ids[e.tag])
		}
	}
	s.c.out, s.c.expired, s.c.shadows = nil, nil, nil
	return done
}

func TestWhenDue(t *testing.T) {
	for name, one := range map[string]struct {
		message amqp091.Delivery
		after   time.Duration // negative: at once
	}{
		"x-delay":             {amqp091.Delivery{Headers: amqp091.Table{"x-delay": int32(1500)}}, 1500 * time.Millisecond},
		"float":               {amqp091.Delivery{Headers: amqp091.Table{"x-delay": 1500.9}}, 1500 * time.Millisecond},
		"digits":              {amqp091.Delivery{Headers: amqp091.Table{"x-delay": "1500"}}, 1500 * time.Millisecond},
		"more than 2^32 ms":   {amqp091.Delivery{Headers: amqp091.Table{"x-delay": int64(5e9)}}, 5e9 * time.Millisecond},
		"a thousand years":    {amqp091.Delivery{Headers: amqp091.Table{"x-delay": int64(3e13)}}, longest},
		"negative":            {amqp091.Delivery{Headers: amqp091.Table{"x-delay": int64(-5)}}, -1},
		"nonsense":            {amqp091.Delivery{Headers: amqp091.Table{"x-delay": "soon"}}, -1},
		"void":                {amqp091.Delivery{Headers: amqp091.Table{"x-delay": nil}}, -1},
		"nothing":             {amqp091.Delivery{}, -1},
		"until":               {amqp091.Delivery{Headers: amqp091.Table{"x-delay-until": int64(1e12 + 700)}}, 700 * time.Millisecond},
		"until long ago":      {amqp091.Delivery{Headers: amqp091.Table{"x-delay-until": int64(5)}}, -1},
		"expiration":          {amqp091.Delivery{Expiration: "300"}, 300 * time.Millisecond},
		"delay over it":       {amqp091.Delivery{Expiration: "300", Headers: amqp091.Table{"x-delay": 900}}, 900 * time.Millisecond},
		"through another":     {amqp091.Delivery{Headers: amqp091.Table{"x-delay": 900, "x-death": []any{amqp091.Table{"queue": "other.delay"}}}}, -1},
		"through this one":    {amqp091.Delivery{Headers: amqp091.Table{"x-delay": 900, "x-death": []any{amqp091.Table{"queue": "foo.delay"}}}}, 900 * time.Millisecond},
		"through another not": {amqp091.Delivery{Headers: amqp091.Table{"x-delay": 900, "x-death": []any{amqp091.Table{"queue": "jobs"}}}}, 900 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, cluster.CancelOff)
			s.deliver(&one.message)
			if one.after < 0 {
				s.c.tick(s.now.Add(time.Microsecond))
				require.Len(t, s.c.expired, 1)
				require.GreaterOrEqual(t, s.c.expired[0].Deadline, s.now, "it cannot be late before it came")
				require.Len(t, s.after(time.Microsecond), 1)
				return
			}
			require.Empty(t, s.after(one.after-time.Millisecond))
			require.Len(t, s.after(time.Millisecond+time.Microsecond), 1)
		})
	}
}

// TestCommandsSoonAfterAStart: RabbitMQ may say that nothing is ready a moment before it gives back what a killed Curfew held.
func TestCommandsSoonAfterAStart(t *testing.T) {
	s := newStory(t, cluster.CancelAny)
	s.c.begin(s.now, 0)
	s.deliver(published("1", cancel("a")))
	s.deliver(published("2", cancel("none")))
	for range 3 {
		require.Empty(t, s.after(patience+time.Millisecond))
		other := published("", amqp091.Table{"x-delay": int64(3_600_000)})
		other.Redelivered = true
		s.deliver(other)
	}
	late := published("a", amqp091.Table{"x-delay": int64(3_600_000)})
	late.Redelivered = true
	s.deliver(late)
	require.Equal(t, []string{"-a", "1=cancelled", "-1"}, s.after(0))
	require.Equal(t, []string{"2=not found", "-2"}, s.after(idle+time.Millisecond))
	for range 3 { // deliveries go on and on
		s.deliver(published("", amqp091.Table{"x-delay": int64(3_600_000)}))
		s.after(time.Second)
	}
	s.deliver(published("3", cancel("none")))
	s.now = s.now.Add(returning)
	s.deliver(published("", amqp091.Table{"x-delay": int64(3_600_000)}))
	require.Equal(t, []string{"3=not found", "-3"}, s.after(0))
}

// TestNothingToDo: the core asks for a turn now and then while nothing happens, and when something is due, not all the time.
func TestNothingToDo(t *testing.T) {
	s := newStory(t, cluster.CancelOff)
	s.c.begin(s.now, 1)
	turns := func(d time.Duration) (n int) {
		for end := s.now.Add(d); s.now < end; n++ {
			s.after(0)
			wake := s.c.wake(s.now)
			require.Greater(t, wake, s.now)
			s.now = min(wake, end)
		}
		return n
	}
	require.LessOrEqual(t, turns(time.Hour), 62, "one message did not come, and nothing else does")
	s.deliver(published("a", amqp091.Table{"x-delay": 30_000}))
	require.LessOrEqual(t, turns(time.Hour), 62)
	require.Equal(t, uint64(1), s.c.counts.Expired)
	s.deliver(published("b", amqp091.Table{"x-cancel": "none"}))
	require.LessOrEqual(t, turns(time.Hour), 62)
}

// TestComesAgain: due times are known after the channel is lost, from another Curfew, or from the message; never is one earlier.
func TestComesAgain(t *testing.T) {
	hour := amqp091.Table{"x-delay": int64(3_600_000)}
	s := newStory(t, cluster.CancelOff)
	s.deliver(published("a", hour))
	require.Len(t, s.c.shadows, 1)
	shadows := s.c.shadows
	require.Empty(t, s.after(10*time.Minute))
	s.c.lose(func(ch *channel) bool { return ch == s.ch })
	again := published("a", hour)
	again.Redelivered = true
	s.deliver(again)
	require.Empty(t, s.after(50*time.Minute-time.Millisecond))
	require.Equal(t, []string{"+a"}, s.after(time.Millisecond+time.Microsecond))
	s.c.lose(nil) // RabbitMQ has not heard that
	s.deliver(again)
	require.Equal(t, []string{"+a"}, s.after(time.Millisecond))

	other := newStory(t, cluster.CancelOff)
	other.now = other.now.Add(2 * time.Hour)
	other.c.remember(shadows)
	other.deliver(again)
	require.Equal(t, []string{"+a"}, other.after(time.Millisecond), "overdue")

	unknown := newStory(t, cluster.CancelOff)
	unknown.deliver(again)
	require.Empty(t, unknown.after(59*time.Minute))
	require.EqualValues(t, 1, unknown.c.counts.UnknownAge)
	require.Equal(t, []string{"+a"}, unknown.after(time.Minute+time.Microsecond))

	stamped := newStory(t, cluster.CancelOff)
	again.Timestamp = stamped.now.Add(-30 * time.Minute).Time()
	stamped.deliver(again)
	require.Empty(t, stamped.after(30*time.Minute))
	require.Equal(t, []string{"+a"}, stamped.after(time.Second+time.Millisecond))
}

// TestKnowsWhatTheLastOneKnew: a keeper begins with the due times that the queue's last keeper knew.
func TestKnowsWhatTheLastOneKnew(t *testing.T) {
	o := Options{ClockOffset: noOffset, Options: keeper.Options{Queue: "q", Log: zap.NewNop(), Now: func() deadline.Instant { return 1 }, Remembered: []keeper.Shadow{{Fingerprint: 1, Deadline: 5}, {Fingerprint: 1, Deadline: 9}},
		Connect: func(context.Context) (*cluster.Conn, error) { return nil, nil }, Facts: func(context.Context) (keeper.Facts, error) { return keeper.Facts{}, nil }}}
	k, err := New(o)
	require.NoError(t, err)
	require.Equal(t, o.Remembered, k.Remembered())
}

// TestEqualMessages: of equal messages, those that are still there are the latest.
func TestEqualMessages(t *testing.T) {
	s := newStory(t, cluster.CancelOff)
	minute := published("", amqp091.Table{"x-delay": int64(60_000)})
	for range 3 {
		s.deliver(minute)
		s.after(20 * time.Second)
	}
	require.Len(t, s.after(time.Millisecond), 1, "the first")
	s.c.lose(nil)
	minute.Redelivered = true
	s.deliver(minute)
	s.deliver(minute)
	require.Empty(t, s.after(19*time.Second))
	require.Len(t, s.after(time.Second), 1)
	require.Empty(t, s.after(19*time.Second))
	require.Len(t, s.after(time.Second), 1)
}

func TestCommands(t *testing.T) {
	hour := func(more ...string) amqp091.Table {
		headers := amqp091.Table{"x-delay": int64(3_600_000)}
		for i := 0; i < len(more); i += 2 {
			headers[more[i]] = more[i+1]
		}
		return headers
	}

	t.Run("cancel", func(t *testing.T) {
		s := newStory(t, cluster.CancelAny)
		s.deliver(published("a", hour()))
		s.deliver(published("a", hour())) // the publisher was not sure
		s.deliver(published("1", cancel("a")))
		require.Equal(t, []string{"-a", "-a", "1=cancelled", "-1"}, s.after(0))
		require.Empty(t, s.after(2*time.Hour))
		s.c.lose(nil) // RabbitMQ has not heard that
		lost := published("a", hour())
		lost.Redelivered = true
		s.deliver(lost)
		require.Equal(t, []string{"-a"}, s.after(0))
	})
	t.Run("no text", func(t *testing.T) {
		s := newStory(t, cluster.CancelAny)
		s.deliver(published("17", hour()))
		s.deliver(published("1", amqp091.Table{"x-cancel": int32(17)}))
		s.deliver(published("2", amqp091.Table{"x-reschedule": int64(17), "x-delay": int64(1)}))
		require.Equal(t, []string{"1=refused", "-1", "2=refused", "-2"}, s.after(0), "they are no jobs")
		s.deliver(published("3", amqp091.Table{"x-cancel": nil, "x-delay": int64(1)}))
		s.deliver(published("4", amqp091.Table{"x-replace": 17, "x-delay": int64(1)}))
		require.Equal(t, []string{"4=refused", "+3", "+4"}, s.after(time.Second))
		require.Equal(t, []string{"+17"}, s.after(time.Hour))
	})
	t.Run("cancel comes first", func(t *testing.T) {
		s := newStory(t, cluster.CancelAny)
		s.deliver(published("1", cancel("a")))
		require.Empty(t, s.after(patience/2))
		s.deliver(published("a", amqp091.Table{"x-delay": int64(1)}))
		require.Equal(t, []string{"-a", "1=cancelled", "-1"}, s.after(0))
		s.deliver(published("2", cancel("b")))
		require.Equal(t, []string{"2=not found", "-2"}, s.after(patience+time.Millisecond))
	})
	t.Run("nothing is settled before all is read", func(t *testing.T) {
		s := newStory(t, cluster.CancelAny)
		s.c.begin(s.now, 3)
		s.deliver(published("a", amqp091.Table{"x-delay": int64(1)}))
		s.deliver(published("b", amqp091.Table{"x-delay": int64(1)}))
		require.Empty(t, s.after(100*time.Millisecond))
		s.deliver(published("1", cancel("b")))
		require.Equal(t, []string{"-b", "1=cancelled", "-1", "+a"}, s.after(0))
	})
	t.Run("replace", func(t *testing.T) {
		s := newStory(t, cluster.CancelAny)
		s.deliver(published("a", hour()))
		s.deliver(published("b", hour("x-replace", "a")))
		require.Equal(t, []string{"-a", "b=replaced"}, s.after(0))
		only := hour("x-replace", "a")
		only["x-replace-only"] = true
		s.deliver(published("c", only))
		require.Equal(t, []string{"c=not found", "-c"}, s.after(patience+time.Millisecond))
		s.deliver(published("d", hour("x-replace", "z")))
		require.Equal(t, []string{"d=not found"}, s.after(patience+time.Millisecond))
		require.Equal(t, []string{"+b", "+d"}, s.after(time.Hour))
	})
	t.Run("a replacement that comes again stays", func(t *testing.T) {
		s := newStory(t, cluster.CancelAny)
		only := hour("x-replace", "a")
		only["x-replace-only"] = true
		s.deliver(published("a", hour()))
		s.deliver(published("b", only))
		s.after(0)
		s.c.lose(nil)
		again := published("b", only)
		again.Redelivered = true
		s.deliver(again)
		require.Empty(t, s.after(patience+time.Millisecond))
		require.Equal(t, []string{"+b"}, s.after(time.Hour))
	})
	t.Run("reschedule", func(t *testing.T) {
		s := newStory(t, cluster.CancelAny)
		s.deliver(published("a", hour()))
		s.deliver(published("1", amqp091.Table{"x-delay": int64(5000), "x-reschedule": "a"}))
		require.Len(t, s.c.shadows, 3)
		shadows := s.c.shadows
		require.Equal(t, []string{"1=rescheduled", "-1"}, s.after(0))
		other := newStory(t, cluster.CancelAny)
		other.c.remember(shadows)
		again := published("a", hour())
		again.Redelivered = true
		other.deliver(again)
		require.Empty(t, other.after(4999*time.Millisecond))
		require.Equal(t, []string{"+a"}, other.after(2*time.Millisecond))
		require.Equal(t, []string{"+a"}, s.after(5*time.Second+time.Millisecond))
	})
	t.Run("reschedule what has a stamp", func(t *testing.T) {
		for name, heard := range map[string]bool{"RabbitMQ has heard it": true, "and has not": false} {
			t.Run(name, func(t *testing.T) {
				s := newStory(t, cluster.CancelAny)
				s.c.putsAside = true
				stamp := func() string {
					require.Len(t, s.c.out, 1)
					aside := s.c.out[0].stamp
					require.NotEmpty(t, aside)
					s.c.out = nil
					return aside
				}
				back := func(stamp string) {
					again := published("a", amqp091.Table{"x-delay": int64(50_000), stampHeader: stamp})
					again.Redelivered = true
					s.deliver(again)
				}
				s.deliver(published("a", amqp091.Table{"x-delay": int64(50_000)}))
				first := stamp()
				back(first)
				require.Equal(t, Rescheduled, s.c.reschedule(s.now, "a", s.now.Add(52*time.Second)))
				second := stamp()
				if !heard {
					s.c.lose(nil)
					second = first
				}
				back(second)
				require.Len(t, s.c.waiting.Items, 1)
				require.Empty(t, s.after(51999*time.Millisecond), "never early")
				require.Equal(t, []string{"+a"}, s.after(2*time.Millisecond))
				s.c.prune(s.now.Add(2 * recentFor))
				require.Empty(t, s.c.restamped)
			})
		}
	})
	t.Run("who may", func(t *testing.T) {
		off := newStory(t, cluster.CancelOff)
		off.deliver(published("a", hour()))
		off.deliver(published("1", cancel("a")))
		require.Equal(t, []string{"1=refused", "-1"}, off.after(0))
		same := newStory(t, cluster.CancelSameUser)
		same.deliver(published("a", hour()))
		other, nobody := published("1", cancel("a")), published("2", cancel("a"))
		other.UserId, nobody.UserId = "v", ""
		same.deliver(other)
		same.deliver(nobody)
		same.deliver(published("3", cancel("a")))
		require.Equal(t, []string{"1=refused", "-1", "2=refused", "-2", "-a", "3=cancelled", "-3"}, same.after(0))
	})
}

// TestAgainstModel: in a random history with lost channels, each message is delivered once, at its time and not before, unless it was cancelled. What the
// core wrote last before a channel was lost may not have reached RabbitMQ.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newStory(t, cluster.CancelAny)
		type waiting struct {
			d         *amqp091.Delivery
			due       deadline.Instant
			cancelled bool
		}
		there := map[string]*waiting{}
		for i := range 300 {
			switch r.IntN(10) {
			case 0, 1, 2, 3:
				id, delay := strconv.Itoa(i), int64(1+r.IntN(20_000))
				there[id] = &waiting{d: published(id, amqp091.Table{"x-delay": delay}), due: s.now.Add(time.Duration(delay) * time.Millisecond)}
				s.deliver(there[id].d)
			case 4:
				id := strconv.Itoa(r.IntN(i + 1))
				s.deliver(published("c"+id, cancel(id)))
				if w := there[id]; w != nil && w.due > s.now {
					w.cancelled = true
				}
			case 5:
				written := r.IntN(2) == 0
				s.c.tick(s.now)
				if written {
					for _, e := range s.c.out {
						if e.channel != nil {
							delete(there, s.ids[e.tag])
						}
					}
				}
				s.c.out, s.c.expired, s.c.shadows = nil, nil, nil
				s.c.lose(nil)
				s.ch = &channel{}
				for _, w := range there {
					w.d.Redelivered = true
					s.deliver(w.d)
				}
			default:
				for _, done := range s.after(time.Duration(r.IntN(4000)) * time.Millisecond) {
					id := done[1:]
					w := there[id]
					if w == nil {
						continue // a command
					}
					require.Equal(t, w.cancelled, done[0] == '-', "seed %d: %s", seed, done)
					require.True(t, w.cancelled || w.due <= s.now, "seed %d: %s is early", seed, id)
					delete(there, id)
				}
			}
			require.Equal(t, s.ch.held, len(s.c.waiting.Items)+len(s.c.commands), "seed %d", seed)
		}
		s.after(time.Minute)
		require.Empty(t, s.c.waiting.Items)
		require.Empty(t, s.c.byID)
	}
}

// cancel is a command.
func cancel(id string) amqp091.Table { return amqp091.Table{"x-cancel": id} }

// TestPendingBefore counts through the heap.
func TestPendingBefore(t *testing.T) {
	k := &Keeper{core: newCore("q", cluster.CancelOff, nil)}
	for i := range 100 {
		m := read(keeper.NewFingerprints(), "foo.delay", published("", amqp091.Table{"x-delay": int64(1000 * (100 - i))}))
		k.core.begin(0, 0)
		k.core.deliver(1, &channel{}, uint64(i), &m)
	}
	require.Equal(t, []int64{0, 50, 100}, k.PendingBefore([]deadline.Instant{1, deadline.FromUnixMilli(50_500), deadline.FromUnixMilli(1e9)}, nil))
}

// failingShadows cannot be read.
type failingShadows struct{ keeper.Shadows }

func (failingShadows) Load(context.Context) ([]keeper.Shadow, error) {
	return nil, errors.New("no answer")
}

// TestUnreadableShadows: it is told what follows for messages that wait.
func TestUnreadableShadows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		core, warnings := observer.New(zap.WarnLevel)
		k, err := New(Options{ClockOffset: noOffset, Options: keeper.Options{Queue: "foo.delay", Shadows: failingShadows{}, Log: zap.New(core), Now: func() deadline.Instant { return 1 },
			Facts:   func(context.Context) (keeper.Facts, error) { return keeper.Facts{}, nil },
			Connect: func(context.Context) (*cluster.Conn, error) { stop(); return nil, ctx.Err() }}})
		require.NoError(t, err)
		require.NoError(t, k.Run(ctx))
		require.Equal(t, 1, warnings.Len())
		require.Contains(t, warnings.All()[0].Message, "the delay of messages begins again")
	})
}

func noOffset() time.Duration { return 0 }

// TestManyEqualMessages: 50,000 messages with one id and one body are lost with their channel and come again. Each is out once, in the order of
// the due times, and none takes a look at all others.
func TestManyEqualMessages(t *testing.T) {
	const n = 50_000
	s := newStory(t, cluster.CancelAny)
	for range n {
		s.deliver(published("same", amqp091.Table{"x-delay": int32(60_000)}))
	}
	s.c.lose(nil)
	s.ch = &channel{}
	s.c.begin(s.now, n)
	again := published("same", amqp091.Table{"x-delay": int32(60_000)})
	again.Redelivered = true
	for range n {
		s.deliver(again)
	}
	require.Empty(t, s.after(time.Minute-time.Millisecond), "early")
	out := 0
	for _, what := range s.after(time.Minute) {
		require.Equal(t, "+same", what)
		out++
	}
	require.Equal(t, n, out)
}

// TestPutAside: what is due later than a minute is put aside; cancelled or replaced, it is acknowledged when it comes back, also by a Curfew that did not know it.
func TestPutAside(t *testing.T) {
	s := newStory(t, cluster.CancelAny)
	s.c.putsAside, s.c.complete, s.c.self = true, true, "curfew"
	stamps := map[string]string{}
	after := func(d time.Duration) (done []string) {
		var rest []effect
		out := s.c.out
		s.c.out = nil
		for _, e := range out {
			switch {
			case e.aside > 0:
				stamps[s.ids[e.tag]] = e.stamp
				done = append(done, "aside "+s.ids[e.tag])
			case e.tombstone != nil:
				e.tombstone.confirm()
				done = append(done, "tombstone "+e.tombstone.id)
			default:
				rest = append(rest, e)
			}
		}
		s.c.out = append(rest, s.c.out...)
		return append(done, s.after(d)...)
	}
	back := func(id string, header string, v any) {
		again := published(id, amqp091.Table{header: v, stampHeader: stamps[id]})
		again.Redelivered = true
		s.deliver(again)
	}
	hour := int64(3_600_000)
	for _, id := range []string{"a", "b", "c", "d"} {
		s.deliver(published(id, amqp091.Table{"x-delay": hour}))
	}
	s.deliver(published("short", amqp091.Table{"x-delay": int64(4000)}))
	require.Equal(t, []string{"aside a", "aside b", "aside c", "aside d", "+short"}, after(5*time.Second))
	require.Len(t, s.c.waiting.Items, 4)
	s.deliver(published("end b", amqp091.Table{"x-cancel": "b"}))
	s.deliver(published("c2", amqp091.Table{"x-replace": "c", "x-delay": int64(1000)}))
	s.deliver(published("sooner", amqp091.Table{"x-reschedule": "a", "x-delay": int64(1000)}))
	require.Equal(t, []string{"tombstone c", "end b=cancelled", "sooner=put aside", "-sooner", "c2=replaced", "+c2"}, after(1001*time.Millisecond))
	k := &Keeper{core: s.c, lease: &keeper.Renewal{}}
	require.Equal(t, 1, k.Status().Commands, "that to end b; the tombstone of c is not here")
	s.c.lose(nil) // the tombstone of b goes back, and those aside stay known
	require.Zero(t, k.Status().Commands)
	require.Len(t, s.c.waiting.Items, 2)
	again := published("end b", amqp091.Table{"x-cancel": "b"})
	again.Redelivered = true
	s.deliver(again)
	require.Equal(t, []string{"end b=cancelled"}, after(0))
	s.now = s.now.Add(59 * time.Minute)
	for _, id := range []string{"a", "b", "c"} {
		back(id, "x-delay", hour)
	}
	require.Equal(t, []string{"-b", "-end b", "-c"}, after(0))
	require.Equal(t, []string{"+a"}, after(time.Minute))
	require.Empty(t, s.c.tombstones)
	require.Equal(t, Unclear, s.c.cancelHere(s.now, "d"), "RabbitMQ is late with it, so not all is known")

	other := newStory(t, cluster.CancelAny)
	other.c.putsAside = true
	other.now = s.now
	s.c, s.ids = other.c, map[uint64]string{}
	s.deliver(published("end d", amqp091.Table{"x-cancel": "d"}))
	require.Equal(t, []string{"end d=unknown"}, after(patience))
	back("d", "x-delay", hour)
	require.Equal(t, []string{"-d", "-end d"}, after(time.Hour))

	stale := published("again", amqp091.Table{"x-delay": hour, stampHeader: stampOf(1, 0, 1), "x-death": []any{amqp091.Table{"queue": "foo.delay", "count": int64(1)}}})
	stale.Redelivered = true
	s.deliver(stale)
	require.Equal(t, []string{"aside again"}, after(0), "its stamp is of an earlier wait")
}

// TestListsWhatIsNotKnown: a message of unknown age is not known any better once it is put aside, until somebody says when it is due.
func TestListsWhatIsNotKnown(t *testing.T) {
	s := newStory(t, cluster.CancelOff)
	s.c.putsAside = true
	again := published("a", amqp091.Table{"x-delay": int64(90_000)})
	again.Redelivered = true
	s.deliver(again)
	k := &Keeper{core: s.c}
	known := func() Known { return k.List(0, "a", 1)[0].Known }
	require.Equal(t, Unknown, known())
	again.Headers[stampHeader] = s.c.out[0].stamp
	s.after(30 * time.Second)
	s.deliver(again)
	require.Equal(t, Unknown, known())
	s.c.reschedule(s.now, "a", s.now.Add(time.Hour))
	require.Equal(t, ByStamp, known())
}

// TestAnotherCurfewHadTheQueue: it may have put more aside, so what is not known here may be.
func TestAnotherCurfewHadTheQueue(t *testing.T) {
	s := newStory(t, cluster.CancelOff)
	s.c.putsAside = true
	s.c.nothingAside()
	s.deliver(published("a", amqp091.Table{"x-delay": int64(3_600_000)}))
	s.after(0)
	require.Equal(t, NotFound, s.c.cancelHere(s.now, "b"))
	s.c.inherit(nil)
	require.Empty(t, s.c.waiting.Items)
	require.Equal(t, Unclear, s.c.cancelHere(s.now, "a"))
	require.Equal(t, Unclear, s.c.cancelHere(s.now, "b"))
}

// TestClocksDiffer: by the clock of RabbitMQ, which is ahead, a message comes back early. It is held, and not put aside again and again.
func TestClocksDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{time.Second, time.Hour} {
		s := newStory(t, cluster.CancelOff)
		s.c.putsAside = true
		s.deliver(published("a", amqp091.Table{"x-delay": int64(7_200_000)}))
		require.Len(t, s.c.out, 1)
		stamp := s.c.out[0].stamp
		s.c.out = nil
		s.now = s.now.Add(2*time.Hour - HeldFor - ahead)
		back := published("a", amqp091.Table{"x-delay": int64(7_200_000), stampHeader: stamp})
		back.Redelivered = true
		s.deliver(back)
		require.Empty(t, s.after(HeldFor+ahead-time.Millisecond))
		require.Equal(t, ahead == time.Hour, s.c.troubles["clock"] != "")
		require.Equal(t, []string{"+a"}, s.after(time.Millisecond+time.Microsecond))
	}
}

// TestClockIsSet: when somebody sets the machine's clock, which was wrong, absolute times are by the new one, and what was delayed from its receipt stays so.
func TestClockIsSet(t *testing.T) {
	const late = -time.Hour // the wall clock was an hour early
	until := func(in time.Duration) amqp091.Table {
		return amqp091.Table{"x-delay-until": deadline.FromUnixMilli(1e12).Add(in).UnixMilli()}
	}
	s := newStory(t, cluster.CancelOff)
	s.deliver(published("before", until(2*time.Hour)))
	s.deliver(published("relative", amqp091.Table{"x-delay": int64(7_200_000)}))
	s.c.clockIs(late)
	s.deliver(published("after", until(2*time.Hour+time.Second)))
	old := published("old", amqp091.Table{"x-delay": int64(7_200_000), "timestamp_in_ms": int64(1e12)})
	old.Redelivered = true
	s.deliver(old)
	require.Empty(t, s.after(time.Hour-time.Millisecond))
	require.ElementsMatch(t, []string{"+before", "+old"}, s.after(2*time.Millisecond))
	require.Equal(t, []string{"+after"}, s.after(time.Second))
	require.Equal(t, []string{"+relative"}, s.after(time.Hour))

	s = newStory(t, cluster.CancelOff)
	s.c.putsAside = true
	s.c.clockIs(late)
	s.deliver(published("a", amqp091.Table{"x-delay": int64(7_200_000)}))
	require.Len(t, s.c.out, 1)
	stamp := s.c.out[0].stamp
	wall := s.now.Add(-late).Add(2 * time.Hour)
	require.InDelta(t, int64(wall), int64(s.c.out[0].aside), 1000)
	require.InDelta(t, int64(wall.Add(-HeldFor)), int64(s.c.out[0].until), 1000)
	s.c.out = nil
	s.c.clockIs(0)
	back := published("a", amqp091.Table{"x-delay": int64(7_200_000), stampHeader: stamp})
	back.Redelivered = true
	s.deliver(back)
	require.Empty(t, s.after(2*time.Hour-time.Millisecond))
	require.Equal(t, []string{"+a"}, s.after(2*time.Millisecond))

	other := newStory(t, cluster.CancelOff)
	other.c.clockIs(late)
	other.deliver(back)
	require.Empty(t, other.after(2*time.Hour-time.Millisecond))
	require.Equal(t, []string{"+a"}, other.after(2*time.Millisecond))
}

// TestForgetsWhatRabbitMQHasHeard: what was discarded before the connection was lost comes again soon after that, or never.
func TestForgetsWhatRabbitMQHasHeard(t *testing.T) {
	s := newStory(t, cluster.CancelOff)
	second := amqp091.Table{"x-delay": int64(1000)}
	s.deliver(published("heard", second))
	s.deliver(published("unheard", second))
	require.Len(t, s.after(2*time.Second), 2)
	s.c.lose(nil)
	s.now = s.now.Add(10 * time.Minute) // RabbitMQ is away
	s.c.begin(s.now, 1)
	s.c.prune(s.now)
	again := published("unheard", second)
	again.Redelivered = true
	s.deliver(again)
	require.Equal(t, []string{"+unheard"}, s.after(time.Millisecond))
	s.after(2 * time.Minute)
	s.c.prune(s.now)
	require.Empty(t, s.c.remembered)
}

// TestList: the first to be due come first, however many there are.
func TestList(t *testing.T) {
	s := newStory(t, cluster.CancelOff)
	k := &Keeper{core: s.c}
	for i := range 1000 {
		s.deliver(published(strconv.Itoa(i), amqp091.Table{"x-delay": int64(100_000 + i*7919%1000*1000)}))
	}
	all := k.List(0, "", 2000)
	require.Len(t, all, 1000)
	require.True(t, slices.IsSortedFunc(all, func(a, b Waiting) int { return cmp.Compare(a.Due, b.Due) }))
	for _, limit := range []int{0, 1, 10, 999} {
		require.Len(t, k.List(0, "", limit), limit)
		require.ElementsMatch(t, all[:limit], k.List(0, "", limit))
	}
	require.Equal(t, all[:100], k.List(all[100].Due, "", 1000))
	require.Len(t, k.List(0, "7", 10), 1)
}

// TestExpiresBeforeItIsDue: what RabbitMQ would expire before it is due is held, since RabbitMQ would deliver it when it comes back.
func TestExpiresBeforeItIsDue(t *testing.T) {
	delay := func(ms int64) amqp091.Table { return amqp091.Table{"x-delay": ms} }
	for name, one := range map[string]struct {
		ttl        time.Duration
		expiration string
		headers    amqp091.Table
		held       bool
		trouble    bool
	}{
		"expires first":             {-1, "5000", delay(75_000), true, false},
		"expires later":             {-1, "80000", delay(75_000), false, false},
		"until, expires first":      {-1, "5000", amqp091.Table{"x-delay-until": int64(1e12 + 75_000)}, true, false},
		"until, expires later":      {-1, "80000", amqp091.Table{"x-delay-until": int64(1e12 + 75_000)}, false, false},
		"only expiration":           {-1, "75000", nil, false, false},
		"TTL of the queue":          {3 * time.Second, "", delay(90_000), true, true},
		"TTL, and expires before":   {9 * time.Second, "5000", delay(90_000), true, true},
		"TTL is longer":             {100 * time.Second, "", delay(90_000), false, false},
		"TTL is longer, expiration": {100 * time.Second, "5000", delay(90_000), true, false},
		"only the TTL":              {90 * time.Second, "", nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, cluster.CancelOff)
			s.c.putsAside, s.c.ttl = true, one.ttl
			m := published("a", one.headers)
			m.Expiration = one.expiration
			s.deliver(m)
			require.Equal(t, one.held, len(s.c.out) == 0)
			require.Equal(t, one.trouble, s.c.troubles["ttl"] != "")
			if one.held {
				require.Len(t, s.c.shadows, 1)
				s.c.lose(nil)
				m.Redelivered = true
				s.deliver(m)
				require.Empty(t, s.c.out)
			}
		})
	}
}

// TestCaughtUp: messages that RabbitMQ counted may never come. All has been read when two looks find none ready, although others still come.
func TestCaughtUp(t *testing.T) {
	s := newStory(t, cluster.CancelOff)
	s.c.begin(s.now, 1000)
	for i := range 10 {
		s.deliver(published("old", amqp091.Table{"x-delay": int64(1)}))
		require.Empty(t, s.after(time.Second), i)
		s.c.looked(10 - i)
	}
	s.c.looked(0)
	require.Empty(t, s.after(time.Millisecond), "it may be on its way")
	s.c.looked(0)
	require.Len(t, s.after(0), 10)
}

// TestTombstoneTwice: a tombstone that RabbitMQ has not confirmed is published again, and may then be in the queue twice. It ends what was put aside before the
// command, whoever reads it, and nothing later with the same id.
func TestTombstoneTwice(t *testing.T) {
	hour := amqp091.Table{"x-delay": int64(3_600_000)}
	begin := func() *story {
		s := newStory(t, cluster.CancelOff)
		s.c.putsAside, s.c.self = true, "curfew"
		return s
	}
	var stamps []string
	out := func(s *story) (done []string) {
		for _, e := range s.c.out {
			switch {
			case e.tombstone != nil:
				done = append(done, "tombstone")
			case e.aside > 0:
				stamps = append(stamps, e.stamp)
			case e.ack:
				done = append(done, "-"+s.ids[e.tag])
			}
		}
		s.c.out = nil
		return done
	}
	back := func(s *story, at int) {
		again := published("a", amqp091.Table{"x-delay": int64(3_600_000), stampHeader: stamps[at]})
		again.Redelivered = true
		s.deliver(again)
	}
	tombstone := func(s *story, name string, until deadline.Instant) {
		d := published(name, amqp091.Table{"x-cancel": "a", beforeHeader: int64(until)})
		d.UserId = "curfew"
		s.deliver(d)
	}

	s := begin()
	s.deliver(published("a", hour))
	require.Equal(t, Cancelled, s.c.cancelHere(s.now, "a"))
	require.Equal(t, []string{"tombstone"}, out(s))
	until := s.c.tombstones[tombstoneKey{"a", s.c.self}].since
	s.c.lose(nil)
	s.c.begin(s.now, 0)
	require.Equal(t, []string{"tombstone"}, out(s), "it is not known whether RabbitMQ has it")
	tombstone(s, "first", until)
	tombstone(s, "second", until)
	require.Equal(t, []string{"-first"}, out(s), "one is enough")
	s.c.begin(s.now, 0)
	require.Empty(t, out(s), "it was delivered, so RabbitMQ has it")
	s.now = s.now.Add(time.Second)
	s.deliver(published("a", hour)) // the id is used again
	require.Empty(t, out(s))
	back(s, 0)
	require.Equal(t, []string{"-a", "-second"}, out(s))
	tombstone(s, "third", until)
	require.Empty(t, out(s), "nothing of it is known")
	require.Len(t, s.c.byID, 1, "the newer one waits")
	require.Equal(t, Cancelled, s.c.cancelHere(s.now, "a"))
	back(s, 1)
	require.Equal(t, []string{"tombstone", "-a", "-third"}, out(s), "now it is cancelled, too")

	other := begin() // after the first has died
	other.now = s.now.Add(59*time.Minute + 30*time.Second)
	back(other, 0)
	back(other, 1)
	tombstone(other, "first", until)
	require.Equal(t, []string{"-a", "-first"}, out(other), "what has come back before it")
	tombstone(other, "second", until)
	require.Empty(t, out(other))
	require.Equal(t, []string{"+a"}, other.after(time.Minute), "the newer one")
	other.c.nothingAside()
	require.Equal(t, []string{"-second"}, out(other))

	spoof := begin()
	spoof.c.cancel = cluster.CancelAny
	spoof.deliver(published("a", hour))
	out(spoof)
	spoof.deliver(published("spoof", amqp091.Table{"x-cancel": "a", beforeHeader: int64(until.Add(-time.Hour))}))
	back(spoof, len(stamps)-1)
	require.Equal(t, []string{"-a", "-spoof"}, out(spoof), "it is Curfew's own only from Curfew's user")
}

// TestIdUsedAgain: who cancels a message and publishes another one with its id gets that, although the connection or Curfew is lost between them.
func TestIdUsedAgain(t *testing.T) {
	hour := amqp091.Table{"x-delay": int64(3_600_000)}
	begin := func(now deadline.Instant) *story {
		s := newStory(t, cluster.CancelAny)
		s.c.putsAside, s.c.self, s.now = true, "curfew", now
		return s
	}
	back := func(s *story, stamp string) {
		again := published("a", amqp091.Table{"x-delay": int64(3_600_000), "n": stamp})
		if stamp != "" {
			again.Headers[stampHeader] = stamp
		}
		again.Redelivered = true
		s.deliver(again)
	}
	s := begin(deadline.FromUnixMilli(1e12))
	s.deliver(published("a", hour))
	first := s.c.out[0].stamp
	s.now = s.now.Add(time.Second)
	require.Equal(t, Cancelled, s.c.cancelHere(s.now, "a"))
	until := s.c.tombstones[tombstoneKey{"a", s.c.self}].since
	s.now = s.now.Add(time.Second)
	s.deliver(published("a", amqp091.Table{"x-delay": int64(3_600_000), "n": "second"}))
	second := s.c.out[len(s.c.out)-1].stamp
	s.c.lose(nil) // RabbitMQ has not heard that it is to be put aside
	s.c.begin(s.now, 0)
	s.c.out = nil
	again := published("a", amqp091.Table{"x-delay": int64(3_600_000), "n": "second"})
	again.Redelivered = true
	s.deliver(again)
	require.Len(t, s.c.out, 1)
	require.NotZero(t, s.c.out[0].aside, "it is put aside once more")

	other := begin(s.now.Add(58 * time.Minute))
	tombstone := published("tombstone", amqp091.Table{"x-cancel": "a", beforeHeader: int64(until)})
	tombstone.UserId = "curfew"
	other.deliver(tombstone)
	back(other, "") // it was on its way to the first when that died
	require.Len(t, other.c.out, 1)
	require.NotZero(t, other.c.out[0].aside, "it is not what was cancelled")
	other.c.out = nil
	other.now = other.now.Add(2 * time.Minute)
	back(other, first)
	require.Equal(t, []string{"-a", "-tombstone"}, other.after(0))
	back(other, second)
	require.Equal(t, []string{"+a"}, other.after(time.Minute), "not what was cancelled, whose id it has")
	back(other, first)
	require.Equal(t, []string{"-a"}, other.after(0), "RabbitMQ has not heard that it was acknowledged")
}

// TestCancelIsConfirmed: nobody is told that a message that is put aside is cancelled or replaced before RabbitMQ has the tombstone, even if the connection
// is lost in between.
func TestCancelIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, cluster.CancelAny)
		s.c.putsAside, s.c.complete, s.c.self = true, true, "curfew"
		k := &Keeper{core: s.c, wake: make(chan struct{}, 1), o: Options{ClockOffset: noOffset, Options: keeper.Options{Now: func() deadline.Instant { return s.now }}}}
		for _, id := range []string{"a", "b", "c", "d"} {
			s.deliver(published(id, amqp091.Table{"x-delay": int64(3_600_000)}))
		}
		outcomes := make(chan Outcome, 2)
		cancel := func(id string) { outcomes <- k.Cancel(id) }
		go cancel("a")
		go cancel("a")
		synctest.Wait()
		s.deliver(published("b2", amqp091.Table{"x-replace": "b", "x-delay": int64(1000)}))
		s.c.lose(nil)
		s.c.begin(s.now, 0)
		synctest.Wait()
		require.Empty(t, outcomes)
		require.NotContains(t, s.after(0), "b2=replaced")
		s.c.tombstones[tombstoneKey{"a", s.c.self}].confirm()
		s.c.tombstones[tombstoneKey{"b", s.c.self}].confirm()
		require.Equal(t, Cancelled, <-outcomes)
		require.Equal(t, Cancelled, <-outcomes)
		require.Equal(t, []string{"b2=replaced"}, s.after(0))
		began := time.Now()
		go cancel("c")
		require.Equal(t, Unconfirmed, <-outcomes, "in the end")
		require.Equal(t, confirmTimeout, time.Since(began))
		began = time.Now()
		go cancel("c")
		synctest.Wait()
		require.NotEmpty(t, s.c.out, "it is published again")
		s.deliver(published("d2", amqp091.Table{"x-replace": "d", "x-delay": int64(1000)}))
		s.c.tombstones[tombstoneKey{"c", s.c.self}].tell(false)
		s.c.tombstones[tombstoneKey{"d", s.c.self}].tell(false)
		require.Equal(t, Unconfirmed, <-outcomes, "RabbitMQ has refused it")
		require.Contains(t, s.after(0), "d2=unconfirmed")
		require.Zero(t, time.Since(began))
		require.Equal(t, NotFound, k.Cancel("other"))
	})
}

// TestTombstonesOfSeveral: each user's command to cancel what is put aside has its own tombstone. So what an operator cancels is cancelled although another
// user, who may not, named it before or after; and a command that RabbitMQ has stays there if the one before it is for older messages only.
func TestTombstonesOfSeveral(t *testing.T) {
	begin := func() *story {
		s := newStory(t, cluster.CancelSameUser)
		s.c.putsAside, s.c.self = true, "curfew"
		return s
	}
	from := func(s *story, user, name string, until deadline.Instant) {
		d := published(name, cancel("a"))
		if d.UserId = user; user == "curfew" {
			d.Headers[beforeHeader] = int64(until)
		}
		s.deliver(d)
	}
	back := func(s *story, stamped deadline.Instant) {
		again := published("a", amqp091.Table{"x-delay": int64(3_600_000), stampHeader: stampOf(s.now.Add(30*time.Second), 0, stamped)})
		again.Redelivered = true
		s.deliver(again)
	}

	s := begin()
	s.deliver(published("a", amqp091.Table{"x-delay": int64(3_600_000)}))
	stamped := s.c.out[0].channel.since
	s.c.out = nil
	require.Equal(t, Cancelled, s.c.cancelHere(s.now, "a"))
	own := s.c.tombstones[tombstoneKey{"a", s.c.self}]
	from(s, "v", "after", 0)
	require.True(t, own.unconfirmed, "the other's command does not confirm it")
	from(s, "curfew", "own", own.since)
	s.c.out = nil
	back(s, stamped)
	require.Equal(t, []string{"-a", "-own"}, s.after(0))

	s = begin()
	stamped = s.now
	from(s, "v", "before", 0)
	require.Equal(t, []string{"before=unknown"}, s.after(patience+time.Millisecond))
	require.Equal(t, Unclear, s.c.cancelHere(s.now, "a"))
	require.Len(t, s.c.out, 1, "a tombstone of our own is published")
	from(s, "u", "its sender", 0)
	require.Equal(t, []string{"its sender=unknown"}, s.after(patience + time.Millisecond)[1:])
	back(s, stamped)
	require.ElementsMatch(t, []string{"-a", "-its sender"}, s.after(0))

	for _, one := range []struct {
		who  cluster.Cancel
		done []string
	}{
		{cluster.CancelSameUser, []string{"later=cancelled"}},
		{cluster.CancelAny, []string{"-own", "later=cancelled"}},
	} {
		s = newStory(t, one.who)
		s.c.putsAside, s.c.self = true, "curfew"
		first := s.now
		from(s, "curfew", "own", first)
		s.now = s.now.Add(time.Minute)
		s.deliver(published("a", amqp091.Table{"x-delay": int64(3_600_000)})) // the id is used again
		s.c.out = nil
		from(s, "u", "later", 0)
		require.Equal(t, one.done, s.after(0), "it stays with RabbitMQ, whose other one is for what is older")
		from(s, "curfew", "own again", first)
		if one.who == cluster.CancelAny {
			require.Equal(t, []string{"-own again"}, s.after(0), "it ends less")
		}
	}
}

// TestReplacesOnlyItsOwn: what a user replaces is their own, though another user's message with the same id is put aside, too, and Curfew publishes the
// tombstone. The Curfew that reads it knows whose it is.
func TestReplacesOnlyItsOwn(t *testing.T) {
	hour := func(user, id string, more amqp091.Table) *amqp091.Delivery {
		d := published(id, amqp091.Table{"x-delay": int64(3_600_000)})
		maps.Copy(d.Headers, more)
		d.UserId = user
		return d
	}
	back := func(s *story, user string, stamped deadline.Instant) {
		again := hour(user, "a", amqp091.Table{stampHeader: stampOf(s.now.Add(30*time.Second), 0, stamped)})
		again.Redelivered = true
		s.deliver(again)
	}
	s := newStory(t, cluster.CancelSameUser)
	s.c.putsAside, s.c.self = true, "curfew"
	victims := s.now // u's message was put aside before this Curfew began
	s.now = s.now.Add(time.Second)
	s.deliver(hour("v", "a", nil))
	s.deliver(hour("v", "b", amqp091.Table{"x-replace": "a"}))
	tombstone := s.c.tombstones[tombstoneKey{"a", "v"}]
	require.True(t, tombstone.unconfirmed)
	read := func(s *story) {
		d := published("tombstone", amqp091.Table{"x-cancel": "a", beforeHeader: int64(tombstone.since), userHeader: "v"})
		d.UserId = "curfew"
		s.deliver(d)
	}
	other := newStory(t, cluster.CancelSameUser)
	other.c.putsAside, other.c.self, other.now = true, "curfew", s.now
	read(s)
	read(other)
	require.False(t, tombstone.unconfirmed)
	for _, s := range []*story{s, other} {
		s.c.out = nil
		back(s, "u", victims)
		require.Empty(t, s.after(0), "it waits")
		back(s, "v", tombstone.since-1)
		require.Equal(t, []string{"-a", "-tombstone"}, s.after(0))
		require.Contains(t, s.after(31*time.Second), "+a")
	}

	third := newStory(t, cluster.CancelSameUser)
	third.c.putsAside, third.c.self, third.now = true, "curfew", s.now
	third.deliver(hour("u", "a", nil))
	tombstone = &held{since: third.c.last}
	read(third)
	require.Contains(t, third.c.byID, "a", "what is known to be aside is another user's")
}
