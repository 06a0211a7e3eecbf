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

// TestConfigRefusesWhatServeRefuses: with the same words and the same exit code, without a socket or the data folder.
func TestConfigRefusesWhatServeRefuses(t *testing.T) {
	const primary = "CURFEW_PRIMARY_URL=amqp://127.0.0.1:1"
	for _, wrong := range [][]string{
		{"CURFEW_AMQPS_ADDR=127.0.0.1:0"}, {"CURFEW_HTTPS_ADDR=127.0.0.1:0"}, {"CURFEW_TLS_CLIENT_AUTH=require"},
		{"CURFEW_TLS_CERT=/nonexistent", "CURFEW_TLS_KEY=/nonexistent"},
		{"CURFEW_DEFINITIONS=/nonexistent"}, {"CURFEW_SERVICEBUS_CONFIG=/nonexistent"},
		{primary, "CURFEW_WATCH=/nonexistent.yaml"},
		{"CURFEW_OPS_ADDR=127.0.0.1:5", "CURFEW_HTTP_ADDR=:5"},
	} {
		t.Run(strings.Join(wrong, " "), func(t *testing.T) {
			setenv(t, append([]string{"CURFEW_DATA_DIR=", "CURFEW_AMQP_ADDR=127.0.0.1:0", "CURFEW_HTTP_ADDR=127.0.0.1:0", "CURFEW_OPS_ADDR=127.0.0.1:0"}, wrong...)...)
			code, _, errOut := runCommand(t, "config")
			require.NotZero(t, code)
			serveCode, _, serveErrOut := runCommand(t, "serve")
			assert.Equal(t, serveCode, code)
			assert.Equal(t, lastLine(serveErrOut), errOut)
		})
	}
}

// lastLine is without the log before it.
func lastLine(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return lines[len(lines)-2]
}

func TestConfigMarkdownNeedsNoEnvironment(t *testing.T) {
	setenv(t, "CURFEW_MONITOR=perhaps")
	code, out, _ := runCommand(t, "config", "--markdown")
	assert.Zero(t, code)
	var tables strings.Builder
	require.NoError(t, settings.WriteMarkdown(&tables))
	assert.Equal(t, tables.String(), out)
}
