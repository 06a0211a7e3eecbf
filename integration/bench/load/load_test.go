package load

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server"
)

// serve runs a broker without a monitor in memory and returns its URL.
func serve(t *testing.T) string {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.New(server.Options{Broker: b}).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, b.Close())
	})
	return "amqp://guest:guest@" + l.Addr().String() + "/"
}

func TestThroughputCountsEveryMessage(t *testing.T) {
	const count = 5000
	for name, s := range map[string]Spec{
		"raw, one by one":     {Ack: "each", Prefetch: 100},
		"raw, multiple":       {Ack: "multiple", Prefetch: 1000, Backlog: 500},
		"raw, auto":           {Ack: "auto"},
		"large bodies":        {Ack: "each", Size: 200_000, Backlog: 50},
		"empty bodies":        {Ack: "auto", Size: 1},
		"confirms":            {Ack: "each", Window: 10, Persist: true},
		"four and four":       {Ack: "multiple", Producers: 4, Consumers: 4, Window: 100},
		"more queues":         {Ack: "each", Queues: 150, Consumers: 3, Prefetch: 10},
		"topic":               {Ack: "each", Exchange: "topic", Queues: 7},
		"direct":              {Ack: "each", Exchange: "direct", Queues: 7},
		"raw 1.0":             {Client: "raw10", Ack: "each", Prefetch: 100},
		"raw 1.0, confirms":   {Client: "raw10", Ack: "multiple", Prefetch: 50, Window: 10, Producers: 2, Consumers: 2, Persist: true},
		"raw 1.0, auto":       {Client: "raw10", Ack: "auto", Queues: 1, Producers: 2, Consumers: 3},
		"library":             {Client: "amqp091", Ack: "each", Prefetch: 100},
		"library, confirms":   {Client: "amqp091", Ack: "auto", Window: 10, Producers: 2},
		"library, multiple":   {Client: "amqp091", Ack: "multiple", Queues: 3, Prefetch: 50, Backlog: 1000},
		"seven producers":     {Ack: "each", Producers: 7},
		"at a rate of 20,000": {Ack: "auto", Rate: 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			s.URL, s.Count, s.Duration = serve(t), count, time.Minute
			s.Consumers, s.Producers = max(1, s.Consumers), max(1, s.Producers)
			if s.Size > 1000 {
				s.Count = 100
			}
			r, err := Throughput(t.Context(), s)
			require.NoError(t, err)
			require.EqualValues(t, s.Count, r.TotalPublished)
			require.EqualValues(t, s.Count, r.TotalConsumed)
			require.Zero(t, r.Nacked)
			require.Positive(t, r.Consumed)
			if s.Size >= stampSize {
				require.EqualValues(t, s.Count, r.Latency.Count)
			}
			if s.Window > 0 {
				require.EqualValues(t, s.Count, r.ConfirmLatency.Count)
			}
		})
	}
}

// A delivery counts once its body has begun: a run that ends at a count has the latency of the last message, too.
func TestDeliveryCountsWithItsBody(t *testing.T) {
	a := arrivals{onBody: func([]byte) {}}
	seen := func(b []byte) []any {
		used, err := a.walk(b)
		require.NoError(t, err)
		require.Len(t, b, used)
		return []any{a.deliveries, a.lastTag}
	}
	header := []byte{0, 0}
	body := amqp.AppendContent(nil, channel, header, make([]byte, 100), 64)
	empty := amqp.AppendContent(nil, channel, header, nil, 64)
	begun := len(empty) // a header alone
	require.Equal(t, []any{0, uint64(0)}, seen(amqp.AppendMethod(nil, channel, &amqp.BasicDeliver{ConsumerTag: "c", DeliveryTag: 7})))
	require.Equal(t, []any{0, uint64(0)}, seen(body[:begun]))
	require.Equal(t, []any{1, uint64(7)}, seen(body[begun:]))
	require.Equal(t, []any{1, uint64(7)}, seen(amqp.AppendMethod(nil, channel, &amqp.BasicDeliver{ConsumerTag: "c", DeliveryTag: 8})))
	require.Equal(t, []any{2, uint64(8)}, seen(empty))
}

