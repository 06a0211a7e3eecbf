package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefinitionsCommands(t *testing.T) {
	start := filepath.Join(t.TempDir(), "start.json")
	require.NoError(t, os.WriteFile(start, []byte(`{"vhosts":[{"name":"a/b"}],"permissions":[{"user":"guest","vhost":"a/b","configure":".*","write":".*","read":".*"}],
		"queues":[{"name":"q","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}]}`), 0o600))
	r := startRunning(t, "DEFINITIONS="+start)
	file := filepath.Join(t.TempDir(), "out.json")
	r.ok("definitions", "export", file)
	var exported map[string]any
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &exported))
	assert.Len(t, exported["queues"], 1, "imported at the start")
	assert.JSONEq(t, string(text), r.ok("definitions", "export"))
	assert.Equal(t, "no difference\n", r.ok("definitions", "diff", file))

	assert.Contains(t, r.exits(exitUsage, "definitions", "export", file, "other"), "curfew definitions export takes")

	more := filepath.Join(t.TempDir(), "more.json")
	require.NoError(t, os.WriteFile(more, []byte(`{"queues":[{"name":"more","durable":true}]}`), 0o600))
	r.ok("definitions", "import", more, "--vhost", "a/b")
	assert.Contains(t, r.ok("definitions", "export", "--vhost", "a/b"), `"more"`)
	message := r.fails("definitions", "diff", more)
	assert.Contains(t, message, "1 differences")
	require.NoError(t, os.WriteFile(more, []byte(`{"queues":[{"name":"fine","vhost":"/"},{"name":"wrong","vhost":"/","arguments":{"x-max-length":-1}}]}`), 0o600))
	assert.Contains(t, r.fails("definitions", "import", more), "invalid arg 'x-max-length' for queue 'wrong' in vhost '/': {value_negative,-1} (HTTP 400)")
	assert.NotContains(t, r.ok("definitions", "export"), `"fine"`, "nothing is taken of a wrong file")
	require.NoError(t, os.WriteFile(more, []byte(`{`), 0o600))
	assert.Contains(t, r.fails("definitions", "import", more), "more.json: definitions: not a JSON object")
}

func TestWrongDefinitionsStopTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"queues":[{"name":"q","vhost":"nope"}]}`), 0o600))
	code, _, errOut := runBinary(t, []string{"serve"}, "AMQP_ADDR=127.0.0.1:0", "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "DATA_DIR=", "DEFINITIONS="+file)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "with CURFEW_DEFINITIONS="+file+": queue 'q' is in virtual host 'nope', which does not exist")
}
