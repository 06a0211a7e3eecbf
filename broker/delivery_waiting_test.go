package broker_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// back takes the message at the head and gives it back.
func (x *testBroker) back(q *broker.Queue, how broker.Settlement) (m message) {
	x.t.Helper()
	m, ok := x.get(q, false)
	require.True(x.t, ok)
	q.Messages.Settle(how, []queue.Seq{m.seq}, nil)
	return m
}

// exactly checks that nothing is ready until d has passed, and one message then.
func (x *testBroker) exactly(q *broker.Queue, d time.Duration) {
	x.t.Helper()
	after(d - time.Millisecond)
	ready, _, _ := q.Messages.Counts()
	require.Zero(x.t, ready, "1 ms before %v", d)
	after(time.Millisecond)
	ready, _, _ = q.Messages.Counts()
	require.Equal(x.t, 1, ready, "after %v", d)
}

// TestRetryBackoff: a message that was given back waits for each step of the list, exactly, and is parked after the last one.
func TestRetryBackoff(t *testing.T) {
	for _, kind := range []string{"classic", "quorum"} {
		for how, name := range map[broker.Settlement]string{broker.Requeue: "failed", broker.Return: "given back"} {
			t.Run(kind+", "+name, func(t *testing.T) {
				inBubble(t, broker.Options{}, func(x *testBroker) {
					x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "1s, 5s,30s,2m", "retry-park": "{queue}.failed"})
					q := x.durable("q", amqp.Table{"x-queue-type": kind})
					failed := x.queue("q.failed", nil)
					x.publish("", "q", "m", "", nil)
					for i, wait := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute} {
						m := x.back(q, how)
						assert.Equal(t, i > 0, m.redelivery)
						if kind == "quorum" && i > 0 {
							assert.EqualValues(t, i, m.properties.Headers["x-delivery-count"])
						}
						s := q.Messages.State()
						assert.Equal(t, []int{0, 0, 1}, []int{s.Ready, s.Unacked, s.Waiting})
						assert.EqualValues(t, 1, s.WaitingBytes)
						x.exactly(q, wait)
					}
					x.back(q, how)
					m, ok := x.get(failed, true)
					require.True(t, ok, "parked")
					assert.Equal(t, "delivery_limit", m.properties.Headers["x-first-death-reason"])
					assert.Equal(t, "q", m.properties.Headers["x-first-death-queue"])
					assert.Zero(t, q.Messages.State().Waiting)
				})
			})
		}
	}
}

// TestRetryWithoutPark: the last step goes on, and the dead-letter exchange gets what comes back too often.
func TestRetryWithoutPark(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "1s,2s"})
		q := x.queue("q", amqp.Table{"x-max-delivery-count": int32(5), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		dlq := x.queue("dlq", nil)
		x.publish("", "q", "m", "", nil)
		for _, wait := range []time.Duration{1, 2, 2, 2} {
			x.back(q, broker.Requeue)
			x.exactly(q, wait*time.Second)
		}
		x.back(q, broker.Requeue)
		assert.Equal(t, []string{"m"}, x.drain(dlq))
	})
}

// TestNothingIsParkedWhereItIs: a policy that matches the queue for what has failed as well drops nothing there, nor among the parked messages.
func TestNothingIsParkedWhereItIs(t *testing.T) {
	for _, name := range []string{"failed", policy.UndeliverableQueue} {
		inBubble(t, broker.Options{}, func(x *testBroker) {
			x.set("retry", ".*", policy.Queues, policy.Definition{"retry-backoff": "1s", "retry-park": "failed"})
			if name == policy.UndeliverableQueue {
				x.set("retry", ".*", policy.Queues, policy.Definition{"retry-backoff": "1s", "retry-park": "{queue}.failed"})
			}
			q := x.durable(name, nil)
			x.publish("", name, "m", "", nil)
			for range 5 {
				x.back(q, broker.Requeue)
				x.exactly(q, time.Second)
			}
			assert.Equal(t, []string{"m"}, x.drain(q))
		})
	}
}

