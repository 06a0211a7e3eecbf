package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
	"curfew/cmd/internal/cli"
)

func TestReadPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	for _, c := range []struct{ stdin, file, want string }{
		{"secret", "", "secret"}, {"secret\r\nmore", "", "secret"}, {" a b \n", "", " a b "}, {"ignored", file, "from a file"},
	} {
		var b userBody
		require.NoError(t, b.readPassword(strings.NewReader(c.stdin), c.file))
		assert.True(t, access.Verify(&access.User{PasswordHash: b.PasswordHash, Algorithm: b.Algorithm}, c.want), c.want)
	}
	var b userBody
	assert.ErrorAs(t, b.readPassword(strings.NewReader("\n"), ""), new(cli.UsageError))
	assert.ErrorIs(t, b.readPassword(nil, file+".none"), os.ErrNotExist)
}
