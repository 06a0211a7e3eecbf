package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

func TestOutlook(t *testing.T) {
	const second = 1_000_000
	now := deadline.Instant(5_000_000 * second)
	o := NewOutlook(now)
	o.Add(now-second, 1, AtRisk) // it is due
	o.Add(now+30*second, 3, Safe)
	o.Add(now+30*second, 1, NearlyDue)
	o.Add(now+30*second+100_000, 1, AtRisk) // not to be told apart from the others at that distance
	o.Add(now+7200*second, 2, NearlyDue)
	o.Add(now+1<<60, 1, AtRisk)
	at := []deadline.Instant{now, now + second, now + 20*second, now + 40*second, now + 3600*second, now + 7300*second}
	require.Equal(t, []Share{{1, 0}, {1, 0}, {0.2, 0.2}, {0.2, 0.2}, {0, 1}}, o.Shares(at, nil))
	previous := -1
	for in := deadline.Instant(0); in < 1<<50; in += 1000 + in/100 {
		c := o.cell(now + in)
		require.GreaterOrEqual(t, c, previous)
		require.Less(t, c, cells)
		previous = c
	}
}