// TestQueuesThatParkIntoOneAnother: what fails in both is parked for undeliverable messages, and not dropped as a cycle of dead-lettering.
func TestQueuesThatParkIntoOneAnother(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.set("a", "^a$", policy.Queues, policy.Definition{"retry-backoff": "1s", "retry-park": "b"})
		x.set("b", "^b$", policy.Queues, policy.Definition{"retry-backoff": "1s", "retry-park": "a"})
		a, b := x.queue("a", nil), x.queue("b", nil)
		x.publish("", "a", "m", "", nil)
		for _, q := range []*broker.Queue{a, b} {
			x.back(q, broker.Requeue)
			after(time.Second)
			x.back(q, broker.Requeue)
			require.NoError(t, x.b.Forwarded(t.Context()))
		}
		assert.Empty(t, x.drain(a))
		assert.Empty(t, x.drain(b))
		assert.Equal(t, []string{"m"}, x.drain(x.called(policy.UndeliverableQueue)))
	})
}

// TestALookIsNoTry: however often somebody looks at a message, it has all its tries, and its waits begin with the first.
func TestALookIsNoTry(t *testing.T) {
	for _, kind := range []string{"classic", "quorum"} {
		inBubble(t, broker.Options{}, func(x *testBroker) {
			x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "1s,5s", "retry-park": "failed"})
			q, failed := x.durable("q", amqp.Table{"x-queue-type": kind}), x.queue("failed", nil)
			x.publish("", "q", "m", "", nil)
			for range 9 {
				x.back(q, broker.PutBack)
			}
			for _, wait := range []time.Duration{time.Second, 5 * time.Second} {
				x.back(q, broker.Return)
				x.exactly(q, wait)
				x.back(q, broker.PutBack)
			}
			x.back(q, broker.Return)
			assert.Equal(t, []string{"m"}, x.drain(failed))
		})
	}
}

// TestDelayedRetry: RabbitMQ 4.3's arguments and policy keys.
func TestDelayedRetry(t *testing.T) {
	args := func(kind string, min, max int64) amqp.Table {
		return amqp.Table{"x-delayed-retry-type": kind, "x-delayed-retry-min": min, "x-delayed-retry-max": max}
	}
	for _, c := range []struct {
		name   string
		args   amqp.Table
		policy policy.Definition
		how    broker.Settlement
		waits  []time.Duration // in ms
	}{
		{"all", args("all", 100, 250), nil, broker.Return, []time.Duration{100, 200, 250, 250}},
		{"all, failed", args("all", 100, 250), nil, broker.Requeue, []time.Duration{100, 200, 250}},
		{"failed", args("failed", 100, 250), nil, broker.Requeue, []time.Duration{100, 200}},
		{"failed, but given back", args("failed", 100, 250), nil, broker.Return, []time.Duration{0, 0}},
		{"returned", args("returned", 100, 250), nil, broker.Return, []time.Duration{100, 200}},
		{"returned, but failed", args("returned", 100, 250), nil, broker.Requeue, []time.Duration{0, 0}},
		{"disabled", args("disabled", 100, 250), nil, broker.Requeue, []time.Duration{0}},
		{"no type", amqp.Table{"x-delayed-retry-min": int64(100)}, nil, broker.Requeue, []time.Duration{0}},
		{"the maximum is the minimum", amqp.Table{"x-delayed-retry-type": "all", "x-delayed-retry-min": int64(100)}, nil, broker.Requeue, []time.Duration{100, 100}},
		{"policy", nil, policy.Definition{"delayed-retry-type": "all", "delayed-retry-min": int64(100), "delayed-retry-max": int64(150)}, broker.Return, []time.Duration{100, 150}},
		{"the argument counts", args("all", 100, 300), policy.Definition{"delayed-retry-type": "failed", "delayed-retry-min": int64(7)}, broker.Return, []time.Duration{100, 200}},
		{"only looked at", args("all", 100, 250), nil, broker.PutBack, []time.Duration{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, broker.Options{}, func(x *testBroker) {
				if c.policy != nil {
					x.set("retry", "^q$", policy.QuorumQueues, c.policy)
				}
				if c.args == nil {
					c.args = amqp.Table{}
				}
				q := x.quorum("q", c.args)
				x.publish("", "q", "m", "", nil)
				for _, wait := range c.waits {
					if x.back(q, c.how); wait > 0 {
						x.exactly(q, wait*time.Millisecond)
					}
				}
			})
		})
	}
}

