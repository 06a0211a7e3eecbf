package amqp

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The estimate is what a table takes, at most a third too low and twice too high.
func TestFootprint(t *testing.T) {
	nested := func(depth int) Table {
		inner := Table{}
		for range depth {
			inner = Table{"t": inner}
		}
		return inner
	}
	for name, table := range map[string]Table{
		"empty":  {},
		"one":    {"x-message-ttl": int32(60000)},
		"text":   {"k": strings.Repeat("x", 10000)},
		"voids":  {"k": make([]any, 500)},
		"nested": nested(10),
		"queue":  {"x-message-ttl": int32(60000), "x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "dead", "x-queue-type": "quorum", "x-max-length": int64(1 << 40)},
		"array":  {"k": []any{int64(1 << 40), "text", Table{"a": "b"}, []byte("bytes"), 1.5}},
	} {
		encoded := AppendTable(nil, table)
		const copies = 2000
		kept := make([]Table, copies)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools held when the first began goes with the second
		runtime.ReadMemStats(&before)
		for i := range kept {
			var err error
			kept[i], _, err = ParseTable(encoded, Limits{})
			require.NoError(t, err)
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		got := (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / copies
		estimate := float64(table.Footprint())
		assert.Greater(t, estimate, got*2/3, name)
		assert.Less(t, estimate, got*2+16, name)
		clear(kept)
		runtime.KeepAlive(kept)
	}
	assert.Zero(t, Table(nil).Footprint())
}
