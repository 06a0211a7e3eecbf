package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/node"
	"curfew/integration/testenv"
	"curfew/monitor/incident"
)

func TestStatusAndAuditCommands(t *testing.T) {
	dir := t.TempDir()
	r := startRunning(t, "DATA_DIR="+dir)
	r.dead(21) // more than a search shows
	require.Eventually(t, func() bool { return strings.Count(r.ok("audit", "search", "-n", "100"), "\n") == 22 }, time.Minute, 20*time.Millisecond)
	assert.Contains(t, r.ok("audit", "search", "--message-id", "m1"), "dead_lettered")
	assert.Equal(t, 21, strings.Count(r.ok("audit", "search"), "\n"))
	assert.Equal(t, 21, strings.Count(r.ok("audit", "export"), "\n"))
	assert.Equal(t, 22, strings.Count(r.ok("audit", "export", "--format", "csv"), "\n"))
	assert.Equal(t, 21, strings.Count(r.ok("audit", "export", "--dir", dir), "\n"), "without asking it")
	assert.Contains(t, r.ok("audit", "search", "--dir", dir, "--queue", "orders", "-n", "1"), "mD", "the newest")
	assert.Contains(t, r.exits(exitFailed, "audit", "search", "--dir", t.TempDir()), "--dir takes a data folder")
	r.exits(exitUsage, "audit", "export", "--format", "xml")
	code, _, errOut := runCommand(t, append([]string{"status"}, append(r.flags, "--user", "nobody")...)...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "(HTTP 401); check --user and --password-file")
	assert.Contains(t, r.exits(exitUsage, "audit", "search", "--path", "late"), "want one of eager, index, lazy, requeue, manual, scheduled")
	assert.Contains(t, r.exits(exitUsage, "audit", "search", "--outcome", "lost"), "want one of dead_lettered, dropped, parked")

	require.Eventually(t, func() bool { return strings.Contains(r.status(), "since the start 21, of these late ") }, time.Minute, 20*time.Millisecond)
	health, incidents := "degraded", "critical 0, warning 1"                  // expiries of a queue for work
	if !strings.Contains(r.status(), "since the start 21, of these late 0") { // because the machine had much else to do
		health, incidents = "(degraded|critical)", "critical [01], warning [1-9]"
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Regexp(c, incidents, r.status()) }, time.Minute, 20*time.Millisecond)
	text := r.status()
	for _, line := range []string{health + `\n`, `messages +21 ready, 0 unacked in 2 queues\n +21 dead letters, of these 0 parked \(see curfew dlq list\)\n +0 delayed `, `lateness +p50 <= .*, p99 <= .* in the last hour\n`, `incidents +` + incidents + `, info \d \(see curfew incident ls\)\n`, `resource alarms +0\n`,
		`schedule +in Curfew itself, fires on time\n`, `store +on disk: \S+, \d.* free; the folder was empty at this start: .*\n +open to publishers\n`,
		`clients +\d+ connections?, 0 consumers\n`, `  \d+ segments?, \d.* MiB, of which messages need \d`, `  syncs p50 <= .*, p99 <= `, `memory +\d+(\.\d)? MiB of \d`} {
		assert.Regexp(t, line, text)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(r.status(), "in the last hour 0 lost, 21 dead-lettered, 0 as meant\n")
	}, time.Minute, 20*time.Millisecond)
	_, page := r.visit("/", nil)
	assert.Regexp(t, `in Curfew itself</span>, fires on time .*on disk</span>: \S+, \d[^<]* free; the folder was empty at this start: `, page)
	assert.Regexp(t, `>Lost, last hour</span><b><span class="faint">0</span><div><span class="faint">21 dead-lettered<`, page)
	var s node.Status
	require.NoError(t, json.Unmarshal([]byte(r.status("-o", "json")), &s))
	assert.Equal(t, []int64{0, 21}, []int64{*s.Lost, *s.Rescued})
	assert.Regexp(t, health, s.Health)
	assert.NotNil(t, s.LatenessP99)
	assert.NotNil(t, s.SyncP50)
	assert.Positive(t, s.Live)
	assert.Greater(t, s.Stored, s.Live)
}

