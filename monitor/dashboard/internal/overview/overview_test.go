package overview

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
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
		{"all is well", func(*overview) {}, []string{"good Every deadline is watched"}},
		{"no monitor", func(o *overview) { o.Watched = false }, []string{"warn Deadlines are not watched"}},
		{"at risk", func(o *overview) { o.AtRisk, o.Risky, o.WillMiss = 1, 2, 1200 }, []string{"warn 1,200 messages in 2 queues at risk"}},
		{"later", func(o *overview) { o.WillMiss = 1 }, []string{"warn 1 message at risk: will expire"}},
		{"degraded", func(o *overview) { o.Health.Reasons = []string{"redis: away"}; o.AtRisk, o.Risky = 1, 1 }, []string{"warn Deadlines are met, with less protection", "warn 0 messages in 1 queue at risk"}},
		{"undelivered", func(o *overview) { o.Undelivered = []string{"slack: 404"} }, []string{"warn Alerts do not arrive"}},
		{"critical hides nothing", func(o *overview) {
			o.Critical, o.Firing, o.Alerts = 1, 2, []alert.Status{firingAlert("critical"), firingAlert("warning")}
			o.Health.Reasons = []string{"redis: away"}
		}, []string{"bad 1 critical alert firing", "warn Deadlines are met, with less protection", "warn 1 alert firing"}},
		{"blocked", func(o *overview) { o.Blocked = "low on disk" }, []string{"bad Resource alarm, publishers are blocked: low on disk"}},
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

// TestVerdictsNameAlerts: the first of them, and how many more there are, of each severity by itself.
func TestVerdictsNameAlerts(t *testing.T) {
	o := &overview{}
	for i := range 10 {
		o.Alerts = append(o.Alerts, alert.Status{Summary: "c" + strconv.Itoa(i), State: "firing", Severity: "critical"}, alert.Status{Summary: "pending", State: "pending", Severity: "critical"})
	}
	o.Alerts = append(o.Alerts, alert.Status{Summary: "w", State: "firing", Severity: "warning"})
	require.Equal(t, []string{"c0", "c1", "c2", "and 7 more"}, o.firing("critical"))
	require.Equal(t, []string{"w"}, o.firing(""))
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
