package contexts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestContextsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curfew", "contexts.yaml")
	c, err := Load(path)
	require.NoError(t, err, "a file that does not exist has no contexts")
	want := Context{URL: "https://curfew:15672", User: "ops", PasswordCommand: "echo secret"}
	require.NoError(t, c.Set("prod", want))
	require.NoError(t, c.Use("prod"))
	require.NoError(t, c.Save(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again, err := Load(path)
	require.NoError(t, err)
	assert.Equal(t, c, again)

	require.NoError(t, again.Remove("prod"))
	assert.Empty(t, again.Current)
	assert.EqualError(t, again.Remove("prod"), `unknown context "prod": want one of default`)
	assert.EqualError(t, c.Use("prdo"), `unknown context "prdo": want one of default, prod`)
	assert.Equal(t, "prod", c.Current)
	require.NoError(t, c.Use(Default))
	assert.Empty(t, c.Current)
}

// TestEmptyFiles: somebody emptied the file, or began to write it by hand.
func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "contexts:\n", "# none yet\n"} {
		path := filepath.Join(t.TempDir(), "contexts.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		c, err := Load(path)
		require.NoError(t, err)
		require.NoError(t, c.Set("prod", Context{URL: "https://curfew:15672", User: "ops", PasswordCommand: "echo secret"}))
	}
}

func TestWrongContexts(t *testing.T) {
	for want, c := range map[string]Context{
		"--url: want the address":        {URL: "curfew:15672", User: "guest"},
		"the URL has a user in it":       {URL: "http://u:p@curfew", User: "guest"},
		"not both":                       {URL: "http://curfew", User: "ops", PasswordFile: "f", PasswordCommand: "c"},
		"the password of ops is missing": {URL: "http://curfew", User: "ops"},
	} {
		assert.ErrorContains(t, (&Contexts{}).Set("prod", c), want)
	}
	for _, name := range []string{"", "default", "a b", "../x", "-x"} {
		assert.ErrorContains(t, (&Contexts{}).Set(name, Context{URL: "http://curfew", User: "guest"}), "cannot be named")
	}
}

// TestAFileThatOthersMayWriteIsRefused: it names commands.
func TestAFileThatOthersMayWriteIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.yaml")
	require.NoError(t, os.WriteFile(path, []byte("contexts: {}\n"), 0o600))
	require.NoError(t, os.Chmod(path, 0o622))
	_, err := Load(path)
	assert.ErrorContains(t, err, "chmod 600")
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte("contxts: {}\n"), 0o600))
	_, err = Load(path)
	assert.ErrorContains(t, err, "contxts")
}

func TestPasswords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("from file\r\nsecond line\n"), 0o600))
	for want, c := range map[string]Context{
		"from file":    {PasswordFile: file},
		"from command": {PasswordCommand: "echo from command; echo more"},
		"guest":        {User: "guest"},
	} {
		got, err := c.Password()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := (&Context{PasswordCommand: "exit 3"}).Password()
	assert.ErrorContains(t, err, "exit status 3")
	_, err = (&Context{PasswordFile: file + "x"}).Password()
	assert.ErrorIs(t, err, os.ErrNotExist)
}
