package alerts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/monitor/alert"
)

// TestEveryEventHasAdvice: the page says what to do about each, and about nothing else.
func TestEveryEventHasAdvice(t *testing.T) {
	for _, event := range alert.Events() {
		require.NotEmpty(t, advice[event], event)
	}
	require.Len(t, advice, len(alert.Events())+1, "no rule is about many alerts")
}
