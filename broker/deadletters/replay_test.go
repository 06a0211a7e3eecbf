package deadletters_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/policy"
)

func TestReplayToOrigin(t *testing.T) {
	d := newDesk(t)
	require.NoError(t, d.vh.Exchanges.Declare("orders", broker.ExchangeDeclare{Kind: "topic", Durable: true}))
	require.NoError(t, d.vh.Bind(nil, broker.Binding{Source: "orders", Destination: "q", RoutingKey: "new.*"}))
	d.publish("orders", "new.one", "m", amqp.Properties{Expiration: "60000", Headers: amqp.Table{"tenant": "a"}})
	d.expire(d.q)
	r := d.runs("")

	run := d.replay(r, deadletters.Request{DryRun: true})
	assert.Equal(t, 1, run.Replayed)
	assert.Equal(t, []string{"m"}, d.bodies(d.dlq), "a dry run moves nothing")
	assert.Empty(t, r.List(), "and is not kept")

	run = d.replay(r, deadletters.Request{})
	assert.Equal(t, deadletters.Done, run.State, run.Error)
	assert.Equal(t, 1, run.Replayed)
	assert.Empty(t, d.bodies(d.dlq))
	back := d.queued(d.q)
	require.Len(t, back, 1)
	assert.Equal(t, "orders new.one", string(back[0].Message.Exchange)+" "+string(back[0].Message.RoutingKey))
	p, err := back[0].Decode()
	require.NoError(t, err)
	assert.Equal(t, amqp.Table{"tenant": "a", "x-curfew-replays": int64(1), "x-curfew-replay-run": run.ID}, p.Headers)
	assert.Equal(t, "60000", p.Expiration, "it has the time it was published with")
	assert.InDelta(t, 60, back[0].Deadline.Sub(d.b.Now()).Seconds(), 10)
}

