package letters

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
)

// TestLikely: whether what is replayed is consumed in time depends on what waits there, and how fast it goes.
func TestLikely(t *testing.T) {
	of := map[string]*deadline.Forecast{
		"slow": {Ready: 100, Rate: 0.5}, "fast": {Ready: 100, Rate: 50}, "stuck": {Ready: 1}, "between": {Ready: 10, Rate: 1}, "empty": {},
	}
	p := &plan{Forecast: func(_, queue string) *deadline.Forecast { return of[queue] }}
	for queue, want := range map[string]string{
		"slow":    " 100 messages are already waiting there, and 0.5 a second are consumed. At that rate it takes 3 min 40 s: that is too late, so add consumers or let the messages live longer.",
		"fast":    " 100 messages are already waiting there, and 50 a second are consumed. At that rate it takes 2.2 s: that is in time.",
		"stuck":   " 1 message is already waiting there, and none is consumed at present: expect them back.",
		"between": " 10 messages are already waiting there, and 1.0 a second are consumed. At that rate it takes 20 s: for some of them that is too late.",
		"empty":   "", "unknown": "",
	} {
		require.Equal(t, want, p.likely(&deadletters.Target{Queue: queue, Messages: 10, FirstMillis: 15_000, LastMillis: 15_000}), queue)
	}
}
