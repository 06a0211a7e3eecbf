package overview

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
	"curfew/monitor/history"
	"curfew/monitor/incident"
)

// TestTheBannerIsShort: it has the worst incidents, each with what to do first, and says how many more there are.
func TestTheBannerIsShort(t *testing.T) {
	o := &overview{Verdict: incident.Failing}
	for n := range 14 {
		o.Incidents = append(o.Incidents, incident.Incident{Summary: "thing " + strconv.Itoa(n), Level: incident.Critical, Do: "Add some. Then `look`.", Page: "/queue?name=q"})
	}
	o.Incidents[1].Do = "Add others. Then `look`."
	o.Incidents[11].Do = "Declare it. Then `look`."
	o.Incidents[10].Page, o.Incidents[10].Command = "/", "curfew status"
	one := incident.Affected{VHost: "v", Queue: "<q>", Text: "is wrong"}
	o.Incidents[0].Worst, o.Incidents[1].Worst = []incident.Affected{one, one}, []incident.Affected{one}
	var page strings.Builder
	require.NoError(t, o.verdicts().Render(&page))
	require.Contains(t, page.String(), "<h1>Not all is well: 14 critical incidents, 0 warnings.</h1>")
	require.Contains(t, page.String(), `thing 0</a></h2><div class="whole"><p><b><a href="/queue?name=%3Cq%3E&amp;vhost=v">&lt;q&gt;</a> <span class="faint">v</span></b> is wrong</p>`)
	require.Equal(t, 2, strings.Count(page.String(), "is wrong"), "where there is one queue, the heading says it")
	require.Contains(t, page.String(), `thing 1</a></h2><div class="whole"><p>Add others. Then`)
	require.Equal(t, 2, strings.Count(page.String(), "whole"), "the others are in brief")
	require.Contains(t, page.String(), `thing 11</a></h2><p class="first">Declare it.</p><p><a href="/queue?name=q">Open queue</a>`)
	require.Contains(t, page.String(), `thing 10</a></h2><p><span class="command"><code>curfew status</code>`, "the page is this one")
	require.Equal(t, 1, strings.Count(page.String(), `<p class="first">Add some.`), "what is to be done is said once")
	require.NotContains(t, page.String(), "thing 12")
	o.Incidents[9].Lost, o.Changed = 3, []history.Mark{{Text: "a policy was set"}}
	page.Reset()
	require.NoError(t, o.verdicts().Render(&page))
	require.Contains(t, page.String(), `thing 9</a></h2><p class="first"><code>look</code></p>`, "where messages are lost there is a command")
	require.Less(t, strings.Index(page.String(), "thing 11"), strings.Index(page.String(), "a policy was set"), "incidents come first")
	require.Contains(t, page.String(), "2 more incidents")
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

// TestMessagesInMemoryOnly are a warning on the first screen, unless that is for tests.
func TestMessagesInMemoryOnly(t *testing.T) {
	const warning = `warn">Messages are in memory only: a restart loses every message; set CURFEW_DATA_DIR<`
	for _, c := range []struct {
		overview
		warned bool
	}{{overview{}, true}, {overview{State: operate.State{ManualClock: true}}, false}, {overview{State: operate.State{DataDir: "/x"}}, false}, {overview{Remote: true}, false}} {
		var page strings.Builder
		require.NoError(t, c.verdicts().Render(&page))
		require.Equal(t, c.warned, strings.Contains(page.String(), warning), page.String())
	}
}
