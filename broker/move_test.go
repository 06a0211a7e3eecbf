package broker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// queued are the messages of a queue as a browse shows them.
func queued(t testing.TB, q *broker.Queue) []broker.Browsed {
	t.Helper()
	found, err := q.Messages.Browse(broker.Browse{Count: 1 << 20, BodyBytes: -1})
	require.NoError(t, err)
	return found
}

// moving is a message that goes to another queue as it is.
func moving(x *broker.Browsed, key string) *broker.Publication {
	return &broker.Publication{RoutingKey: []byte(key), Properties: x.Message.Properties, Body: x.Message.Body}
}

func TestMoveTakesFromTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		from, to := x.queue("from", nil), x.queue("to", amqp.Table{"x-message-ttl": int32(500)})
		for _, body := range []string{"a", "b", "c"} {
			x.publish("", "from", body, "1000", nil)
		}
		tracked := x.deadlines()
		found := queued(t, from)
		outcome, _, err := x.p.CanMove(from.Messages.Ref(&found[1]), moving(&found[1], "to"), nil)
		require.NoError(t, err)
		assert.Equal(t, broker.Moved, outcome)
		assert.Len(t, queued(t, from), 3)

		outcome, err = x.p.Move(from.Messages.Ref(&found[1]), moving(&found[1], "to"), false)
		require.NoError(t, err)
		assert.Equal(t, broker.Moved, outcome)
		assert.Equal(t, []string{"a", "c"}, bodiesOf(queued(t, from)))
		arrived := queued(t, to)
		assert.Equal(t, []string{"b"}, bodiesOf(arrived))
		assert.Equal(t, x.b.Now()+500_000, arrived[0].Deadline, "its new queue's time to live counts")
		assert.Equal(t, []deadline.Event{
			{Kind: deadline.Enqueued, Ref: to.Messages.Ref(&arrived[0])}, {Kind: deadline.Left, Ref: tracked[1]},
		}, x.events())

		outcome, err = x.p.Move(from.Messages.Ref(&found[1]), moving(&found[1], "to"), false)
		require.NoError(t, err)
		assert.Equal(t, broker.MoveGone, outcome, "once")
		assert.Len(t, queued(t, to), 1)
	})
}

// TestWhatIsMovedIsNoCommand: an older Curfew queued a message with x-replace like any other. Moved now, it replaces nothing, and there is one of it.
func TestWhatIsMovedIsNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		from, to := x.queue("from", nil), x.queue("to", nil)
		scheduled := amqp.Properties{MessageID: "id", Headers: amqp.Table{"x-delay": int32(60_000)}}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("to"), Properties: scheduled.Append(nil)})
		require.NoError(t, err)
		x.p.Flush(nil)
		x.publish("", "from", "m", "", nil)
		m := queued(t, from)[0]
		old := moving(&m, "to")
		p := amqp.Properties{UserID: "guest", Headers: amqp.Table{"x-replace": "id"}}
		old.Properties = p.Append(nil)
		outcome, err := x.p.Move(from.Messages.Ref(&m), old, false)
		require.NoError(t, err)
		assert.Equal(t, broker.Moved, outcome)
		after(time.Millisecond)
		assert.Empty(t, queued(t, from))
		assert.Equal(t, []string{"m"}, bodiesOf(queued(t, to)))
		list, _ := x.vh.Delayed(0, 9)
		assert.Len(t, list, 1, "what waits is still there")
	})
}

func TestMoveLeavesWhatCannotGo(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	from := x.queue("from", nil)
	full, drops := x.queue("full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"}), x.queue("drops", amqp.Table{"x-max-length-bytes": int32(5)})
	x.publish("", "full", "first", "", nil)
	x.publish("", "drops", "first", "", nil)
	x.publish("", "from", "m", "", nil)
	m := queued(t, from)[0]
	for _, c := range []struct {
		exchange, key string
		want          broker.MoveOutcome
	}{
		{"", "nobody", broker.MoveUnroutable}, {"nothing", "", broker.MoveUnroutable},
		{"", "full", broker.MoveFull}, {"", "drops", broker.MoveFull}, {"", "from", broker.MoveBack},
	} {
		to := moving(&m, c.key)
		to.Exchange = []byte(c.exchange)
		outcome, err := x.p.Move(from.Messages.Ref(&m), to, false)
		require.NoError(t, err)
		assert.Equal(t, c.want, outcome, "%+v", c)
		outcome, _, err = x.p.CanMove(from.Messages.Ref(&m), to, nil)
		require.NoError(t, err)
		assert.Equal(t, c.want, outcome, "%+v", c)
	}
	bad := moving(&m, "full")
	p := amqp.Properties{Expiration: "soon"}
	bad.Properties = p.Append(nil)
	_, err := x.p.Move(from.Messages.Ref(&m), bad, false)
	assert.EqualValues(t, amqp.PreconditionFailed, code(err))
	for _, q := range []*broker.Queue{from, full, drops} {
		found := queued(t, q)
		assert.Len(t, found, 1)
		assert.Equal(t, queue.Ready, found[0].State)
	}
	held, _ := x.get(from, false)
	outcome, err := x.p.Move(from.Messages.Ref(&m), moving(&m, "drops"), false)
	require.NoError(t, err)
	assert.NotEqual(t, broker.Moved, outcome)
	x.drain(drops)
	outcome, err = x.p.Move(from.Messages.Ref(&m), moving(&m, "drops"), false)
	require.NoError(t, err)
	assert.Equal(t, broker.MoveGone, outcome, "a consumer has it")
	from.Messages.Settle(broker.Ack, []queue.Seq{held.seq}, nil)
}

