package commands

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/integration/pages"
	"curfew/monitor/incident"
)

// alertsFile writes an alerts.yaml.
func alertsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestIncidentCommands: a missed deadline is listed, acknowledged, and quiet in a maintenance window; the dead man's switch calls its URL.
func TestIncidentCommands(t *testing.T) {
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
		return func() bool { return strings.Contains(r.ok("incident", "ls"), what) }
	}
	require.Eventually(t, listed("Messages expire unconsumed: orders (vhost /): 1 message lost (expired)"), time.Minute, 20*time.Millisecond)

	var all incident.Overview
	require.NoError(t, json.Unmarshal([]byte(r.ok("incident", "ls", "-o", "json")), &all))
	require.Equal(t, incident.Failing, all.Verdict)
	all.Incidents = slices.DeleteFunc(all.Incidents, func(i incident.Incident) bool { return slices.Contains(ofTheMachine, i.Condition) })
	require.Len(t, all.Incidents, 1)
	id := all.Incidents[0].ID
	assert.Contains(t, r.ok("incident", "show", id), " curfew queue show orders --vhost /\n")
	r.ok("incident", "ack", id, "--for", "1h", "--comment", "on it")
	assert.Regexp(t, id+` +critical, acknowledged by guest `, r.ok("incident", "ls"))
	r.ok("incident", "unack", id)
	assert.NotContains(t, r.ok("incident", "ls"), "acknowledged")
	assert.Contains(t, r.fails("incident", "ack", "none"), "no such incident")
	assert.Contains(t, r.exits(exitUsage, "incident", "ack"), "curfew incident ack takes <incident>...")

	window := strings.TrimSpace(r.ok("incident", "maintenance", "--queue", "ord*", "--for", "1h", "--comment", "migration"))
	list := r.ok("incident", "ls")
	assert.Regexp(t, window+` +maintenance .* queue ord\*, by guest, migration`, list)
	require.Eventually(t, listed("critical, in maintenance"), time.Minute, 20*time.Millisecond)
	r.ok("incident", "end-maintenance", window)
	assert.NotContains(t, r.ok("incident", "ls"), window)
	assert.Contains(t, r.fails("incident", "end-maintenance", window), "no such incident or maintenance window: \""+window+"\"; curfew incident ls")
	assert.Contains(t, r.fails("incident", "maintenance", "--condition", "late", "--for", "1h"), "unknown condition")
	code, _, errOut := runCommand(t, append([]string{"incident", "maintenance", "--for", "1h"}, r.flags...)...)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "--all covers everything")
	assert.Equal(t, "webhook: ok\n", r.ok("incident", "test", "--running"))
	require.Eventually(t, func() bool { return beats.Load() > 0 }, time.Minute, 20*time.Millisecond)
}

// TestConditionsNameRealCommands: what an incident says to type exists.
func TestConditionsNameRealCommands(t *testing.T) {
	for _, c := range incident.Conditions {
		t.Run(c.Name, func(t *testing.T) {
			holdExample(t, strings.NewReplacer("{queue}", "orders", "{vhost}", "/").Replace(c.Command))
		})
	}
}