func TestFanoutDeliversToEveryQueue(t *testing.T) {
	r, err := Throughput(t.Context(), Spec{
		URL: serve(t), Exchange: "fanout", Queues: 5, Consumers: 5, Ack: "auto", Window: 50, Count: 100, Duration: time.Minute,
	})
	require.NoError(t, err)
	require.EqualValues(t, 100, r.TotalPublished)
	require.EqualValues(t, 500, r.TotalConsumed)
}

func TestKeptQueueIsReused(t *testing.T) {
	s := Spec{URL: serve(t), Name: "kept.", Window: 100, Count: 1000, Duration: time.Minute, Keep: true}
	_, err := Throughput(t.Context(), s)
	require.NoError(t, err)
	admin, err := logIn(s.URL)
	require.NoError(t, err)
	defer admin.Close()
	n, err := length(admin, s.QueueName(0))
	require.NoError(t, err)
	require.Equal(t, 1000, n)

	s.Reuse, s.Consumers, s.Ack = true, 1, "auto"
	r, err := Throughput(t.Context(), s)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.TotalConsumed, int64(1000))
}

func TestSpecIsRefused(t *testing.T) {
	for _, s := range []Spec{
		{Duration: time.Second, Client: "pika"}, {Duration: time.Second, Ack: "never"}, {Duration: time.Second, Exchange: "headers"},
		{Duration: time.Second, QueueType: "stream"}, {Duration: time.Second, TTL: time.Microsecond}, {},
		{Duration: time.Second, TTL: -time.Second}, {Duration: time.Second, Warmup: -1}, {Duration: time.Second, Size: -1},
		{Duration: time.Second, Size: math.MaxInt}, {Duration: time.Second, Producers: -1}, {Duration: time.Second, Consumers: -1},
		{Duration: time.Second, Queues: 100_001}, {Duration: time.Second, Window: -1}, {Duration: time.Second, Prefetch: 1 << 16},
		{Duration: time.Second, Rate: -5}, {Duration: time.Second, Rate: math.MaxInt}, {Duration: time.Second, Backlog: -1}, {Duration: time.Second, Count: -5},
	} {
		_, err := Throughput(t.Context(), s)
		require.ErrorContains(t, err, "load: ")
	}
	_, err := Throughput(t.Context(), Spec{URL: "http://127.0.0.1", Duration: time.Second})
	require.ErrorContains(t, err, "not an amqp://")

	fine := Deadlines{Rate: 10, Duration: time.Second, MinTTL: time.Second, MaxTTL: time.Second}
	for _, change := range []func(*Deadlines){
		func(d *Deadlines) { d.Rate = 0 }, func(d *Deadlines) { d.Rate = math.MaxInt }, func(d *Deadlines) { d.Duration = 0 },
		func(d *Deadlines) { d.Duration = math.MaxInt64 }, func(d *Deadlines) { d.MinTTL = 0 }, func(d *Deadlines) { d.MaxTTL -= time.Millisecond },
		func(d *Deadlines) { d.MaxTTL += time.Microsecond }, func(d *Deadlines) { d.Head = -time.Second },
		func(d *Deadlines) { d.QueueType = "quorom" }, func(d *Deadlines) { d.MaxWait = -time.Second },
	} {
		d := fine
		change(&d)
		_, err := d.Run(t.Context())
		require.ErrorContains(t, err, "load: ", "%+v", d)
	}
}

// TestRunsDoNotMeet: two at a time count their own messages alone.
func TestRunsDoNotMeet(t *testing.T) {
	s := Spec{URL: serve(t), Size: 100, Consumers: 1, Rate: 5000, Count: 1000, Duration: time.Minute}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			r, err := Throughput(t.Context(), s)
			assert.NoError(t, err)
			assert.EqualValues(t, 1000, r.TotalConsumed)
			assert.EqualValues(t, 1000, r.Latency.Count)
		})
	}
	both.Wait()
}