func TestRetriesThatAreRefused(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for _, c := range []struct {
		kind, arg string
		value     any
		want      string
	}{
		{"classic", "x-delayed-retry-type", "all", "invalid arg 'x-delayed-retry-type' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{"quorum", "x-delayed-retry-type", "some", `invalid arg 'x-delayed-retry-type' for queue 'q' in vhost '/': "expected disabled, all, failed or returned, got 'some'"`},
		{"quorum", "x-delayed-retry-type", true, "invalid arg 'x-delayed-retry-type' for queue 'q' in vhost '/': {unacceptable_type,bool}"},
		{"quorum", "x-delayed-retry-min", int32(-1), "invalid arg 'x-delayed-retry-min' for queue 'q' in vhost '/': {value_negative,-1}"},
		{"quorum", "x-delayed-retry-max", "5s", `invalid arg 'x-delayed-retry-max' for queue 'q' in vhost '/': "expected integer, got longstr"`},
	} {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true, Args: amqp.Table{"x-queue-type": c.kind, c.arg: c.value}})
		assert.EqualValues(t, amqp.PreconditionFailed, code(err), "%s %v", c.arg, c.value)
		assert.Equal(t, "PRECONDITION_FAILED - "+c.want, text(err))
	}
	for key, problem := range map[string]string{
		"retry-backoff": ` is not a valid back-off: it is a list of 1 to 16 waits, such as 1s,5s,30s,2m`,
		"retry-jitter":  " is not a valid jitter: it is a percentage, 0 to 100",
		"retry-park":    " is not a valid name of a queue",
	} {
		for _, v := range []any{"", int64(-1), []any{"1s"}, "1s,soon", strings.Repeat("1s,", 16) + "1s", "0s", "90000h"} {
			if _, text := v.(string); text && v != "" && key == "retry-park" {
				continue
			}
			_, err := x.vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: ".", ApplyTo: policy.Queues, Definition: policy.Definition{key: v}})
			assert.ErrorContains(t, err, problem, "%s %v", key, v)
		}
	}
}

// TestWaitingKeepsItsPlace: others pass a message that waits, and it comes back in front of those behind it, to a consumer at once.
func TestWaitingKeepsItsPlace(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "1s,3s"})
		q := x.queue("q", nil)
		for _, body := range []string{"a", "b", "c", "d"} {
			x.publish("", "q", body, "", nil)
		}
		assert.Equal(t, "a", x.back(q, broker.Return).body)
		assert.Equal(t, "b", x.back(q, broker.Return).body)
		m, _ := x.get(q, true)
		assert.Equal(t, "c", m.body)
		after(time.Second)
		assert.Equal(t, []string{"a", "b", "d"}, x.drain(q))
		x.publish("", "q", "e", "", nil)
		x.back(q, broker.Requeue)
		k := &taker{prefetch: 5}
		k.c = broker.Consumer{Tag: "c", Sink: k}
		require.NoError(t, q.Messages.Consume(&k.c))
		k.c.Wake()
		after(time.Second - time.Millisecond)
		assert.Empty(t, k.bodies())
		after(time.Millisecond)
		assert.Equal(t, []string{"e"}, k.bodies())
	})
}

// TestWaitingExpires: a message that waits expires at its own deadline, and one whose deadline comes together with its return is not delivered.
func TestWaitingExpires(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "1s"})
		q := x.queue("q", deadLettersToDLQ)
		dlq := x.queue("dlq", nil)
		x.publish("", "q", "expires in the middle", "400", nil)
		x.publish("", "q", "expires when it is back", "1000", nil)
		x.back(q, broker.Return)
		x.back(q, broker.Return)
		refs := x.deadlines()
		require.Len(t, refs, 2)
		after(400*time.Millisecond - time.Microsecond)
		assert.Equal(t, deadline.NotDue, x.expire(refs[:1])[0].Outcome)
		after(time.Microsecond)
		assert.Equal(t, deadline.Expired, x.expire(refs[:1])[0].Outcome)
		assert.Equal(t, []string{"expires in the middle"}, x.drain(dlq))
		after(600 * time.Millisecond)
		assert.Empty(t, x.drain(q))
		require.NoError(t, x.b.Forwarded(t.Context()))
		assert.Equal(t, []string{"expires when it is back"}, x.drain(dlq))
		// The deadline comes first, then the delivery limit, then the wait.
		x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "1s", "retry-park": "parked"})
		x.queue("parked", nil)
		x.publish("", "q", "late", "2000", nil)
		x.back(q, broker.Return)
		after(time.Second)
		m, _ := x.get(q, false)
		after(time.Second)
		q.Messages.Settle(broker.Return, []queue.Seq{m.seq}, nil)
		require.NoError(t, x.b.Forwarded(t.Context()))
		m, ok := x.get(dlq, true)
		require.True(t, ok, "it has expired, and is not parked")
		assert.Equal(t, "expired", m.properties.Headers["x-first-death-reason"])
	})
}