// TestTheAdviceWorks: the commands that an incident names give parked dead letters an exchange and a queue, and a queue without a dead-letter
// exchange one, whether a policy governs it or not.
func TestTheAdviceWorks(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	commands := func(queue, known string) {
		var list string
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			list = r.ok("incident", "show")
			assert.Contains(c, list, known)
		}, time.Minute, 20*time.Millisecond)
		_, after, _ := strings.Cut(list, known)
		line, _, _ := strings.Cut(after, "`")
		script, err := pages.ParseScript(known+line, map[string]string{})
		require.NoError(t, err, line)
		require.Greater(t, len(script.Commands), 1, line)
		for _, c := range script.Commands {
			r.ok(arguments(c.Words)...)
		}
		before := strings.Count(r.ok("queue", "peek", queue+".dead", "-n", "100"), "\n") - 1 // what was parked before
		require.NoError(t, ch.Publish("", queue, false, false, amqp091.Publishing{Expiration: "1"}))
		r.waits(queue+".dead", before+1)
	}
	_, err := ch.QueueDeclare("typo", true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "gone"})
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", "typo", false, false, amqp091.Publishing{Expiration: "1"}))
	commands("typo", "curfew declare exchange gone")
	r.waits("typo.dead", 2)
	require.Empty(t, strings.TrimSpace(r.ok("dlq", "export", "curfew.undeliverable")), "what was parked was sent on")

	r.ok("policy", "set", "short", "^it's", `{"max-length": 9}`, "--priority", "3")
	for _, queue := range []string{"plain", "it's (a) b"} {
		_, err := ch.QueueDeclare(queue, true, false, false, false, nil)
		require.NoError(t, err)
		require.NoError(t, ch.Publish("", queue, false, false, amqp091.Publishing{Expiration: "1"}))
		commands(queue, "curfew queue declare "+deadline.Shell(queue+".dead")+" --vhost / && curfew policy set")
	}
	shown := r.ok("queue", "show", "it's (a) b")
	assert.Contains(t, shown, "max-length")
	require.Eventually(t, func() bool { return !strings.Contains(r.ok("incident", "show"), "To keep what expires") }, time.Minute, 20*time.Millisecond, "nothing is lost any more")

	_, err = ch.QueueDeclare("own", false, false, true, false, amqp091.Table{"x-curfew-objective": "none expires"})
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", "own", false, false, amqp091.Publishing{Expiration: "1"}))
	require.Eventually(t, func() bool {
		return strings.Contains(r.ok("incident", "ls", "-o", "json"), "What expires in own is lost. It is an exclusive queue")
	}, time.Minute, 20*time.Millisecond)
}

// TestRulesWithAMistake: a mistake in the alerts file does not stop the broker from serving; the status reports it.
func TestRulesWithAMistake(t *testing.T) {
	file := alertsFile(t, "rules:\n  - severity: fatal\n")
	r := startRunning(t, "ALERTS="+file)
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}} {
		code, out, errOut := runCommand(t, append(args, r.flags...)...)
		assert.Equal(t, exitUnhealthy, code, errOut)
		assert.Contains(t, out, "every incident goes to every sink")
		assert.Contains(t, out, file+":2: rules[0].severity")
	}
	assert.Contains(t, r.ok("incident", "ls"), "every incident goes to every sink")
	setenv(t, "CURFEW_ALERTS="+file)
	code, _, errOut := runCommand(t, "incident", "rules")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "want critical or error or warning or info")
}

// TestSinkTestNeedsNoServer: the settings are enough; a sink that fails is named, its secret is not shown.
func TestSinkTestNeedsNoServer(t *testing.T) {
	posts := 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts++
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(hook.Close)
	setenv(t)
	code, out, _ := runCommand(t, "incident", "test")
	assert.Zero(t, code)
	assert.Contains(t, out, "no sink but the log")
	setenv(t, "CURFEW_ALERT_URLS=webhook+"+hook.URL+",generic+"+hook.URL+"/broken,amqp:curfew.events")
	code, out, errOut := runCommand(t, "incident", "test")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "webhook: ok\n")
	assert.Contains(t, out, "generic: incident: send: ")
	assert.Contains(t, out, "amqp: skipped")
	assert.NotContains(t, out+errOut, "broken")
	assert.Equal(t, 3, posts)
	code, out, _ = runCommand(t, "incident", "test", "--sink", "webhook")
	assert.Zero(t, code, out)
	code, _, errOut = runCommand(t, "incident", "test", "--sink", "team")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, `unknown sink "team": want one of log, webhook, generic, amqp`)
}

func TestRules(t *testing.T) {
	file := alertsFile(t, "rules: [{name: quiet, queue: delay*, to: []}]")
	setenv(t, "CURFEW_ALERTS="+file)
	code, out, errOut := runCommand(t, "incident", "rules")
	require.Zero(t, code, errOut)
	assert.Regexp(t, `(?m)^quiet +\* +\* +delay\* +log +- +1, 0s late$`, out)
	assert.Regexp(t, `(?m)^default +\*`, out)
	code, out, errOut = runCommand(t, "alert", "rules", "--conditions") // as it was called
	require.Zero(t, code, errOut)
	assert.Regexp(t, `(?m)^held_past_deadline +warning +a consumer holds messages past their deadlines`, out)
	require.NoError(t, os.WriteFile(file, []byte("rules:\n  - severity: fatal"), 0o600))
	code, _, errOut = runCommand(t, "incident", "rules")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, file+`:2: rules[0].severity: "fatal" is invalid`)
}
