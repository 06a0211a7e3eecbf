package queues

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQueuesByTraffic: by either rate and, where none is worse than the other, by both.
func TestQueuesByTraffic(t *testing.T) {
	queue := func(name string, in, out float64) map[string]any {
		return map[string]any{"name": name, "in_rate": in, "out_rate": out}
	}
	list := []map[string]any{queue("idle", 0, 0), queue("sink", 5, 0), queue("busy", 3, 4), {"name": "new"}}
	for by, first := range map[string]string{"in": "sink", "out": "busy", "risk": "busy"} {
		require.Equal(t, first, slices.MinFunc(list, orders[by])["name"], by)
	}
}