// TestStatusOfOne: nouns are in the singular.
func TestStatusOfOne(t *testing.T) {
	var text strings.Builder
	for _, row := range statusRows(&node.Status{Queues: 1, Connections: 1, Consumers: 1, Segments: 1}) {
		text.WriteString(strings.Join(row, " ") + "\n")
	}
	for _, line := range []string{"messages 0 ready, 0 unacked in 1 queue\n", "clients 1 connection, 1 consumer\n", " 1 segment, 0 B"} {
		assert.Contains(t, text.String(), line)
	}
}

// TestStatusSaysWhyNothingExpires, as nothing else is wrong then.
func TestStatusSaysWhyNothingExpires(t *testing.T) {
	assert.Contains(t, startRunning(t, "TTL=off").ok("status"), "no message expires (CURFEW_TTL=off)")
	assert.Contains(t, startRunning(t, "MONITOR=false").ok("status"), "monitor off")
}

// TestStatusOfMany: the worst incidents and how many more there are, on one screen.
func TestStatusOfMany(t *testing.T) {
	s := &node.Status{Health: "critical", Reasons: []string{"a", "b", "c", "d", "21 more incidents: see curfew incident ls"}}
	s.Incidents.Critical, s.Incidents.Warning, s.Incidents.Info = 20, 5, 3
	rows := statusRows(s)
	require.Equal(t, [][]string{{"!", "a"}, {"!", "b"}, {"!", "c"}, {"!", "and 22 more: curfew incident ls"}}, rows[:4])
	require.Equal(t, "critical: 25 incidents (see curfew incident ls)", verdict(s))
	require.Equal(t, "dead: it is silent", verdict(&node.Status{Health: "dead", Reasons: []string{"it is silent"}}))
	require.Equal(t, "dead", verdict(&node.Status{Health: "dead"}))
}

// TestStatusOfADegradedOne: the Redis of the schedule does not answer.
func TestStatusOfADegradedOne(t *testing.T) {
	r := startRunning(t, "REDIS_URL=redis://"+testenv.FreeAddr())
	var out, errOut string
	require.Eventually(t, func() bool {
		var code int
		code, out, errOut = runCommand(t, append([]string{"status"}, r.flags...)...)
		return code == exitUnhealthy
	}, time.Minute, 20*time.Millisecond)
	assert.Contains(t, out, "degraded\n!")
	assert.Contains(t, errOut, "curfew: degraded: ")
}

// TestStatusCarriesIncidents: a dead letter with nowhere to go is a critical incident, and then nothing says that all is well.
func TestStatusCarriesIncidents(t *testing.T) {
	r := startRunning(t)
	conn, err := amqp091.Dial(r.amqp)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("orders", true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "gone"})
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	require.Regexp(t, `incidents        critical 0, warning 0, info \d`, r.ok("status"))
	r.send(ch, amqp091.Publishing{Expiration: "1"})
	var out, errOut string
	require.Eventually(t, func() bool {
		var code int
		code, out, errOut = runCommand(t, append([]string{"status"}, r.flags...)...)
		return code == exitUnhealthy
	}, time.Minute, 20*time.Millisecond)
	assert.Regexp(t, `^curfew: critical: [12] incidents? \(see curfew incident ls\)\n$`, errOut)
	assert.Contains(t, out, "\nexpired          since the start ")
	assert.Regexp(t, "incidents        critical [12], warning ", out) // one more if the message expired late
	assert.Contains(t, out, "1 dead letter, of these 1 parked (see curfew dlq list)\n")
	assert.Contains(t, out, "resource alarms  0\n")
}

// TestStatusNamesWhatIsParked: as long as there are parked messages, whatever the rules say about notifications.
func TestStatusNamesWhatIsParked(t *testing.T) {
	r := startRunning(t, "ALERTS="+alertsFile(t, "rules: [{severity: warning}]"))
	ch := r.dead(0)
	_, err := ch.QueueDeclare("typo", true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "gone"})
	require.NoError(t, err)
	assert.NotContains(t, r.ok("status"), "!")
	for _, want := range []string{"1 dead letter", "2 dead letters"} {
		require.NoError(t, ch.Publish("", "typo", false, false, amqp091.Publishing{Expiration: "1"}))
		line := "\n!                Dead letters are parked: curfew.undeliverable (vhost /): " + want + " parked, which had nowhere to go; from typo, whose dead-letter exchange gone does not exist"
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Contains(c, r.status(), line) }, time.Minute, 20*time.Millisecond)
	}
	assert.Contains(t, r.ok("incident", "show"), " curfew dlq groups curfew.undeliverable --vhost /\n")

	assert.Contains(t, r.ok("dlq", "list"), "(parked; curfew dlq groups curfew.undeliverable says why)\n")
	assert.Contains(t, r.exits(exitUsage, "dlq", "list", "typo"), "takes no arguments, got")
	_, err = ch.QueuePurge("curfew.undeliverable", false)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.NotContains(c, r.status(), "parked,") }, time.Minute, 20*time.Millisecond)
}

