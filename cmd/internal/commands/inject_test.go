package commands

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInjectWarnsOfMessagesThatGoWithThePod: on standard error, since standard output is for kubectl.
func TestInjectWarnsOfMessagesThatGoWithThePod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	require.NoError(t, os.WriteFile(file, []byte("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}]}\n"), 0o600))
	code, out, errOut := runCommand(t, "inject", "-f", file)
	assert.Zero(t, code)
	assert.Contains(t, errOut, file+": Pod p: its messages are on an emptyDir")
	assert.NotContains(t, out, "its messages are on")

	code, out, errOut = runCommand(t, "inject", "-f", file, "--claim", "messages")
	assert.Zero(t, code)
	assert.Contains(t, out, "claimName: messages")
	assert.Empty(t, errOut)

	code, _, errOut = runCommand(t, "inject", "-f", file, "-f", file, "--claim", "messages")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, `claim "messages": Pod p already uses it`)
}
