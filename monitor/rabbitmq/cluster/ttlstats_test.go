package cluster

import (
	"testing"

	"curfew/broker/deadline"

	"github.com/stretchr/testify/require"
)

func TestTimeToLive(t *testing.T) {
	for text, want := range map[string]deadline.Millis{"": -1, "0": 0, "1500": 1500, "x": -1, "-5": -1, "99999999999999": -1, "99999999999999999999999": -1} {
		require.Equal(t, want, TimeToLive(text), text)
	}
}

func TestTTLStats(t *testing.T) {
	var a, b TTLStats
	for _, ttl := range []deadline.Millis{-1, 500, 3000, 0} {
		a.Add(ttl, 1000)
	}
	require.Equal(t, TTLStats{Messages: 4, Expiring: 3, Shorter: 2, Least: 0, Most: 3000}, a)
	require.Equal(t, a, b.Plus(a), "no message has the lowest time to live")
	require.Equal(t, a, a.Plus(b))
	b.Add(9000, -1)
	require.Equal(t, TTLStats{Messages: 5, Expiring: 4, Shorter: 2, Least: 0, Most: 9000}, a.Plus(b))
}
