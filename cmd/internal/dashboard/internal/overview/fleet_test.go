package overview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/monitor/incident"
)

// queueOf is a queue for work.
func queueOf(id uint64, vhost, name string) *operate.Queue {
	q := &operate.Queue{Purpose: deadline.Work}
	q.ID, q.VHost, q.Name = id, vhost, name
	return q
}

// lost is a look that finds n messages of a queue lost in the last hour.
func lost(vhost, name string, n int64) *incident.View {
	return &incident.View{Hour: deadline.Hour{{vhost, name}: {Expired: n, Dropped: n}}}
}

// TestFleetHasTheWorstOfEachQueue: an incident above losses, these above a risk; an expiry that is meant does not count.
func TestFleetHasTheWorstOfEachQueue(t *testing.T) {
	retry := queueOf(6, "a", "retry")
	retry.Purpose = deadline.Retry
	queues := []*operate.Queue{
		queueOf(1, "b", "stuck"), queueOf(2, "b", "late"), queueOf(3, "a", "losing"), queueOf(4, "a", "risky"), queueOf(5, "a", "idle"), retry,
	}
	f := newFleet(queues,
		&incident.View{
			Forecasts: []deadline.Forecast{{VHost: "a", Queue: "risky", AtRisk: 7}, {VHost: "a", Queue: "retry", AsMeant: 9}, {VHost: "a", Queue: "losing", AtRisk: 1}},
			Queues:    map[incident.QueueName]incident.Concern{{VHost: "b", Name: "stuck"}: {Level: incident.Critical}, {VHost: "b", Name: "late"}: {Level: incident.Warning}, {VHost: "a", Name: "idle"}: {Level: incident.Info}},
			Hour:      deadline.Hour{{"b", "stuck"}: {Expired: 3, Dropped: 3}, {"a", "losing"}: {Expired: 40, Dropped: 40}},
		}, &operate.Rates{})
	var groups []string
	for _, group := range f.Groups {
		text := group[0].VHost + " " + group[0].Purpose.String()
		for _, q := range group {
			text += " " + q.Name + ": " + states[q.state].means
		}
		groups = append(groups, text)
	}
	require.Equal(t, []string{
		"a work idle: without traffic losing: lost messages in the last hour risky: with messages at risk", "a retry retry: without traffic", "b work late: in a warning stuck: in a critical incident",
	}, groups)
	require.Equal(t, []string{"stuck", "late"}, names(f.Broken))
	require.Equal(t, []string{"losing", "stuck"}, names(f.Losing))
	require.Empty(t, f.Traffic)
	var page strings.Builder
	require.NoError(t, (&overview{Fleet: f}).fleet().Render(&page))
	for _, want := range []string{
		`<a class="lost" href="/queue?name=losing&amp;vhost=a" title="losing: 40 lost in the last hour, 1 at risk, 0 ready" tabindex="-1"></a>`,
		`<a class="warned" href="/queue?name=late&amp;vhost=b" title="late: in a warning, 0 ready"></a>`,
		`href="/queues?desc=1&amp;purpose=retry&amp;sort=miss&amp;vhost=a">a · retry</a>`, "<b>2</b> others", "<dt>Most traffic</dt><dd><span class=\"faint\">measuring</span>",
		`vhost=b">b</a> <b>1 queue in a critical incident, 1 queue in a warning, 3 lost in the last hour</b>`,
	} {
		require.Contains(t, page.String(), want)
	}
	require.NotContains(t, page.String(), "not shown")
}

// TestWorstHost: a message that is gone is worse than any number that were dead-lettered.
func TestWorstHost(t *testing.T) {
	seen := lost("b", "gone", 1)
	seen.Hour[[2]string{"a", "saved"}] = deadline.Toll{Expired: 900}
	f := newFleet([]*operate.Queue{queueOf(1, "a", "saved"), queueOf(2, "b", "gone")}, seen, &operate.Rates{})
	require.Equal(t, "b", f.Worst.VHost)
	require.Equal(t, []string{"gone", "saved"}, names(f.Losing))
	require.Equal(t, "without traffic", states[f.Groups[0][0].state].means, "nothing was lost there")
	require.Equal(t, "saved: 900 dead-lettered in the last hour, 0 ready", f.Groups[0][0].says())
}

// TestALossIsWorseThanWarnings: the worst virtual host is the one that has lost messages, not the one with queues in warnings.
func TestALossIsWorseThanWarnings(t *testing.T) {
	seen := lost("b", "gone", 1)
	seen.Queues = map[incident.QueueName]incident.Concern{{VHost: "a", Name: "warned"}: {Level: incident.Warning}}
	f := newFleet([]*operate.Queue{queueOf(1, "a", "warned"), queueOf(2, "b", "gone")}, seen, &operate.Rates{})
	require.Equal(t, "b", f.Worst.VHost)
}

func names(list []fleetQueue) (names []string) {
	for _, q := range list {
		names = append(names, q.Name)
	}
	return names
}

// TestFleetOfManyQueues: the worst 1,000 are shown, the same each time, and how many are not.
func TestFleetOfManyQueues(t *testing.T) {
	queues := manyQueues(1_203)
	seen := lost(queues[0].VHost, queues[0].Name, 1)
	for i := range 3 {
		q := queues[400*i]
		q.Purpose, seen.Hour[[2]string{q.VHost, q.Name}] = deadline.Work, deadline.Toll{Expired: int64(i + 1), Dropped: int64(i + 1)}
	}
	shown := func() (list []string) {
		for _, group := range newFleet(queues, seen, &operate.Rates{}).Groups {
			list = append(list, names(group)...)
		}
		return list
	}
	before := shown()
	require.Len(t, before, fleetCells)
	require.Contains(t, before, queues[800].Name)
	slices.Reverse(queues)
	require.Equal(t, before, shown())
	f := newFleet(queues, seen, &operate.Rates{})
	require.Equal(t, 3, f.Of[lossy])
	require.Equal(t, 1_200, f.Of[idle])
	var page strings.Builder
	require.NoError(t, (&overview{Fleet: f, Today: deadline.Toll{Expired: 6}}).fleet().Render(&page))
	require.Contains(t, page.String(), "These are the worst 1,000. 203 queues more are not shown.")
	require.Contains(t, page.String(), `queue-800</a> <span class="faint">v0</span> <b>3 lost</b>`)
	require.Equal(t, fleetCells, strings.Count(page.String(), " title="))
}

// manyQueues are in ten virtual hosts, for work and telemetry.
func manyQueues(n int) (list []*operate.Queue) {
	for i := range n {
		q := queueOf(uint64(i), fmt.Sprint("v", i%10), fmt.Sprint("queue-", i))
		if i%3 == 2 {
			q.Purpose = deadline.Telemetry
		}
		list = append(list, q)
	}
	return list
}

// BenchmarkFleet is what 50,000 queues cost each look at the overview.
func BenchmarkFleet(b *testing.B) {
	queues := manyQueues(50_000)
	seen := lost("", "", 0)
	for i, q := range queues {
		seen.Hour[[2]string{q.VHost, q.Name}] = deadline.Toll{Expired: int64(i % 100), Dropped: int64(i % 100)}
		seen.Forecasts = append(seen.Forecasts, deadline.Forecast{VHost: q.VHost, Queue: q.Name, AtRisk: i % 7})
	}
	for b.Loop() {
		f := newFleet(queues, seen, &operate.Rates{})
		if err := (&overview{Fleet: f}).fleet().Render(&strings.Builder{}); err != nil {
			b.Fatal(err)
		}
	}
}
