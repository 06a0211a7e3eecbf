package deadline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseBackoff(t *testing.T) {
	steps, ok := ParseBackoff("1s, 5s,2m")
	require.True(t, ok)
	require.Equal(t, []Millis{1000, 5000, 120_000}, steps)
	for _, wrong := range []string{"", "5", "1s,", "0s", "-1s", "90000h", strings.Repeat("1s,", MaxSteps) + "1s"} {
		_, ok := ParseBackoff(wrong)
		require.False(t, ok, wrong)
	}
}

func TestJitter(t *testing.T) {
	seen := map[Millis]bool{}
	for salt := range uint64(100) {
		m := Millis(10_000).Jitter(10, salt)
		require.GreaterOrEqual(t, m, Millis(10_000))
		require.Less(t, m, Millis(11_000))
		seen[m] = true
	}
	require.Greater(t, len(seen), 50)
	require.Equal(t, Millis(10_000), Millis(10_000).Jitter(0, 7))
}