func TestReturnNowAndCancel(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "1h"})
		q := x.queue("q", deadLettersToDLQ)
		dlq := x.queue("dlq", nil)
		for _, body := range []string{"now", "cancelled", "stays"} {
			x.publish("", "q", body, "", nil)
			x.back(q, broker.Return)
		}
		found, err := q.Messages.Browse(broker.Browse{Count: 9, State: queue.Waiting, BodyBytes: 9})
		require.NoError(t, err)
		require.Len(t, found, 3)
		assert.EqualValues(t, 1, found[0].Failed)
		assert.Equal(t, time.Now().Add(time.Hour).UnixMilli(), x.b.UnixMillis(found[0].WaitsUntil))
		assert.True(t, q.Messages.EndWait(q.Messages.Ref(&found[0]), false))
		assert.False(t, q.Messages.EndWait(q.Messages.Ref(&found[0]), false), "it is ready")
		assert.False(t, q.Messages.EndWait(q.Messages.Ref(&found[0]), true))
		assert.True(t, q.Messages.EndWait(q.Messages.Ref(&found[1]), true))
		assert.Equal(t, []string{"now"}, x.drain(q))
		assert.Equal(t, 1, q.Messages.State().Waiting)
		assert.Empty(t, x.drain(dlq))
		_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{IfEmpty: true})
		assert.ErrorContains(t, err, "not empty", "what waits would be lost")
		assert.Equal(t, 1, q.Messages.Purge())
		after(2 * time.Hour)
		assert.Empty(t, x.drain(q))
		_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{IfEmpty: true})
		assert.NoError(t, err)
	})
}

func TestJitterOnlyAdds(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "10s", "retry-jitter": int64(20)})
		q := x.queue("q", nil)
		for range 100 {
			x.publish("", "q", "m", "", nil)
			x.back(q, broker.Return)
		}
		found, err := q.Messages.Browse(broker.Browse{Count: 100, State: queue.Waiting})
		require.NoError(t, err)
		different := map[deadline.Instant]bool{}
		for _, m := range found {
			different[m.WaitsUntil] = true
			wait := time.Until(time.UnixMilli(x.b.UnixMillis(m.WaitsUntil)))
			assert.GreaterOrEqual(t, wait, 10*time.Second)
			assert.LessOrEqual(t, wait, 12*time.Second)
		}
		assert.Greater(t, len(different), 50)
	})
}

// TestWaitOutlivesACrash: a message that waits when the process dies comes back at the same instant in the next run, with its deadline and its tries.
func TestWaitOutlivesACrash(t *testing.T) {
	for name, crash := range map[string]func(t *testing.T, x *testBroker, dir string) string{
		"stopped": func(t *testing.T, x *testBroker, dir string) string {
			require.NoError(t, x.b.Close())
			return dir
		},
		"killed": func(t *testing.T, x *testBroker, dir string) string {
			at := t.TempDir()
			require.NoError(t, os.CopyFS(at, os.DirFS(dir)))
			require.NoError(t, os.RemoveAll(at+"/lock"))
			require.NoError(t, x.b.Close())
			return at
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				x := openTestBroker(t, broker.Options{Store: store.Options{Dir: dir}})
				x.set("retry", "^q$", policy.Queues, policy.Definition{"retry-backoff": "10s,20s", "retry-park": "parked"})
				q := x.durable("q", nil)
				x.durable("parked", nil)
				for i := range 3 {
					x.publishPersistent("", "q", fmt.Sprint(i), "60000")
				}
				x.back(q, broker.Return)
				after(2 * time.Second)
				x.back(q, broker.Requeue)
				x.commit()
				x = openTestBroker(t, broker.Options{Store: store.Options{Dir: crash(t, x, dir)}})
				defer func() { assert.NoError(t, x.b.Close()) }()
				q = x.called("q")
				assert.Equal(t, []string{"2"}, x.drain(q))
				assert.Equal(t, 2, q.Messages.State().Waiting)
				require.Len(t, x.deadlines(), 2)
				x.exactly(q, 8*time.Second)
				x.back(q, broker.Return)
				x.exactly(q, 2*time.Second)
				assert.Equal(t, []string{"1"}, x.drain(q))
				x.exactly(q, 18*time.Second)
				assert.Equal(t, "0", x.back(q, broker.Return).body)
				assert.Equal(t, []string{"0"}, x.drain(x.called("parked")), "the first try was not forgotten")
			})
		})
	}
}
