package commands

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/cmd/load"
)

func TestBenchSpeaksTableAndJSON(t *testing.T) {
	url := startServe(t).line(t, "AMQP")
	code, out, stderr := runCommand(t, "bench", "--url", url, "--duration", "30s", "--count", "1000", "--warmup", "0s", "--confirm-window", "10")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "consumed")
	require.Contains(t, out, "confirm after")

	code, out, stderr = runCommand(t, "bench", "--url", url, "--duration", "30s", "--count", "1000", "--json")
	require.Zero(t, code, stderr)
	var r load.Result
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.EqualValues(t, 1000, r.TotalConsumed)

	code, out, stderr = runCommand(t, "bench", "deadlines", "--url", url, "--rate", "1000", "--duration", "100ms", "--min-ttl", "10ms", "--max-ttl", "50ms")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "100, missing 0, early 0")
	require.Contains(t, out, "lateness, from the confirm")

	code, _, stderr = runCommand(t, "bench", "--url", url, "--ack", "never")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `ack "never" is not one of ["auto" "each" "multiple"]`)
}
