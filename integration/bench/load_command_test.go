package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/integration/bench/load"
)

// TestLoadPrintsTableAndJSON: with the relay as the broker.
func TestLoadPrintsTableAndJSON(t *testing.T) {
	b := &bench{dir: t.TempDir()}
	defer b.close()
	side, err := b.relay()
	require.NoError(t, err)
	run := func(args ...string) (string, error) {
		command := loadCommand()
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&bytes.Buffer{})
		command.SetArgs(append(args, "--url", side.broker.url, "--duration", "30s", "--count", "1000"))
		err := command.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run("--warmup", "0s")
	require.NoError(t, err)
	require.Contains(t, out, "consumed")
	out, err = run("--json")
	require.NoError(t, err)
	var r load.Result
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.EqualValues(t, 1000, r.TotalConsumed)
	_, err = run("--ack", "never")
	require.ErrorContains(t, err, `ack "never" is not one of ["auto" "each" "multiple"]`)
}
