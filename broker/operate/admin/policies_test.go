package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
)

// TestChangedPolicy: what a policy sets is said with the values of before and after.
func TestChangedPolicy(t *testing.T) {
	for _, one := range []struct{ was, to, says string }{
		{"", `{"max-length":5,"message-ttl":1000}`, "ttl (max-length 5, message-ttl 1000)"},
		{`{"message-ttl":1000,"dead-letter-exchange":"dlx","max-length":5}`, `{"message-ttl":500,"max-length":5}`, `ttl (dead-letter-exchange "dlx" → none, message-ttl 1000 → 500)`},
		{`{"max-length":5}`, `{"max-length":5}`, "ttl"},
		{`{"max-length":5}`, "", "ttl (max-length 5 → none)"},
	} {
		require.Equal(t, one.says, ChangedPolicy(operate.Change{Values: map[string]any{"policy": "ttl", "was": one.was, "to": one.to}}))
	}
	require.Empty(t, ChangedPolicy(operate.Change{}))
}
