package overview

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
	"curfew/monitor"
	"curfew/monitor/alert"
)

// TestVerdicts: all that is wrong is listed, the worst first, and each says what to do.
func TestVerdicts(t *testing.T) {
	firingAlert := func(severity string) alert.Status {
		return alert.Status{Summary: severity + " thing", State: "firing", Severity: severity}
	}
	for _, c := range []struct {
		name   string
		change func(o *overview)
		want   []string // level and part of the text
	}{
		{"all is well", func(*overview) {}, []string{"good All deadlines are watched"}},
		{"no monitor", func(o *overview) { o.Watched = false }, []string{"warn Deadlines are not watched"}},
		{"at risk", func(o *overview) { o.AtRisk, o.Risky, o.WillMiss = 1, 2, 1200 }, []string{"bad 1,200 messages in 2 queues at risk"}},
		{"later", func(o *overview) { o.WillMiss, o.Risky = 1, 1 }, []string{"warn 1 message in 1 queue at risk of expiring if"}},
		{"degraded", func(o *overview) { o.Health.Reasons = []string{"redis: away"}; o.AtRisk, o.Risky = 1, 1 }, []string{"bad 0 messages in 1 queue at risk", "warn Deadlines are met, with less protection"}},
		{"undelivered", func(o *overview) { o.Undelivered = []string{"slack: 404"} }, []string{"warn Alerts do not arrive"}},
		{"critical hides nothing", func(o *overview) {
			o.Critical, o.Firing, o.Alerts = 1, 2, []alert.Status{firingAlert("critical"), firingAlert("warning")}
			o.Health.Reasons = []string{"redis: away"}
		}, []string{"bad 1 critical alert firing", "warn Deadlines are met, with less protection", "warn 1 alert firing"}},
		{"blocked", func(o *overview) { o.Blocked = "low on disk" }, []string{"bad Resource alarm, publishers are blocked: low on disk"}},
		{"silent disk", func(o *overview) { o.DiskSilent = 7 * time.Second }, []string{"bad The disk has not answered for 7 s"}},
		{"lost folder", func(o *overview) { o.Health.Orphans = 3 }, []string{"bad The data folder was new at this start, and 3 messages of an earlier run may be missing"}},
		{"late", func(o *overview) { o.Health.Lag = 3 * time.Second; o.Blocked = "low on disk" }, []string{"bad Deadlines are fired late, by 3 s", "bad Resource alarm"}},
		{"stuck", func(o *overview) { o.Health.Stalled, o.Health.Reasons = []string{"fire"}, []string{"loop fire silent"} }, []string{"bad Part of the monitor is stuck"}},
	} {
		o := &overview{Watched: true}
		c.change(o)
		o.judge()
		require.Len(t, o.Verdicts, len(c.want), c.name)
		for i, v := range o.Verdicts {
			require.Contains(t, v.Level+" "+v.Text, c.want[i], c.name)
		}
	}
}

// TestVerdictsNameAlerts: the first of them, and how many more there are, of each severity by itself. Each leads to its queue.
func TestVerdictsNameAlerts(t *testing.T) {
	o, since := &overview{}, time.UnixMilli(0)
	for i := range 10 {
		o.Alerts = append(o.Alerts, alert.Status{Summary: "c" + strconv.Itoa(i), State: "firing", Severity: "critical", StartsAt: since}, alert.Status{Summary: "pending", State: "pending", Severity: "critical"})
	}
	o.Alerts = append(o.Alerts, alert.Status{Finding: "w", State: "firing", Severity: "warning", StartsAt: since, Labels: map[string]string{"vhost": "v", "queue": "<q>"}})
	require.Equal(t, lines("C0 · since 00:00:00 UTC", "C1 · since 00:00:00 UTC", "C2 · since 00:00:00 UTC", "and 7 more"), o.firing("critical"))
	var page strings.Builder
	require.NoError(t, verdict{More: o.firing("")}.draw().Render(&page))
	require.Contains(t, page.String(), `<b><a href="/queue?name=%3Cq%3E&amp;vhost=v">&lt;q&gt;</a> <span class="faint">v</span></b> · w · since 00:00:00 UTC`)
}

// TestRedisIsAway: since when, then that nothing is lost, then what to do, and last the error.
func TestRedisIsAway(t *testing.T) {
	o := &overview{Watched: true, Health: monitor.Health{Schedule: monitor.ScheduleDown, Since: time.UnixMilli(3_000), Reasons: []string{"redis schedule down: refused"}}}
	o.NowMillis = 23_000
	o.judge()
	require.Len(t, o.Verdicts, 1)
	v := o.Verdicts[0]
	require.Equal(t, "Redis has been away for 20 s, since 00:00:03 UTC: deadlines are met, with less protection than configured", v.Text)
	require.Contains(t, v.More[0].Text, "Nothing is lost")
	require.Contains(t, v.More[1].Text, "REDIS_URL")
	require.Equal(t, line{Text: "redis schedule down: refused", Faint: true}, v.More[2])
}

// TestMostUrgentQueuesComeFirst: those at risk by the time of their first message, then those with time left, then the rest.
func TestMostUrgentQueuesComeFirst(t *testing.T) {
	list := []monitor.Forecast{
		{Queue: "safe", Deadlines: 900}, {Queue: "later", WillMiss: 90, FirstMiss: 50}, {Queue: "second", WillMiss: 5, FirstMiss: 20, AtRisk: true},
		{Queue: "first", WillMiss: 1, FirstMiss: 10, AtRisk: true},
	}
	slices.SortStableFunc(list, byUrgency)
	var names []string
	for _, f := range list {
		names = append(names, f.Queue)
	}
	require.Equal(t, []string{"first", "second", "later", "safe"}, names)
}

func TestPublishersStateIsDrawn(t *testing.T) {
	for want, o := range map[string]*overview{
		"free to publish": {}, "2 connections waiting for consumers (flow)": {State: operate.State{InFlow: 2}},
		"blocked, ": {State: operate.State{InFlow: 2, Blocked: "low on disk"}},
	} {
		var page strings.Builder
		require.NoError(t, o.components().Render(&page))
		require.Contains(t, page.String(), want)
	}
}
