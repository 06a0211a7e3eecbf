package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfirmsInAnyOrder(t *testing.T) {
	c := newConfirms(10)
	c.add(10, 5)
	require.Equal(t, 1, c.confirm(7, false, false, 6))
	require.Equal(t, 0, c.confirm(7, false, false, 6), "again")
	require.Equal(t, 3, c.confirm(3, true, false, 6))
	require.Equal(t, 1, c.confirm(5, false, true, 6))
	require.Equal(t, 5, c.confirm(10, true, false, 6), "those between")
	require.EqualValues(t, 10, c.low)
	require.Equal(t, 1, c.nacked)
	require.EqualValues(t, 10, c.delays.count)
}

func TestConfirmsAreFullBehindAStraggler(t *testing.T) {
	c := newConfirms(1)
	for tag := range uint64(len(c.sent)/2 + 1) {
		require.False(t, c.full())
		c.add(1, 1)
		if tag > 0 {
			c.confirm(tag+1, false, false, 2)
		}
	}
	require.True(t, c.full())
	c.confirm(1, false, false, 2)
	require.False(t, c.full())
}

func TestHistogramKeepsTwoPercent(t *testing.T) {
	var h Histogram
	for d := range 100_000 {
		h.Record(time.Duration(d) * time.Microsecond)
	}
	for _, q := range []float64{0.01, 0.5, 0.99, 0.999} {
		want := time.Duration(q*100_000) * time.Microsecond
		require.InEpsilon(t, want, h.quantile(q), 0.02, q)
	}
	require.Equal(t, 99_999*time.Microsecond, h.quantile(1))
	for at := range 64*40 - 1 {
		require.Equal(t, at, bucket(bottom(at)))
		require.Equal(t, at, bucket(bottom(at+1)-1))
	}
	var more, none Histogram
	more.Record(-time.Second)
	more.Merge(&h)
	require.EqualValues(t, 100_001, more.count)
	require.Nil(t, none.Summary())
}

func TestShares(t *testing.T) {
	require.Equal(t, []int{1, 4}, portion(1, 3, 5))
	require.Equal(t, []int{2}, portion(7, 8, 5))
	require.Equal(t, []int{0}, portion(0, 1, 1))
}