func TestMoveAsksForRights(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	from := x.queue("from", nil)
	x.queue("to", nil)
	x.publish("", "from", "m", "", nil)
	m := queued(t, from)[0]
	_, err := x.vh.NewPublisher("nobody").Move(from.Messages.Ref(&m), moving(&m, "to"), false)
	assert.EqualValues(t, amqp.AccessRefused, code(err))
	assert.Len(t, queued(t, from), 1)
}

func TestMovedOutlivesARestartOnce(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	from := x.durable("from", nil)
	x.durable("to", nil)
	for i := range 10 {
		x.publishPersistent("", "from", fmt.Sprint(i), "")
	}
	for i, m := range queued(t, from) {
		if i%2 == 1 {
			outcome, err := x.p.Move(from.Messages.Ref(&m), moving(&m, "to"), false)
			require.NoError(t, err)
			require.Equal(t, broker.Moved, outcome)
		}
	}
	x = restarted(t, o, x.b)
	defer x.b.Close()
	from, err := x.vh.Queues.Get("from")
	require.NoError(t, err)
	to, err := x.vh.Queues.Get("to")
	require.NoError(t, err)
	assert.Equal(t, []string{"0", "2", "4", "6", "8"}, x.drain(from))
	assert.Equal(t, []string{"1", "3", "5", "7", "9"}, x.drain(to))
}

// TestMoveAmongOthers has movers, consumers and deleters at work: each message ends in
// one place.
func TestMoveAmongOthers(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	from, to := x.queue("from", nil), x.queue("to", nil)
	const n = 2000
	for i := range n {
		x.publish("", "from", fmt.Sprint(i), "", nil)
	}
	found := queued(t, from)
	var moved [2]int
	done := make(chan struct{})
	for w := range moved {
		go func() {
			defer func() { done <- struct{}{} }()
			p := x.vh.OwnPublisher()
			for i := range found {
				if outcome, err := p.Move(from.Messages.Ref(&found[i]), moving(&found[i], "to"), false); err == nil && outcome == broker.Moved {
					moved[w]++
				}
			}
		}()
	}
	taken := map[string]int{}
	for range n / 4 {
		if m, ok := x.get(from, true); ok {
			taken[m.body]++
		}
	}
	<-done
	<-done
	arrived := x.drain(to)
	assert.Equal(t, moved[0]+moved[1], len(arrived))
	for _, body := range arrived {
		taken[body]++
	}
	assert.Empty(t, queued(t, from))
	assert.Len(t, taken, n)
	for body, times := range taken {
		assert.Equal(t, 1, times, body)
	}
}

func TestRemove(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q, dlq := x.queue("q", deadLettersToDLQ), x.queue("dlq", nil)
	for _, body := range []string{"a", "b", "c"} {
		x.publish("", "q", body, "", nil)
	}
	found := queued(t, q)
	refs := []deadline.Ref{q.Messages.Ref(&found[1]), q.Messages.Ref(&found[2]), q.Messages.Ref(&found[1]), {Queue: 4711, Seq: 1}}
	assert.Equal(t, 2, x.b.Remove(refs))
	assert.Equal(t, []string{"a"}, x.drain(q))
	assert.Empty(t, x.drain(dlq), "a purge dead-letters nothing")
	assert.Equal(t, []queue.Seq{found[2].Seq}, q.Messages.Tails(), "also of those that are gone")
}

func TestBrowseStopsAtBytes(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", nil)
	for range 10 {
		x.publish("", "q", "0123456789", "", nil)
	}
	var last queue.Seq
	var pages []int
	for {
		found, err := q.Messages.Browse(broker.Browse{After: last, Count: 10, BodyBytes: -1, Bytes: 40})
		require.NoError(t, err)
		if len(found) == 0 {
			break
		}
		pages, last = append(pages, len(found)), found[len(found)-1].Seq
	}
	assert.NotContains(t, pages, 10)
	total := 0
	for _, n := range pages {
		total += n
	}
	assert.Equal(t, 10, total)
}