// TestAllThatWasPublishedIsThereAtTheEnd: a run ends when the broker has taken what it sent.
func TestAllThatWasPublishedIsThereAtTheEnd(t *testing.T) {
	for name, s := range map[string]Spec{"raw": {}, "library": {Client: "amqp091"}} {
		t.Run(name, func(t *testing.T) {
			s.URL, s.Name, s.Duration, s.Keep = serve(t), "kept.", 50*time.Millisecond, true
			r, err := Throughput(t.Context(), s)
			require.NoError(t, err)
			n, err := QueueLength(s.URL, s.QueueName(0))
			require.NoError(t, err)
			require.EqualValues(t, r.TotalPublished, n)
		})
	}
}

// TestRefusalsAreCounted: a full queue's nacks are not confirms, and give their places back.
func TestRefusalsAreCounted(t *testing.T) {
	for _, client := range clients {
		t.Run(client, func(t *testing.T) {
			s := Spec{
				URL: serve(t), Client: client, Name: "full.", Window: 10, Count: 1000, Duration: time.Minute, Reuse: true, Keep: true,
			}
			admin, err := logIn(s.URL)
			require.NoError(t, err)
			defer admin.Close()
			_, err = admin.Call(channel, &amqp.QueueDeclare{Queue: s.QueueName(0), Arguments: amqp.Table{
				"x-max-length": int32(100), "x-overflow": "reject-publish",
			}}, amqp.QueueDeclareOkID)
			require.NoError(t, err)
			r, err := Throughput(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, 900, r.Nacked)
			require.EqualValues(t, 1000, r.ConfirmLatency.Count)
		})
	}
}

// TestFailuresAreTold: what the broker refuses and a count that is not reached are errors with either client.
func TestFailuresAreTold(t *testing.T) {
	for _, client := range clients {
		t.Run(client, func(t *testing.T) {
			said := "406"
			if client == "raw10" {
				said = "load: size is 20000000; it must be 0 to 130560"
			}
			_, err := Throughput(t.Context(), Spec{URL: serve(t), Client: client, Size: 20_000_000, Duration: time.Minute})
			require.ErrorContains(t, err, said)
			r, err := Throughput(t.Context(), Spec{URL: serve(t), Client: client, Rate: 100, Count: 1000, Duration: 50 * time.Millisecond})
			require.ErrorContains(t, err, "of 1000 published")
			require.Less(t, r.TotalPublished, int64(1000))
		})
	}
}

func TestErrorOfTheBrokerIsTold(t *testing.T) {
	_, err := Throughput(t.Context(), Spec{URL: serve(t), Reuse: true, Consumers: 1, Duration: time.Minute})
	require.ErrorContains(t, err, "404 NOT_FOUND")

	_, err = Throughput(t.Context(), Spec{URL: strings.Replace(serve(t), "guest:guest", "guest:wrong", 1), Duration: time.Minute})
	require.ErrorContains(t, err, "403 ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN")
}

// Without a monitor only a head expires, when something looks: so nothing comes from behind a long one, and a queue's
// length does not change. What the results say about it is checked here; integration checks that deadlines are kept.
func TestDeadlinesThatAreNotKept(t *testing.T) {
	r, err := Deadlines{
		URL: serve(t), Rate: 1000, Duration: 50 * time.Millisecond, MinTTL: time.Millisecond, MaxTTL: 20 * time.Millisecond,
		Head: time.Hour, MaxWait: 10 * time.Millisecond,
	}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 50, r.Published)
	require.Zero(t, r.Arrived)
	require.Nil(t, r.FromWrite)

	d, err := DueResult{}, ErrLead
	for lead := 200 * time.Millisecond; errors.Is(err, ErrLead); lead *= 2 { // a busy machine needs a longer one
		d, err = Due{URL: serve(t), Count: 100, Lead: lead, MaxWait: 20 * time.Millisecond}.Run(t.Context())
	}
	require.NoError(t, err)
	require.Zero(t, d.Gone)
}

func TestIdle(t *testing.T) {
	conns, err := Idle{URL: serve(t), Connections: 3, Queues: 5, Used: 2}.Open()
	require.NoError(t, err)
	require.Len(t, conns, 4)
	for _, c := range conns {
		c.Close()
	}
}
