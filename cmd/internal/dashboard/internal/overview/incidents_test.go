package overview

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/monitor/incident"
)

// TestOneEnd: how long an incident lasted is the same on both pages.
func TestOneEnd(t *testing.T) {
	ended := time.Now()
	over := []incident.Incident{{Summary: "Redis was away", Since: ended.Add(-123_456 * time.Millisecond), Ended: &ended}}
	var first, second strings.Builder
	require.NoError(t, (&overview{Over: over}).verdicts().Render(&first))
	require.Contains(t, first.String(), " UTC, after 2 min 3 s: ")
	require.NoError(t, (&page{Overview: incident.Overview{Over: over}}).over().Render(&second))
	require.Contains(t, second.String(), ">2 min 3 s</td>")
}
