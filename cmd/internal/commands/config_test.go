package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/settings"
)

func TestConfigCommandRedactsSecrets(t *testing.T) {
	setenv(t, "CURFEW_PASSWORD=s3cret", "CURFEW_REDIS_URL=rediss://ann:s3cret@h:6379/2?client_name=s3cret",
		"CURFEW_ALERT_URLS=webhook+https://ann:s3cret@hooks.example/s3cret?k=s3cret,ntfy://s3cret/s3cret", "CURFEW_LOG_LEVEL=warn")
	code, out, errOut := runCommand(t, "config")
	require.Zero(t, code, errOut)
	assert.NotContains(t, out+errOut, "s3cret")
	for _, want := range []string{"********", "rediss://h:6379/2 ", "webhook+https:...,ntfy:... ", "warn"} {
		assert.Contains(t, out, want)
	}
}

func TestConfigCommandRefusesWrongValues(t *testing.T) {
	setenv(t, "CURFEW_MONITOR=perhaps")
	code, _, errOut := runCommand(t, "config")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, `CURFEW_MONITOR: "perhaps" is invalid: want true or false`)
}

// TestConfigCommandChecksTheAlertsFile: the error names the line, the field and what is allowed there.
func TestConfigCommandChecksTheAlertsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(file, []byte("sinks:\n  chat: {url: 'slack://nonsense'}\nrules:\n  - to: [mail]\n"), 0o600))
	setenv(t, "CURFEW_ALERTS="+file)
	code, _, errOut := runCommand(t, "config")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, file+":2: sinks.chat: url: slack: ")
	assert.Contains(t, errOut, file+`:4: rules[0].to: unknown sink "mail": want one of log`)
	assert.NotContains(t, errOut, "nonsense")
}

func TestConfigMarkdownNeedsNoEnvironment(t *testing.T) {
	setenv(t, "CURFEW_MONITOR=perhaps")
	code, out, _ := runCommand(t, "config", "--markdown")
	assert.Zero(t, code)
	var tables strings.Builder
	require.NoError(t, settings.WriteMarkdown(&tables))
	assert.Equal(t, tables.String(), out)
}
