package deadline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRepeat(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1_700_000_000+int64(s), 0) }
	for _, c := range []struct {
		name   string
		times  []int // seconds
		look   int
		longer time.Duration
		want   bool
		count  int64
	}{
		{"never", nil, 0, 0, false, 0},
		{"four times", []int{0, 1, 2, 3}, 4, 0, false, 4},
		{"five times", []int{0, 1, 2, 3, 4}, 4, 4 * time.Second, true, 5},
		{"not for so long", []int{0, 1, 2, 3, 4}, 30, 10 * time.Second, false, 5},
		{"once in a minute, for hours", []int{0, 60, 120, 180, 240, 300, 360}, 361, 0, false, 7},
		{"often, then once in two minutes", []int{0, 1, 2, 3, 4, 120, 240}, 360, time.Minute, true, 7},
		{"over", []int{0, 1, 2, 3, 4}, 190, 0, false, 5},
		{"again, after it was over", []int{0, 1, 2, 3, 4, 190}, 190, 0, false, 1},
	} {
		var r Repeat
		for _, s := range c.times {
			r.Add(at(s))
		}
		require.Equal(t, c.want, r.GoesOn(at(c.look), c.longer), c.name)
		require.Equal(t, c.count, r.Count, c.name)
	}
}
