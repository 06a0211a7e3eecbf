package deadletters_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

func TestQueues(t *testing.T) {
	d := newDesk(t)
	d.declare("beside", amqp.Table{"x-dead-letter-queue": true})
	require.NoError(t, d.vh.Exchanges.Declare("dlx", broker.ExchangeDeclare{Kind: "topic", Durable: true}))
	d.declare("a", amqp.Table{"x-dead-letter-exchange": "dlx"})
	d.declare("a.dead", nil)
	require.NoError(t, d.vh.Bind(nil, broker.Binding{Source: "dlx", Destination: "a.dead", RoutingKey: "a.#"}))
	d.declare("b", amqp.Table{"x-dead-letter-exchange": "amq.fanout", "x-dead-letter-routing-key": "any"})
	d.declare("b.dead", nil)
	require.NoError(t, d.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: "dlx", ToExchange: true}))
	require.NoError(t, d.vh.Bind(nil, broker.Binding{Source: "dlx", Destination: "b.dead", RoutingKey: "#"}))
	d.declare("c", amqp.Table{"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "a.c"})
	d.declare("lost", amqp.Table{"x-dead-letter-exchange": "nothing"})
	d.publish("", "lost", "m", amqp.Properties{})
	lost, err := d.vh.Queues.Get("lost")
	require.NoError(t, err)
	d.expire(lost)
	d.dead(2)
	d.declare("for.letters", amqp.Table{"x-curfew-purpose": "dead-letters"}) // nothing leads there yet
	assert.Equal(t, []deadletters.Queue{
		{VHost: "/", Queue: "dlq", Ready: 2, Bytes: 2, From: []string{"q"}},
		{VHost: "/", Queue: policy.UndeliverableQueue, Ready: 1, Bytes: 1, From: []string{}, Parked: true},
		{VHost: "/", Queue: "a.dead", From: []string{"a", "c"}},
		{VHost: "/", Queue: "b.dead", From: []string{"a", "b", "c"}},
		{VHost: "/", Queue: "beside/$deadletterqueue", From: []string{"beside"}},
		{VHost: "/", Queue: "for.letters", From: []string{}},
	}, deadletters.Queues(d.vh, nil))

	parked, err := d.vh.Queues.Get(policy.UndeliverableQueue)
	require.NoError(t, err)
	sources := func() []deadletters.Source {
		list, newest := deadletters.Sources(d.vh, parked)
		assert.WithinDuration(t, d.b.Now().Time(), newest, time.Minute)
		return list
	}
	assert.Equal(t, []deadletters.Source{{Queue: "lost", Exchange: "nothing", Missing: true}}, sources())
	require.NoError(t, d.vh.Exchanges.Declare("nothing", broker.ExchangeDeclare{Kind: "fanout", Durable: true}))
	assert.Equal(t, []deadletters.Source{{Queue: "lost", Exchange: "nothing"}}, sources())
}

// TestQueuesUsesNone: the list of all queues counts as use of none of them, for x-auto-delete-on-idle.
func TestQueuesUsesNone(t *testing.T) {
	d := newDesk(t)
	d.publish("", "q", "m", amqp.Properties{})
	used := d.q.Messages.Idle.LastUse(d.b.Now())
	for d.b.Now() == used {
		runtime.Gosched()
	}
	deadletters.Queues(d.vh, nil)
	assert.Equal(t, used, d.q.Messages.Idle.LastUse(d.b.Now()))
}

// TestQueuesAmongManyBindings: what others have bound to other exchanges costs the list nothing.
func TestQueuesAmongManyBindings(t *testing.T) {
	d := newDesk(t)
	for i := range 20 {
		x := fmt.Sprint("dlx", i)
		require.NoError(t, d.vh.Exchanges.Declare(x, broker.ExchangeDeclare{Kind: "fanout"}))
		d.declare(fmt.Sprint("from", i), amqp.Table{"x-dead-letter-exchange": x})
		require.NoError(t, d.vh.Bind(nil, broker.Binding{Source: x, Destination: "dlq"}))
	}
	few := testing.AllocsPerRun(3, func() { deadletters.Queues(d.vh, nil) })
	for i := range 2000 {
		require.NoError(t, d.vh.Bind(nil, broker.Binding{Source: "amq.topic", Destination: "q", RoutingKey: fmt.Sprint(i)}))
	}
	assert.Less(t, testing.AllocsPerRun(3, func() { deadletters.Queues(d.vh, nil) }), 2*few)
}

func TestGroupsAndSearch(t *testing.T) {
	d := newDesk(t)
	d.publish("", "q", `{"order": 1}`, amqp.Properties{MessageID: "one", Headers: amqp.Table{"n": int32(1)}})
	d.publish("", "q", `{"order": 2}`, amqp.Properties{Type: "paid"})
	d.expire(d.q)
	d.publish("", "q", `{"order": 3}`, amqp.Properties{})
	d.reject(d.q)
	groups, _, err := deadletters.Groups(t.Context(), d.dlq, "", false, time.Now().Add(2*time.Hour))
	require.NoError(t, err)
	require.Len(t, groups, 2)
	assert.Equal(t, "expired 2 rejected 1", fmt.Sprint(groups[0].Reason, " ", groups[0].Messages, " ", groups[1].Reason, " ", groups[1].Messages))
	assert.Equal(t, [4]int{0, 0, 2, 0}, groups[0].Ages)
	groups, _, err = deadletters.Groups(t.Context(), d.dlq, `reason == "expired"`, true, time.Now())
	require.NoError(t, err)
	require.Len(t, groups, 2)
	assert.ElementsMatch(t, []string{"", "paid"}, []string{*groups[0].Type, *groups[1].Type})
	for i := range groups {
		found, _, err := deadletters.Search(t.Context(), d.dlq, groups[i].Filter(), deadletters.Look{Count: 9})
		require.NoError(t, err)
		assert.Len(t, found, 1, groups[i].Filter())
	}

	found, next, err := deadletters.Search(t.Context(), d.dlq, "", deadletters.Look{Count: 2, BodyBytes: 3})
	require.NoError(t, err)
	assert.Equal(t, `{"o`, string(found[0].Message.Body))
	assert.Equal(t, 12, found[0].BodyBytes)
	found, next, err = deadletters.Search(t.Context(), d.dlq, "", deadletters.Look{After: next, Count: 2})
	require.NoError(t, err)
	assert.Len(t, found, 1)
	assert.Zero(t, next)
}

func TestPurgeNeedsTheCount(t *testing.T) {
	d := newDesk(t)
	d.dead(5)
	f := deadletters.Filter(`body matches "[123]"`)
	_, err := deadletters.Purge(t.Context(), d.b, d.dlq, f, deadletters.Confirmation{Messages: 5}, func(int) {})
	var unconfirmed *deadletters.Unconfirmed
	require.ErrorAs(t, err, &unconfirmed)
	assert.Equal(t, 3, unconfirmed.Matched)
	assert.Len(t, d.bodies(d.dlq), 5)
	n, err := deadletters.Purge(t.Context(), d.b, d.dlq, f, deadletters.Confirmation{Messages: 3}, func(int) {})
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	assert.Equal(t, []string{"0", "4"}, d.bodies(d.dlq))
}

// TestPurgeOfAGrowingQueue: what was counted is deleted, however much arrives until it is confirmed.
func TestPurgeOfAGrowingQueue(t *testing.T) {
	d := newDesk(t)
	d.dead(5)
	f := deadletters.Filter("died < ago('-1h')")
	purge := func(c deadletters.Confirmation) (int, deadletters.Unconfirmed) {
		n, err := deadletters.Purge(t.Context(), d.b, d.dlq, f, c, func(int) {})
		var unconfirmed *deadletters.Unconfirmed
		if !errors.As(err, &unconfirmed) {
			require.NoError(t, err)
			return n, deadletters.Unconfirmed{}
		}
		return n, *unconfirmed
	}
	_, asks := purge(deadletters.Confirmation{Messages: -1})
	require.Equal(t, 5, asks.Matched)
	d.dead(3)
	_, grown := purge(deadletters.Confirmation{Messages: 5})
	assert.Equal(t, 8, grown.Matched, "the number alone is of all that are there")
	_, wrong := purge(deadletters.Confirmation{Messages: 4, Position: asks.Position})
	assert.Equal(t, 5, wrong.Matched)
	n, _ := purge(deadletters.Confirmation{Messages: 5, Position: asks.Position})
	assert.Equal(t, 5, n)
	assert.Len(t, d.bodies(d.dlq), 3)
	n, _ = purge(deadletters.Confirmation{Messages: 8, Position: grown.Position})
	assert.Equal(t, 3, n, "five of the eight have left meanwhile")
	d.dead(2)
	elsewhere := grown.Position
	elsewhere.QueueID++
	_, err := deadletters.Purge(t.Context(), d.b, d.dlq, f, deadletters.Confirmation{Messages: 2, Position: elsewhere}, func(int) {})
	require.ErrorIs(t, err, deadletters.ErrRedeclared, "those of another incarnation were never seen")
	_, asks = purge(deadletters.Confirmation{Messages: -1})
	assert.Len(t, d.bodies(d.dlq), 2)
	n, _ = purge(deadletters.Confirmation{Messages: 2, Position: asks.Position})
	assert.Equal(t, 2, n)
}

// whenAsked is a context that calls do whenever it is asked whether it has ended.
type whenAsked struct {
	context.Context
	do func()
}

func (c whenAsked) Err() error {
	c.do()
	return nil
}

// TestPurgeWhileTheQueueGrows: what arrives while messages are counted is neither in the number nor in the position, so the first confirmation is
// right.
func TestPurgeWhileTheQueueGrows(t *testing.T) {
	d := newDesk(t)
	d.dead(5)
	arrived := 0
	growing := whenAsked{t.Context(), func() { d.dead(1); arrived++ }}
	_, err := deadletters.Purge(growing, d.b, d.dlq, "", deadletters.Confirmation{Messages: -1}, func(int) {})
	var shown *deadletters.Unconfirmed
	require.ErrorAs(t, err, &shown)
	require.Equal(t, 5, shown.Matched)
	require.Positive(t, arrived)
	n, err := deadletters.Purge(growing, d.b, d.dlq, "", deadletters.Confirmation{Messages: shown.Matched, Position: shown.Position}, func(int) {})
	require.NoError(t, err)
	assert.Equal(t, 5, n)
	assert.Len(t, d.bodies(d.dlq), arrived, "what arrived later stays")
}

// asked is a context that ends once somebody has asked so often whether it has.
type asked struct {
	context.Context
	left int
}

func (c *asked) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestSearchEndsBetweenBodies: one that reads bodies ends between two of them, and goes on from there.
func TestSearchEndsBetweenBodies(t *testing.T) {
	d := newDesk(t)
	d.dead(50)
	f, look := deadletters.Filter(`body matches "[05]$"`), deadletters.Look{Count: 100}
	var ids []string
	searches := 0
	for more := true; more; searches++ {
		var found []deadletters.Letter
		var err error
		last := look.After
		found, look.After, err = deadletters.Search(&asked{t.Context(), 10}, d.dlq, f, look)
		for _, l := range found {
			ids = append(ids, l.Properties.MessageID)
		}
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			require.Greater(t, look.After, last)
		}
		more = err != nil
	}
	require.Equal(t, []string{"id-0", "id-5", "id-10", "id-15", "id-20", "id-25", "id-30", "id-35", "id-40", "id-45"}, ids)
	require.Greater(t, searches, 4)
}