// TestStatusCountsDeadLettersAsTheirPageDoes, also those in a queue for them to which nothing leads.
func TestStatusCountsDeadLettersAsTheirPageDoes(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(2)
	_, err := ch.QueueDeclare("old.dead", true, false, false, false, amqp091.Table{"x-curfew-purpose": "dead-letters"})
	require.NoError(t, err)
	require.NoError(t, ch.PublishWithContext(t.Context(), "", "old.dead", false, false, amqp091.Publishing{}))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Contains(c, r.status(), "3 dead letters, of these 0 parked")
		assert.Regexp(c, `old.dead +1 `, r.ok("dlq", "list"))
	}, time.Minute, 20*time.Millisecond)
}

// TestStatusCountsAcknowledgedIncidents, about which nobody is notified.
func TestStatusCountsAcknowledgedIncidents(t *testing.T) {
	s := node.Status{}
	s.Incidents.Warning, s.Incidents.Acknowledged = 3, 2
	i := incident.Incident{Summary: "a", Ack: &incident.Ack{By: "ann"}}
	s.Reasons = []string{i.Line(), "b"}
	assert.Equal(t, [][]string{{"known", "a; acknowledged by ann"}, {"!", "b"}}, statusRows(&s)[:2])
	assert.Contains(t, fmt.Sprint(statusRows(&node.Status{Monitor: true, Fired: 20, HeldExpired: 12})), "[expired since the start 20, of these late 0, besides 12 that consumers held]")
	assert.Contains(t, fmt.Sprint(statusRows(&s)), "[incidents critical 0, warning 3, info 0, acknowledged 2 (see curfew incident ls)]")
}

// TestHeldIsNotNext: a message that a consumer holds past its deadline is called that, and the next deadline is another's.
func TestHeldIsNotNext(t *testing.T) {
	ops := testenv.FreeAddr()
	r := startRunning(t, "OPS_ADDR="+ops)
	ch := r.dead(0)
	require.NoError(t, ch.Qos(1, 0, false))
	got, err := ch.Consume("orders", "slow", false, false, false, false, nil)
	require.NoError(t, err)
	r.send(ch, amqp091.Publishing{Expiration: "300"})
	d := <-got
	alone := `\ndeadlines        1 pending, 1 held past its deadline \(see curfew consumers\)\n`
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Regexp(c, alone, r.status()) }, time.Minute, 20*time.Millisecond)
	answer, err := http.Get("http://" + ops + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	metrics, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Contains(t, string(metrics), `curfew_deadlines_held{queue="orders",vhost="/"} 1`)
	r.send(ch, amqp091.Publishing{Expiration: "3600000"})
	both := `\ndeadlines        2 pending, next in (1h0m0s|59m\d+s) \(20\S+Z\), 1 held past its deadline \(see curfew consumers\)\n`
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Regexp(c, both, r.status()) }, time.Minute, 20*time.Millisecond)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Regexp(c, `\ndeadlines +2, the first \d+s ago, held\n`, r.ok("queue", "show", "orders"))
	}, time.Minute, 20*time.Millisecond)
	assert.Regexp(t, `\norders +1 +20\S+Z  \d+s ago  unacked `, r.ok("deadlines", "list"))
	require.NoError(t, d.Ack(false))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Regexp(c, `\ndeadlines        1 pending, next in \S+ \(20\S+Z\)\n`, r.status())
	}, time.Minute, 20*time.Millisecond)
}

// TestVersionsAreNarrow: what a release is called stays whole.
func TestVersionsAreNarrow(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0": "v0.1.0", "v0.1.0-rc.1": "v0.1.0-rc.1", "devel": "devel", "8754e1d2-dirty": "8754e1d2-dirty",
		"v0.0.0-20261130083556-8754e1d2549b": "8754e1d2549b", "v0.0.0-20261130083556-8754e1d2549b+dirty": "8754e1d2549b+dirty",
		"v0.1.0-5-g8754e1d2-dirty": "g8754e1d2-dirty",
	} {
		require.Equal(t, want, narrow(version))
	}
}
