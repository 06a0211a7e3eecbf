package audit

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is appended is what the standard library would write.
func TestInstantsAreAsTheLayoutSays(t *testing.T) {
	at := []int64{0, 1, 10, 999, 1000, 1_799_999_999_999, -1, -1001}
	for range 1000 {
		at = append(at, rand.Int64N(1<<42))
	}
	for _, ms := range at {
		want := "x" + time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		require.Equal(t, want, string(instant(ms).append([]byte("x"))))
		var back instant
		require.NoError(t, back.UnmarshalText([]byte(want[1:])))
		require.EqualValues(t, ms, back)
	}
}

func TestStringsAreJSON(t *testing.T) {
	pieces := []string{"", "q", "orders.eu", `"`, `\`, "\n", "\x00", "\x1f", "ä", "€", "😀", "\xff", "\xc3", "\x7f", "<", "\u2028"}
	for _, a := range pieces {
		for _, b := range pieces {
			for _, c := range pieces {
				s := a + b + c
				var got string
				require.NoError(t, json.Unmarshal(appendString(nil, s), &got), "%q", s)
				var want string
				text, err := json.Marshal(s)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, &want))
				assert.Equal(t, want, got)
				assert.Equal(t, appendString(nil, s), appendString(nil, []byte(s)))
			}
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	r := Record{
		At: 1_799_999_999_999, Deadline: 1_799_999_999_998, VHost: "/", Queue: "orders", MessageID: []byte("8f14e45f-ceea"), Path: "eager",
		Outcome: "dead_lettered", RoutingKey: []byte("orders.dead"), To: []string{"orders.dead"},
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = r.appendJSON(buf[:0])
	}
}