// TestReplayOfWhatTheDryRunShowed: what arrived since stays.
func TestReplayOfWhatTheDryRunShowed(t *testing.T) {
	d := newDesk(t)
	d.dead(2)
	r := d.runs("")
	tried := d.replay(r, deadletters.Request{DryRun: true})
	require.Equal(t, 2, tried.Matched)
	d.dead(3)
	run := d.replay(r, deadletters.Request{Position: tried.Position})
	assert.Equal(t, 2, run.Matched)
	assert.Len(t, d.bodies(d.dlq), 3)
	tried.Position.QueueID++
	_, err := r.Start(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq", Position: tried.Position})
	assert.ErrorIs(t, err, deadletters.ErrRequest)
	assert.ErrorContains(t, err, "read it again")
}

// TestParkedGoOnward: to the exchange by which they could not be routed, unless another place is named. At their origin they would mostly die again.
func TestParkedGoOnward(t *testing.T) {
	d := newDesk(t)
	typo := d.declare("typo", amqp.Table{"x-dead-letter-exchange": "later"})
	d.publish("", "typo", "m", amqp.Properties{})
	d.expire(typo)
	require.NoError(t, d.vh.Exchanges.Declare("later", broker.ExchangeDeclare{Kind: "fanout", Durable: true}))
	require.NoError(t, d.vh.Bind(nil, broker.Binding{Source: "later", Destination: "dlq"}))
	r, parked := d.runs(""), deadletters.Request{VHost: "/", Queue: policy.UndeliverableQueue, DryRun: true}
	for to, target := range map[string]string{"": "dlq", deadletters.ToOrigin: "typo"} {
		parked.To = to
		tried, err := r.Start(t.Context(), parked)
		require.NoError(t, err)
		require.Equal(t, target, tried.Targets[0].Queue)
	}
	require.Equal(t, deadletters.ToOrigin, d.replay(r, deadletters.Request{DryRun: true}).To)
}

func TestReplayStopsRoundTrips(t *testing.T) {
	d := newDesk(t)
	d.dead(1)
	r := d.runs("")
	for range deadletters.DefaultMaxReplays {
		assert.Equal(t, 1, d.replay(r, deadletters.Request{}).Replayed)
		d.expire(d.q)
	}
	run := d.replay(r, deadletters.Request{})
	assert.Equal(t, deadletters.Skips{deadletters.SkippedLoop: 1}, run.Skipped)
	assert.Equal(t, 1, d.replay(r, deadletters.Request{Options: deadletters.Options{MaxReplays: 9, KeepDeaths: true}}).Replayed)
	d.expire(d.q)
	l, _, err := deadletters.Search(t.Context(), d.dlq, "", deadletters.Look{Count: 1})
	require.NoError(t, err)
	assert.EqualValues(t, 2, l[0].Deaths[0].Count, "with the deaths kept the broker counts on")
}

// TestReplayDoesNotReadWhatItBroughtBack replays into a queue that dead-letters at once.
func TestReplayDoesNotReadWhatItBroughtBack(t *testing.T) {
	d := newDesk(t)
	d.declare("instant", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq", "x-message-ttl": int32(0)})
	d.dead(600)
	run := d.replay(d.runs(""), deadletters.Request{Options: deadletters.Options{To: deadletters.ToExchange, Key: "instant", MaxReplays: 1000}})
	assert.Equal(t, deadletters.Done, run.State)
	assert.Equal(t, 600, run.Replayed)
	assert.Len(t, d.bodies(d.dlq), 600)
}

func TestReplayLeavesWhatCannotGo(t *testing.T) {
	d := newDesk(t)
	d.publish("", "dlq", "never died", amqp.Properties{})
	d.dead(2)
	d.declare("small", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
	r := d.runs("")
	to := func(key string, o deadletters.Options) deadletters.Skips {
		o.To, o.Key = deadletters.ToExchange, key
		return d.replay(r, deadletters.Request{Options: o}).Skipped
	}
	assert.Equal(t, deadletters.Skips{deadletters.SkippedUnroutable: 3}, to("nobody", deadletters.Options{}))
	assert.Equal(t, deadletters.Skips{deadletters.SkippedBack: 3}, to("dlq", deadletters.Options{}))
	assert.Len(t, d.bodies(d.dlq), 3)
	assert.Equal(t, deadletters.Skips{deadletters.SkippedFull: 2}, to("small", deadletters.Options{}))
	assert.Equal(t, deadletters.Skips{}, d.replay(r, deadletters.Request{}).Skipped)

	d.publish("", "dlq", "never died", amqp.Properties{})
	assert.Equal(t, deadletters.Skips{deadletters.SkippedOrigin: 1}, d.replay(r, deadletters.Request{}).Skipped)
	d.user("reader", "^$")
	run := d.replay(r, deadletters.Request{User: "reader", Options: deadletters.Options{To: deadletters.ToExchange, Key: "q"}})
	assert.Equal(t, deadletters.Skips{deadletters.SkippedRefused: 1}, run.Skipped)
}

// TestReplayToAnExchange: amq.default is the default one, and one that does not exist is said at once.
func TestReplayToAnExchange(t *testing.T) {
	d := newDesk(t)
	d.dead(2)
	r := d.runs("")
	to := deadletters.Options{To: deadletters.ToExchange, Exchange: "amq.default", Key: "q"}
	assert.Equal(t, 2, d.replay(r, deadletters.Request{Options: to}).Replayed)
	for _, dry := range []bool{true, false} {
		to.Exchange = "none"
		_, err := r.Start(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq", Options: to, DryRun: dry})
		assert.ErrorIs(t, err, deadletters.ErrRequest)
		assert.ErrorContains(t, err, "exchange: there is no 'none' in vhost '/'")
	}
	to.To = deadletters.ToOrigin
	_, err := r.Start(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq", Options: to})
	assert.NoError(t, err, "it is not used")
}

func TestReplayTimeToLive(t *testing.T) {
	d := newDesk(t)
	now := d.b.UnixMillis(d.b.Now())
	ahead, stamp := time.Now().Add(time.Hour).UnixMilli(), amqp.Timestamp(time.Now().Unix())
	r := d.runs("")
	for _, c := range []struct {
		ttl  string
		want map[string]int64 // Unix ms; 0 none
	}{
		{deadletters.TTLFresh, map[string]int64{"relative": 7_000_000 + now, "absolute": ahead, "unknown": 7_000_000 + now, "past": 1000 + now, "without": 0}},
		{deadletters.TTLNone, map[string]int64{"relative": 0, "absolute": 0, "unknown": 0, "past": 0, "without": 0}},
		{"5000s", map[string]int64{"relative": 5_000_000 + now, "absolute": 5_000_000 + now, "unknown": 5_000_000 + now, "past": 5_000_000 + now, "without": 5_000_000 + now}},
		{deadletters.TTLRemaining, map[string]int64{"relative": int64(stamp)*1000 + 7_000_000, "absolute": ahead, "without": 0}},
	} {
		d := newDesk(t) // each choice on messages that were not touched
		d.publish("", "q", "relative", amqp.Properties{Expiration: "7000000", Timestamp: stamp})
		d.publish("", "q", "absolute", amqp.Properties{Headers: amqp.Table{"x-expires-at": ahead}})
		d.publish("", "q", "unknown", amqp.Properties{Expiration: "7000000"})
		d.publish("", "q", "past", amqp.Properties{Expiration: "1000", Timestamp: stamp - 10})
		d.publish("", "q", "without", amqp.Properties{})
		d.expire(d.q)
		run := d.replay(d.runs(""), deadletters.Request{Options: deadletters.Options{TTL: c.ttl}})
		got := map[string]int64{}
		for _, x := range d.queued(d.q) {
			got[string(x.Message.Body)] = d.b.UnixMillis(x.Deadline)
		}
		require.Len(t, got, len(c.want), c.ttl)
		assert.Equal(t, 5-len(c.want), run.Skipped[deadletters.SkippedNoTime], c.ttl)
		for body, at := range c.want {
			assert.InDelta(t, at, got[body], 45_000, "%s %s", c.ttl, body)
		}
	}
	_, err := r.Start(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq", Options: deadletters.Options{TTL: "long"}})
	assert.ErrorIs(t, err, deadletters.ErrRequest)
}

func TestReplayCancelAndResume(t *testing.T) {
	d := newDesk(t)
	const letters = 200 // 40 seconds of them
	d.dead(letters)
	dir := t.TempDir()
	r := d.runs(dir)
	run, err := r.Start(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq", Options: deadletters.Options{Rate: 5}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(d.bodies(d.q)) >= 2 }, time.Minute, time.Millisecond)
	run, err = r.Cancel(run.ID)
	require.NoError(t, err)
	assert.Equal(t, deadletters.Cancelled, run.State)
	moved := len(d.bodies(d.q))
	assert.Equal(t, moved, run.Replayed)
	assert.Less(t, moved, letters)
	_, err = r.Cancel("nothing")
	assert.ErrorIs(t, err, operate.ErrNotFound)

	r.Close()
	r = d.runs(dir) // the next life
	run, err = r.Get(run.ID)
	require.NoError(t, err)
	assert.Equal(t, deadletters.Cancelled, run.State, "it was not under way")
	_, err = r.Resume(run.ID)
	require.NoError(t, err)
	_, err = r.Resume(run.ID)
	assert.ErrorIs(t, err, deadletters.ErrRunning)
	r.Close()
	r = d.runs(dir)
	run, err = r.Get(run.ID)
	require.NoError(t, err)
	assert.Equal(t, deadletters.Running, run.State, "it was")
	run, err = r.Cancel(run.ID)
	require.NoError(t, err)
	assert.Equal(t, len(d.bodies(d.q)), run.Replayed)
	assert.Equal(t, run.Replayed, run.Matched, "one that was waiting is met again, and counted then")
}

func TestReplayLimit(t *testing.T) {
	d := newDesk(t)
	d.dead(10)
	run := d.replay(d.runs(""), deadletters.Request{Options: deadletters.Options{Limit: 3}})
	assert.Equal(t, deadletters.Done, run.State)
	assert.Equal(t, []string{"0", "1", "2"}, d.bodies(d.q))
}

// TestEveryRunGoesOn has as many runs under way as there may be, at the end of a process.
func TestEveryRunGoesOn(t *testing.T) {
	d := newDesk(t)
	d.dead(20)
	dir := t.TempDir()
	r := d.runs(dir)
	slow := deadletters.Request{VHost: "/", Queue: "dlq", Options: deadletters.Options{Rate: 0.01}}
	for range 8 {
		_, err := r.Start(t.Context(), slow)
		require.NoError(t, err)
	}
	_, err := r.Start(t.Context(), slow)
	assert.ErrorIs(t, err, deadletters.ErrRunning, "one too many")
	r.Close()
	r = d.runs(dir)
	require.Len(t, r.List(), 8)
	for _, run := range r.List() {
		assert.Equal(t, deadletters.Running, run.State, run.Error)
	}
}
