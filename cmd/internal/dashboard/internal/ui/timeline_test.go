package ui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/monitor"
)

// deadlines are Unix ms. share is what will become of them; nil: not known.
type deadlines struct {
	due   []int64
	share func(from int64) monitor.Share
}

func (all deadlines) PendingBefore(until, out []int64) []int64 {
	for _, at := range until {
		n := int64(0)
		for _, d := range all.due {
			if d <= at {
				n++
			}
		}
		out = append(out, n)
	}
	return out
}

func (all deadlines) Shares(at []int64, out []monitor.Share) []monitor.Share {
	for i := range len(at) - 1 {
		if all.share != nil {
			out = append(out, all.share(at[i]))
		}
	}
	return out
}

const now = 1_000_000

func TestTimeline(t *testing.T) {
	due := deadlines{due: []int64{now - 5, now + 1, now + 500, now + 30_000, now + 59_999, now + 3_600_000}}
	line := NewTimeline(due, now, 6, "1 min")
	require.Equal(t, "1 min", line.Window)
	require.EqualValues(t, 1, line.Held)
	require.EqualValues(t, 4, line.Inside)
	require.EqualValues(t, 1, line.Later)
	require.False(t, line.Forecast)
	require.Len(t, line.bars, 60)
	require.EqualValues(t, 2, line.bars[0].count)
	require.Equal(t, "2 messages due in 0 ms to 1 s", line.bars[0].label())
	require.Equal(t, []string{"now", "+15 s", "+30 s", "+45 s", "+1 min"}, line.ticks)

	require.Equal(t, "1 h", NewTimeline(due, now, 6, "").Window, "the shortest that has nine in ten")
	require.Equal(t, "2 min", NewTimeline(deadlines{due: []int64{now + 120_000}}, now, 1, "").Window, "no longer than the deadlines")
	require.Equal(t, "30 d", NewTimeline(deadlines{}, now, 6, "").Window)
	require.Equal(t, "15 min", NewTimeline(deadlines{}, now, 0, "nonsense").Window)
	require.Equal(t, "15 min", NewTimeline(deadlines{due: []int64{now - 1}}, now, 1, "").Window, "held ones are in no span")
}

// TestWindowsAreRound: bars and ticks divide each span, and one more bar than spans is never drawn.
func TestWindowsAreRound(t *testing.T) {
	require.Equal(t, []string{"1 min", "2 min", "5 min"}, Windows("2 min")[:3])
	require.Equal(t, []string{"1 min", "5 min"}, Windows("1 h")[:2])
	for _, w := range windows {
		require.Zero(t, w.span%w.bar, w.name)
		require.Zero(t, w.span%w.tick, w.name)
		require.Zero(t, w.tick%w.bar, w.name)
		line := NewTimeline(deadlines{}, now, 0, w.name)
		require.Len(t, line.bars, int(w.span/w.bar), w.name)
		require.Len(t, line.ticks, int(w.span/w.tick)+1, w.name)
	}
}

// TestTimelineIsStacked: each bar has what will become of its deadlines, and leads to them.
func TestTimelineIsStacked(t *testing.T) {
	due := deadlines{share: func(from int64) monitor.Share {
		if from < now+30_000 {
			return monitor.Share{}
		}
		return monitor.Share{AtRisk: 0.25, NearlyDue: 0.5}
	}}
	for i := range int64(4) {
		due.due = append(due.due, now+10_000+i, now+40_001+i, now-i)
	}
	line := NewTimeline(due, now, 12, "")
	require.Equal(t, "1 min", line.Window)
	require.EqualValues(t, 4, line.Held)
	require.EqualValues(t, 8, line.Inside)
	require.EqualValues(t, 2, line.nearlyDue)
	require.EqualValues(t, 1, line.atRisk)
	require.Equal(t, bar{from: now + 40_000, to: now + 41_000, in: 40_000_000_000, until: 41_000_000_000, count: 4, atRisk: 1, nearlyDue: 2}, line.bars[40])
	var page strings.Builder
	require.NoError(t, line.Draw(func(from, to int64) string { return "/d?" + strings.Repeat("x", int(to-from)/500) }).Render(&page))
	for _, want := range []string{
		`class="expires"`, `class="risk"`, `class="safe"`, `class="held"`, `<a href="/d?xx"`, "4 messages due in 40 s to 41 s, 3 at risk, of these 2 nearly due",
		`<b>5</b> not at risk`, `<b>3</b> at risk`, `<b>2</b> of these nearly due`, `<b>4</b> held past their deadline`, `<td data-label="Due in"><a`, "<th>Due in</th>",
	} {
		require.Contains(t, page.String(), want)
	}
	page.Reset()
	require.NoError(t, line.Draw(nil).Render(&page))
	require.NotContains(t, page.String(), "<a")
	page.Reset()
	line.atRisk = 0
	require.NoError(t, line.sums().Render(&page))
	require.Contains(t, page.String(), `<b>2</b> at risk, all nearly due`)
	require.NotContains(t, page.String(), "of these")
}

// TestTimelineAgrees: the sums are those of the forecast, whatever the shares of the bars are rounded to.
func TestTimelineAgrees(t *testing.T) {
	due := deadlines{share: func(int64) monitor.Share { return monitor.Share{AtRisk: 0.3, NearlyDue: 0.3} }}
	for i := range int64(50) {
		due.due = append(due.due, now+1000*i+1)
	}
	line := NewTimeline(due, now, 50, "1 min")
	require.Zero(t, line.atRisk, "each bar has one, and 0.3 is rounded down")
	line.Agree(14, 17)
	require.EqualValues(t, 14, line.atRisk)
	require.EqualValues(t, 17, line.nearlyDue)
	sums := [3]int64{}
	for _, b := range line.bars {
		require.GreaterOrEqual(t, b.safe(), int64(0))
		sums[0], sums[1], sums[2] = sums[0]+b.safe(), sums[1]+b.atRisk, sums[2]+b.nearlyDue
	}
	require.Equal(t, [3]int64{19, 14, 17}, sums)
	require.EqualValues(t, now+60_000, line.End)
	unknown := NewTimeline(deadlines{due: due.due}, now, 50, "1 min")
	unknown.Agree(1, 1)
	require.Zero(t, unknown.atRisk)
}
