package commands

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/monitor/alert"
)

// alertsFile writes an alerts.yaml.
func alertsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestAlertCommands: a missed deadline is listed, silenced and unsilenced; the dead man's switch calls its URL.
func TestAlertCommands(t *testing.T) {
	var beats atomic.Int64
	beat := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { beats.Add(1) }))
	t.Cleanup(beat.Close)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	r := startRunning(t, "ALERTS="+alertsFile(t, "deadManSwitch: {url: "+beat.URL+"}"), "ALERT_URLS=webhook+"+hook.URL)
	conn, err := amqp091.Dial(r.amqp)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("orders", false, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", "orders", false, false, amqp091.Publishing{Expiration: "1"}))
	listed := func(what string) func() bool {
		return func() bool { return strings.Contains(r.ok("alert", "ls"), what) }
	}
	require.Eventually(t, listed("CurfewDeadlineMissed"), time.Minute, 20*time.Millisecond)
	require.Eventually(t, listed("firing "), time.Minute, 20*time.Millisecond)

	id := strings.TrimSpace(r.ok("alert", "silence", "--queue", "ord*", "--for", "1h", "--comment", "migration"))
	list := r.ok("alert", "ls")
	assert.Contains(t, list, "silenced")
	assert.Contains(t, list, "silence "+id)
	assert.Contains(t, list, "by guest", "who made it")
	assert.Contains(t, list, "queue ord*")
	var all struct{ Silences []alert.Silence }
	require.NoError(t, json.Unmarshal([]byte(r.ok("alert", "ls", "-o", "json")), &all))
	require.Len(t, all.Silences, 1)
	assert.Equal(t, "migration", all.Silences[0].Comment)
	r.ok("alert", "unsilence", id)
	assert.NotContains(t, r.ok("alert", "ls"), id)
	assert.Contains(t, r.fails("alert", "unsilence", id), "no such silence")
	assert.Contains(t, r.fails("alert", "silence", "--event", "late", "--for", "1h"), "unknown event")
	code, _, errOut := runCommand(t, append([]string{"alert", "silence", "--for", "1h"}, r.flags...)...)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "--all silences everything")
	assert.Equal(t, "webhook: ok\n", r.ok("alert", "test", "--running"))
	require.Eventually(t, func() bool { return beats.Load() > 0 }, time.Minute, 20*time.Millisecond)
}

// TestAlertRulesWithAMistake: a mistake in the alerts file does not stop the broker from serving; the status reports it.
func TestAlertRulesWithAMistake(t *testing.T) {
	file := alertsFile(t, "rules:\n  - severity: fatal\n")
	r := startRunning(t, "ALERTS="+file)
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}} {
		code, out, errOut := runCommand(t, append(args, r.flags...)...)
		assert.Equal(t, exitUnhealthy, code, errOut)
		assert.Contains(t, out, "every event goes to every sink")
		assert.Contains(t, out, file+":2: rules[0].severity")
	}
	assert.Contains(t, r.ok("alert", "ls"), "every event goes to every sink")
	setenv(t, "CURFEW_ALERTS="+file)
	code, _, errOut := runCommand(t, "alert", "rules")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "want critical or error or warning or info")
}

// TestAlertTestNeedsNoServer: the settings are enough; a sink that fails is named, its secret is not shown.
func TestAlertTestNeedsNoServer(t *testing.T) {
	posts := 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts++
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(hook.Close)
	setenv(t)
	code, out, _ := runCommand(t, "alert", "test")
	assert.Zero(t, code)
	assert.Contains(t, out, "no sink but the log")
	setenv(t, "CURFEW_ALERT_URLS=webhook+"+hook.URL+",generic+"+hook.URL+"/broken,amqp:curfew.events")
	code, out, errOut := runCommand(t, "alert", "test")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "webhook: ok\n")
	assert.Contains(t, out, "generic: alert: send: ")
	assert.Contains(t, out, "amqp: skipped")
	assert.NotContains(t, out+errOut, "broken")
	assert.Equal(t, 3, posts)
	code, out, _ = runCommand(t, "alert", "test", "--sink", "webhook")
	assert.Zero(t, code, out)
	code, _, errOut = runCommand(t, "alert", "test", "--sink", "team")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, `unknown sink "team": want one of log, webhook, generic, amqp`)
}

func TestAlertRules(t *testing.T) {
	file := alertsFile(t, "rules: [{name: quiet, queue: delay*, to: []}]")
	setenv(t, "CURFEW_ALERTS="+file)
	code, out, errOut := runCommand(t, "alert", "rules")
	require.Zero(t, code, errOut)
	assert.Regexp(t, `(?m)^quiet +\* +\* +delay\* +log +- +1, 0s late$`, out)
	assert.Regexp(t, `(?m)^default +\*`, out)
	require.NoError(t, os.WriteFile(file, []byte("rules:\n  - severity: fatal"), 0o600))
	code, _, errOut = runCommand(t, "alert", "rules")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, file+`:2: rules[0].severity: "fatal" is invalid`)
}
