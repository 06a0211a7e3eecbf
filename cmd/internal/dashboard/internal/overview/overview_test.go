package overview

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
	"curfew/monitor/incident"
)

// TestTheBannerIsShort: it has the worst incidents, and says how many more there are.
func TestTheBannerIsShort(t *testing.T) {
	o := &overview{Verdict: incident.Failing}
	for n := range 14 {
		o.Incidents = append(o.Incidents, incident.Incident{Summary: "thing " + strconv.Itoa(n), Level: incident.Critical})
	}
	one := incident.Affected{VHost: "v", Queue: "<q>", Text: "is wrong"}
	o.Incidents[0].Worst, o.Incidents[1].Worst = []incident.Affected{one, one}, []incident.Affected{one}
	var page strings.Builder
	require.NoError(t, o.verdicts().Render(&page))
	require.Contains(t, page.String(), "<p><b>Not all is well: 14 critical incidents, 0 warnings.</b></p>")
	require.Contains(t, page.String(), `<h1>thing 0</h1><p><b><a href="/queue?name=%3Cq%3E&amp;vhost=v">&lt;q&gt;</a> <span class="faint">v</span></b> is wrong</p>`)
	require.Equal(t, 2, strings.Count(page.String(), "is wrong"), "where there is one queue, the heading says it")
	require.Contains(t, page.String(), `<h1>thing 1</h1><p></p><p class="faint">`)
	require.Equal(t, 2, strings.Count(page.String(), "<h1>"), "the others have a line each")
	require.Contains(t, page.String(), `">thing 11</a></b>`)
	require.NotContains(t, page.String(), "thing 12")
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
