package dashboard

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/monitor"
	"curfew/monitor/alert"
)

// TestVerdict: the gravest comes first, and each says what to do.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name        string
		change      func(o *overview)
		level, text string
	}{
		{"all is well", func(*overview) {}, "good", "Every deadline is watched"},
		{"no monitor", func(o *overview) { o.Watched = false }, "warn", "not watched"},
		{"at risk", func(o *overview) { o.AtRisk, o.WillMiss = 2, 1200 }, "warn", "1\u202f200 messages about to miss their deadlines in 2 queues"},
		{"degraded", func(o *overview) { o.Health.Reasons = []string{"redis: away"}; o.AtRisk = 1 }, "warn", "less protection"},
		{"untold", func(o *overview) { o.Untold = []string{"slack: 404"}; o.AtRisk = 1 }, "warn", "alerts do not go where they should"},
		{"critical", func(o *overview) { o.Critical = 1; o.Alerts = []alert.Status{{Summary: "x"}} }, "bad", "1 critical alert"},
		{"blocked", func(o *overview) { o.Blocked = "low on disk"; o.AtRisk = 1 }, "bad", "blocked: low on disk"},
		{"late", func(o *overview) { o.Health.Lag = 3 * time.Second; o.Blocked = "low on disk" }, "bad", "late, by 3 s"},
		{"stuck", func(o *overview) { o.Health.Stalled = []string{"fire"} }, "bad", "stuck"},
	} {
		o := &overview{Watched: true}
		c.change(o)
		o.judge()
		require.Equal(t, c.level, o.Verdict.Level, c.name)
		require.Contains(t, o.Verdict.Text, c.text, c.name)
	}
}

func TestPublishersAreShown(t *testing.T) {
	for want, o := range map[string]*overview{
		"free to publish": {}, "2 connections waiting for consumers (flow)": {State: State{InFlow: 2}},
		"blocked, ": {State: State{InFlow: 2, Blocked: "low on disk"}},
	} {
		var page strings.Builder
		require.NoError(t, o.parts().Render(&page))
		require.Contains(t, page.String(), want)
	}
}

func TestTimeline(t *testing.T) {
	const now = 1_000_000
	m := &fakeMonitor{deadlines: []int64{now - 5, now + 1, now + 500, now + 30_000, now + 59_999, now + 3_600_000}}
	line := newTimeline(m, now, 6, url.Values{"ahead": {"1 min"}})
	require.Equal(t, "1 min", line.Window)
	require.EqualValues(t, 1, line.Overdue)
	require.EqualValues(t, 4, line.Inside)
	require.EqualValues(t, 1, line.Later)
	require.Len(t, line.Bars, timelineBars)
	require.EqualValues(t, 2, line.Bars[0].Count)
	require.Equal(t, timelineHeight, line.Bars[0].Height, "the largest fills it")
	require.Equal(t, "2 messages due in 0 ms to 1 s", line.Bars[0].Label)
	require.Zero(t, line.Bars[1].Height)
	require.EqualValues(t, 1, line.Bars[59].Count)
	require.Equal(t, []string{"now", "+15 s", "+30 s", "+45 s", "+1 min"}, []string{line.Ticks[0], line.Ticks[1], line.Ticks[2], line.Ticks[3], "+1 min"})

	require.Equal(t, "1 h", newTimeline(m, now, 6, nil).Window, "the least that has nine in ten")
	require.Equal(t, "7 d", newTimeline(&fakeMonitor{}, now, 6, nil).Window)
	require.Equal(t, "15 min", newTimeline(&fakeMonitor{}, now, 0, url.Values{"ahead": {"nonsense"}}).Window)
}

func TestHistogram(t *testing.T) {
	h := newHistogram(monitor.Lateness{UpTo: []int64{1, 10, 1000, 5000}, Counts: []uint64{900, 90, 0, 9, 1}})
	require.EqualValues(t, 1000, h.Total)
	require.EqualValues(t, 10, h.Late)
	require.Equal(t, "≤ 1 ms", h.Half)
	require.Equal(t, "≤ 10 ms", h.Most)
	require.Equal(t, 100, h.Rows[0].Width)
	require.Zero(t, h.Rows[2].Width)
	require.True(t, h.Rows[3].Late)
	require.Equal(t, "later", h.Rows[4].Label)
}

// TestLatenessOfASpan: each choice keeps the other, and the number at the top is since the start.
func TestLatenessOfASpan(t *testing.T) {
	s := newSite(t).logIn("eye")
	s.monitor.lateness = monitor.Lateness{UpTo: []int64{1, 1000}, Counts: []uint64{0, 7, 0}}
	s.monitor.lately = monitor.Lateness{UpTo: []int64{1, 1000}, Counts: []uint64{3, 0, 0}}
	a := s.get("/?ahead=1+h")
	require.Contains(t, a.body, "7 messages</b> in ")
	require.Contains(t, a.body, `href="/?ahead=1+h&amp;late=5m"`)
	a = s.get("/?ahead=1+h&late=5m")
	require.Contains(t, a.body, "3 messages</b> in the last 5 min")
	require.Contains(t, a.body, `href="/?ahead=1+h&amp;late=1h"`)
	require.Contains(t, a.body, `href="/?ahead=1+h"`)
	require.Contains(t, a.body, `href="/?ahead=1+min&amp;late=5m"`)
	require.Contains(t, a.body, "<b>≤ 1 s</b>", "at the top")
	s.monitor.lately = monitor.Lateness{UpTo: []int64{1}, Counts: []uint64{0, 0}}
	require.Contains(t, s.get("/?late=1h").body, "Nothing expired in the last 1 h.")
}

func TestRates(t *testing.T) {
	var x rates
	at := time.Unix(1000, 0)
	require.False(t, x.of(at, Totals{Published: 10}).Known)
	require.False(t, x.of(at.Add(100*time.Millisecond), Totals{Published: 20}).Known, "too near")
	r := x.of(at.Add(2*time.Second), Totals{Published: 110, Acked: 4})
	require.Equal(t, 50.0, r.Published)
	require.Equal(t, 2.0, r.Acked)
	for i := range 100 {
		r = x.of(at.Add(time.Duration(i+3)*time.Second), Totals{Published: 110 + uint64(i+1)*7})
	}
	require.InDelta(t, 7, r.Published, 0.1)
	require.LessOrEqual(t, len(x.last), samples+1)
	require.False(t, x.of(at.Add(time.Hour), Totals{}).Known, "nobody looked for long")
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", 1500 * time.Millisecond: "1.5 s", 90 * time.Second: "1 min 30 s", time.Hour: "1 h",
		26 * time.Hour: "1 d 2 h", -time.Second: "-1 s",
	} {
		require.Equal(t, want, span(d))
	}
	require.Equal(t, "1\u202f234\u202f567", number(1234567))
	require.Equal(t, "-1\u202f000", number(-1000))
	require.Equal(t, "999", number(999))
	require.Equal(t, "1.5 MiB", byteCount(3<<19))
	require.Equal(t, "in 5 s", until(15_000, 10_000))
	require.Equal(t, "5 s ago", until(5_000, 10_000))
	require.Equal(t, "now", until(9_500, 10_000))
}