func TestPositionAsText(t *testing.T) {
	for _, p := range []deadletters.Position{{}, {QueueID: 1, Last: []queue.Seq{0}, Millis: 1}, {QueueID: math.MaxUint64, Last: []queue.Seq{1, 0, math.MaxUint64}, Millis: math.MaxInt64}} {
		text, err := p.MarshalText()
		require.NoError(t, err)
		back := deadletters.Position{QueueID: 9}
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, p, back, "%s", text)
	}
	for _, text := range []string{"x", "1", "1-1", "0-1-1", "-1-1", "1--1", "1-1-", "1-1.-1", "1-!-1", "1-1 -1", "1-" + strings.Repeat("1.", 256) + "1-1", "1-1-1-1"} {
		var p deadletters.Position
		assert.Error(t, p.UnmarshalText([]byte(text)), text)
	}
}

func TestExportLosesNothing(t *testing.T) {
	d := newDesk(t)
	headers := amqp.Table{
		"bool": true, "byte": int8(-1), "ubyte": uint8(200), "short": int16(-2), "ushort": uint16(3), "int": int32(-4), "uint": uint32(5),
		"long": int64(math.MaxInt64), "float": float32(1.5), "double": math.Inf(1), "decimal": amqp.Decimal{Scale: 2, Value: -314}, "text": "é", "bytes": "\xff",
		"binary": []byte{0, 255}, "time": amqp.Timestamp(1_700_000_000), "void": nil, "table": amqp.Table{"a": []any{int8(1), "x"}},
	}
	p := amqp.Properties{
		Headers: headers, ContentType: "text/plain", DeliveryMode: 2, Priority: 0, Has: amqp.HasPriority | amqp.HasReplyTo, CorrelationID: "c\xff",
		MessageID: "m", Timestamp: 5, Type: "t", AppID: "a",
	}
	d.publish("", "dlq", "\x00\xff body", p)
	d.publish("", "dlq", "", amqp.Properties{Headers: amqp.Table{"\xff": int32(1)}})
	var file bytes.Buffer
	require.NoError(t, deadletters.Export(t.Context(), d.dlq, "", deadletters.Position{}, func() io.Writer { return &file }))
	assert.Equal(t, 2, strings.Count(file.String(), "\n"))
	d.declare("other", nil)
	n, err := deadletters.Import(t.Context(), d.b, d.p, "other", bytes.NewReader(file.Bytes()), func(int) {})
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	other, err := d.vh.Queues.Get("other")
	require.NoError(t, err)
	for i, got := range d.queued(other) {
		want := d.queued(d.dlq)[i]
		assert.Equal(t, want.Message.Properties, got.Message.Properties)
		assert.Equal(t, want.Message.Body, got.Message.Body)
	}
	for _, bad := range []string{"{}\nnot json", `{"properties":{"headers":{"a":{"long":"x"}}}}`, `{"properties":{"headers":{"a":{"odd":1}}}}`} {
		_, err = deadletters.Import(t.Context(), d.b, d.p, "other", strings.NewReader(bad), func(int) {})
		var at *deadletters.ImportError
		assert.ErrorAs(t, err, &at, bad)
	}
	_, err = deadletters.Import(t.Context(), d.b, d.p, "nobody", strings.NewReader("{}"), func(int) {})
	assert.ErrorContains(t, err, `queue "nobody" does not exist`)
}

