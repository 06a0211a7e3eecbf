package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelseyhightower/envconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// envconfig decides what a variable is called.
func TestVariablesAreNamedAsEnvconfigReadsThem(t *testing.T) {
	var names strings.Builder
	require.NoError(t, envconfig.Usagef(prefix, new(Settings), &names, "{{range .}}{{usage_key .}} {{end}}"))
	var ours []string
	for _, s := range variablesOf(new(Settings)) {
		ours = append(ours, s.name)
	}
	assert.Equal(t, strings.Fields(names.String()), ours)
}

func TestEveryFieldIsDescribed(t *testing.T) {
	for _, s := range variablesOf(new(Settings)) {
		assert.NotEmpty(t, s.desc, s.name)
		assert.NotEmpty(t, s.group, s.name)
		assert.NotContains(t, s.desc, "|", "%s: would break the table", s.name)
	}
}

func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	password, redis, sinks := file("p", "s3cret\n"), file("r", "redis://:x@h:1\r\n"), file("w", "ntfy://h/t")
	setenv(t, "CURFEW_PASSWORD_FILE="+password, "CURFEW_REDIS_URL_FILE="+redis, "CURFEW_ALERT_URLS_FILE="+sinks)
	c, err := Load()
	require.NoError(t, err)
	assert.EqualValues(t, "s3cret", c.Password)
	assert.EqualValues(t, "redis://:x@h:1", c.RedisURL)
	assert.EqualValues(t, "ntfy://h/t", c.AlertUrls)

	setenv(t, "CURFEW_PASSWORD_FILE="+password, "CURFEW_PASSWORD=p")
	_, err = Load()
	assert.ErrorContains(t, err, "CURFEW_PASSWORD and CURFEW_PASSWORD_FILE are both set")

	setenv(t, "CURFEW_PASSWORD_FILE="+dir+"/absent")
	_, err = Load()
	assert.ErrorContains(t, err, "CURFEW_PASSWORD_FILE: open")

	setenv(t, "CURFEW_PASSWORD_FILE="+file("empty", "\n"))
	_, err = Load()
	assert.ErrorContains(t, err, "CURFEW_PASSWORD_FILE: the value (a secret, not shown) is invalid: want a text that is not empty")

	setenv(t, "CURFEW_REDIS_URL_FILE="+sinks)
	_, err = Load()
	assert.ErrorContains(t, err, "CURFEW_REDIS_URL_FILE: the value (a secret, not shown) is invalid")
}

func TestAliases(t *testing.T) {
	setenv(t, "RABBITMQ_DEFAULT_USER=ann", "RABBITMQ_DEFAULT_PASS=pw", "RABBITMQ_DEFAULT_VHOST=/")
	c, err := Load()
	require.NoError(t, err)
	assert.Equal(t, []string{"ann", "pw"}, []string{c.User, c.Password})

	t.Setenv("CURFEW_USER", "bob")
	t.Setenv("CURFEW_PASSWORD", "own")
	c, err = Load()
	require.NoError(t, err)
	assert.Equal(t, []string{"bob", "own"}, []string{c.User, c.Password}, "our own name goes first")
}
