package topology

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
	"curfew/broker/operate/messages"
)

// TestInstantsInMillis as a date, and none as a dash.
func TestInstantsInMillis(t *testing.T) {
	for due, want := range map[int64]string{1_893_456_000_000: "2030-01-01 00:00:00 UTC", 0: "–"} {
		for _, f := range messages.ListScheduled.Columns {
			if f.Kind != operate.Instant {
				continue
			}
			var text strings.Builder
			require.NoError(t, valueNode(&f, messages.ScheduledMessage{Due: due}).Render(&text))
			require.Contains(t, text.String(), want)
		}
	}
}