// TestImportEndsWherePublishersWait: a large file does not take what publishers may not, nor go on once its sender has given up.
func TestImportEndsWherePublishersWait(t *testing.T) {
	d := newDesk(t)
	d.memory.Store(memoryLimit + 1)
	require.Eventually(t, func() bool { reason, _ := d.b.Alarm.Reason(); return reason != "" }, time.Minute, time.Millisecond)
	n, err := deadletters.Import(t.Context(), d.b, d.p, "dlq", strings.NewReader("{}\n{}"), func(int) {})
	require.ErrorIs(t, err, deadletters.ErrBlocked)
	require.EqualError(t, err, "line 1: publishers are blocked: low on memory")
	require.Zero(t, n)
	d.memory.Store(0)
	require.Eventually(t, func() bool { reason, _ := d.b.Alarm.Reason(); return reason == "" }, time.Minute, time.Millisecond)
	n, err = deadletters.Import(t.Context(), d.b, d.p, "dlq", strings.NewReader("{}\n{}"), func(int) {})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Len(t, d.bodies(d.dlq), 2)
}

// TestManyLetters reads a queue of hundreds of thousands in bounded memory.
func TestManyLetters(t *testing.T) {
	d := newDesk(t)
	p := amqp.Properties{Headers: amqp.Table{"x-death": []any{amqp.Table{"queue": "q", "reason": "expired"}}}}
	m := broker.Publication{RoutingKey: []byte("dlq"), Properties: p.Append(nil), Body: []byte("0123456789")}
	const n = 300_000
	for i := range n {
		_, err := d.p.Add(&m)
		require.NoError(t, err)
		if i%1000 == 999 {
			d.p.Flush(nil)
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	groups, _, err := deadletters.Groups(t.Context(), d.dlq, "", false, time.Now())
	require.NoError(t, err)
	assert.Equal(t, n, groups[0].Messages)
	matched, err := count(t.Context(), d.dlq, `body matches "^9"`)
	require.NoError(t, err)
	assert.Zero(t, matched)
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapInuse)-int64(before.HeapInuse), int64(16<<20), "nothing of what was read is kept")
	assert.Less(t, int64(after.HeapSys)-int64(before.HeapSys), int64(128<<20), "nor was it held at a time")
}

// TestCommandsAreQuoted: what a shell is to run has names that strangers chose.
func TestCommandsAreQuoted(t *testing.T) {
	q := deadletters.Queue{VHost: "it's", Queue: "x; rm -rf ~", Parked: true}
	text, _ := q.Cell("from")
	require.Equal(t, `(parked; curfew dlq groups 'x; rm -rf ~' --vhost 'it'\''s' says why)`, text)
}
