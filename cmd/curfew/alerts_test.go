package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/management"
	"curfew/monitor/alert"
)

// TestAlertCommands: a missed deadline is listed, silenced and unsilenced; the heartbeat beats.
func TestAlertCommands(t *testing.T) {
	var beats atomic.Int64
	beat := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { beats.Add(1) }))
	t.Cleanup(beat.Close)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	r := startRunning(t, "ALERT_GROUP_WAIT=10ms", "HEARTBEAT_URL="+beat.URL, "ALERT_WEBHOOK_URL="+hook.URL)
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
	assert.Contains(t, list, "queue ord*")
	var all struct{ Silences []alert.Muting }
	require.NoError(t, json.Unmarshal([]byte(r.ok("alert", "ls", "-o", "json")), &all))
	require.Len(t, all.Silences, 1)
	assert.Equal(t, "migration", all.Silences[0].Comment)
	r.ok("alert", "unsilence", id)
	assert.NotContains(t, r.ok("alert", "ls"), id)
	assert.Contains(t, r.fails("alert", "unsilence", id), "no such silence")
	assert.Contains(t, r.fails("alert", "silence", "--event", "late", "--for", "1h"), "there is no event")
	code, _, errOut := runCommand(t, append([]string{"alert", "silence", "--for", "1h"}, r.flags...)...)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "--all silences everything")
	assert.Equal(t, "webhook: ok\n", r.ok("alert", "test", "--running"))
	require.Eventually(t, func() bool { return beats.Load() > 0 }, time.Minute, 20*time.Millisecond)
}

// TestAlertRulesWithAMistake do not keep a broker from serving: it is up, and says so.
func TestAlertRulesWithAMistake(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte("rules:\n  - severity: fatal\n"), 0o600))
	r := startRunning(t, "ALERT_RULES="+file)
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}} {
		code, out, errOut := runCommand(t, append(args, r.flags...)...)
		assert.Equal(t, exitUnhealthy, code, errOut)
		assert.Contains(t, out, "every event goes to every sink")
		assert.Contains(t, out, file+":2: rules[0].severity")
	}
	assert.Contains(t, r.ok("alert", "ls"), "every event goes to every sink")
	setenv(t, "CURFEW_ALERT_RULES="+file)
	code, _, errOut := runCommand(t, "alert", "rules")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "takes critical or error or warning or info")
}

// TestAlertTestNeedsNoServer: the settings are enough; a sink that fails is named, and its secret not.
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
	setenv(t, "CURFEW_ALERT_WEBHOOK_URL="+hook.URL, "CURFEW_ALERT_SLACK_URL="+hook.URL+"/broken", "CURFEW_ALERT_AMQP=json")
	code, out, errOut := runCommand(t, "alert", "test")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "webhook: ok\n")
	assert.Contains(t, out, "slack: alert: post: the receiver answers 418")
	assert.Contains(t, out, "amqp: skipped")
	assert.NotContains(t, out+errOut, "broken")
	assert.Equal(t, 3, posts)
	code, out, _ = runCommand(t, "alert", "test", "--sink", "webhook")
	assert.Zero(t, code, out)
	code, _, errOut = runCommand(t, "alert", "test", "--sink", "pagerduty")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "CURFEW_ALERT_PAGERDUTY_ROUTING_KEY")
}

func TestAlertRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	setenv(t, "CURFEW_ALERT_RULES="+file)
	require.NoError(t, os.WriteFile(file, []byte("rules: [{name: quiet, queue: delay*, to: []}]"), 0o600))
	code, out, errOut := runCommand(t, "alert", "rules")
	require.Zero(t, code, errOut)
	assert.Regexp(t, `(?m)^quiet +\* +\* +delay\* +log +- +event +1, 0s late +10s +1m0s +4h0m0s$`, out)
	assert.Regexp(t, `(?m)^default +\*`, out)
	require.NoError(t, os.WriteFile(file, []byte("rules:\n  - severity: fatal"), 0o600))
	code, _, errOut = runCommand(t, "alert", "rules")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, file+`:2: rules[0].severity: "fatal" is not allowed`)
}

// TestCurfewAPITakesRoles: every mutating request an administrator, others monitoring.
func TestCurfewAPITakesRoles(t *testing.T) {
	b, err := broker.New(broker.Options{User: "admin", Password: "p"})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	for _, tag := range []string{access.Monitoring, access.Management} {
		require.NoError(t, b.PutUser(access.User{Name: tag, PasswordHash: access.Hash("p"), Algorithm: access.SHA256, Tags: []string{tag}}))
	}
	alerts, err := alert.New(alert.Options{})
	require.NoError(t, err)
	api := (&node{alerts: alerts}).curfewAPI(management.New(management.Options{Broker: b}), newOps(prometheus.NewRegistry()), prometheus.NewRegistry())
	for _, request := range [][2]string{{"GET", "/alerts"}, {"GET", "/alerts/rules"}, {"GET", "/silences"}, {"POST", "/alerts/test"}, {"POST", "/silences"}, {"DELETE", "/silences/x"}} {
		for _, who := range []string{"", "nobody", access.Management, access.Monitoring, "admin"} {
			r := httptest.NewRequest(request[0], "/api/curfew"+request[1], strings.NewReader("{}"))
			if who != "" {
				r.SetBasicAuth(who, "p")
			}
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			allowed := who == "admin" || who == access.Monitoring && request[0] == "GET"
			assert.Equal(t, allowed, w.Code != http.StatusUnauthorized, "%v by %q: %d", request, who, w.Code)
		}
	}
	foreign := httptest.NewRequest("POST", "/api/curfew/silences", strings.NewReader("{}"))
	foreign.SetBasicAuth("admin", "p")
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, foreign)
	assert.Equal(t, http.StatusForbidden, w.Code)
}

// TestProbe: a part that does not answer is stalled until it does, and is asked once.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		p := &probe{name: "store", ask: func(answer func()) {
			asked.Add(1)
			<-release
			answer()
		}}
		n := &node{probes: []*probe{p}}
		require.Equal(t, []string{"store"}, n.stalled())
		require.Equal(t, []string{"store"}, n.stalled())
		require.Equal(t, int32(1), asked.Load())
		close(release)
		require.Empty(t, n.stalled())
		require.Empty(t, n.stalled())
		require.Equal(t, int32(2), asked.Load())
	})
}
