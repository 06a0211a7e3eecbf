package commands

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNewPasswords are read from the first line of a file or of standard input, and never empty. What they are is not sent, but their hash.
func TestNewPasswords(t *testing.T) {
	r := startRunning(t)
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("from a file\r\nmore"), 0o600))
	r.ok("user", "add", "app", "--tags", "monitoring,other", "--new-password-file", file)
	status, _ := r.askAs("app", "from a file", "GET", "/api/overview", "", nil)
	assert.Equal(t, 200, status)
	assert.Equal(t, "NAME   TAGS\napp    monitoring,other\nguest  administrator\n", r.ok("user", "list"))
	assert.NotContains(t, r.ok("user", "list", "-o", "json"), "hash")
	require.NoError(t, os.WriteFile(file, []byte("changed"), 0o600))
	r.ok("user", "passwd", "app", "--new-password-file", file)
	status, _ = r.askAs("app", "changed", "GET", "/api/overview", "", nil)
	assert.Equal(t, 200, status)
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	code, _, notes := runCommand(t, append([]string{"user", "passwd", "app", "--new-password-file", file}, r.flags...)...)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, notes, "the password is empty")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	assert.Contains(t, r.fails("user", "passwd", "app", "--new-password-file", file+".none"), "no such file")
	assert.Contains(t, r.fails("user", "passwd", "none", "--new-password-file", file), "HTTP 404")
	r.ok("user", "tags", "app", "policymaker")
	r.ok("user", "permissions", "set", "app", "", "a", ".*")
	assert.Equal(t, "VHOST  USER   CONFIGURE  WRITE  READ\n/      app               a      .*\n/      guest  .*         .*     .*\n", r.ok("user", "permissions", "list"))
	r.ok("user", "limits", "set", "app", "max-connections", "7")
	assert.Equal(t, "USER  VALUE\napp   {\"max-connections\":7}\n", r.ok("user", "limits", "list"))
}
