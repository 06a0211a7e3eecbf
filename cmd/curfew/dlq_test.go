package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/scheduler/storetest"
)

// exits runs a command that has to end with a code, and returns what it says.
func (r *running) exits(want int, args ...string) string {
	r.t.Helper()
	code, out, errOut := runCommand(r.t, append(args, r.flags...)...)
	require.Equal(r.t, want, code, out+errOut)
	return errOut
}

// dead makes queue orders, which dead-letters to orders.dead, and n messages that have expired there.
func (r *running) dead(n int) *amqp091.Channel {
	conn, err := amqp091.Dial(r.amqp)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	require.NoError(r.t, err)
	_, err = ch.QueueDeclare("orders", true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dead"})
	require.NoError(r.t, err)
	_, err = ch.QueueDeclare("orders.dead", true, false, false, false, nil)
	require.NoError(r.t, err)
	require.NoError(r.t, ch.Confirm(false))
	for i := range n {
		r.send(ch, amqp091.Publishing{Expiration: "1", DeliveryMode: 2, MessageId: "m" + string(rune('0'+i)), Body: []byte("order\n" + string(rune('0'+i)))})
	}
	r.waits("orders.dead", n)
	return ch
}

func (r *running) send(ch *amqp091.Channel, m amqp091.Publishing) {
	r.t.Helper()
	c, err := ch.PublishWithDeferredConfirm("", "orders", false, false, m)
	require.NoError(r.t, err)
	require.True(r.t, c.Wait())
}

// waits until a queue has n messages.
func (r *running) waits(queue string, n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		var list []standingMessage
		require.NoError(r.t, json.Unmarshal([]byte(r.ok("queue", "peek", queue, "-n", "100", "-o", "json")), &list))
		return len(list) == n
	}, time.Minute, 20*time.Millisecond)
}

func TestDeadLetterCommands(t *testing.T) {
	r := startRunning(t)
	r.dead(4)
	assert.Equal(t, "QUEUE        READY  UNACKED  BYTES  FROM\norders.dead  4      0        28     orders\n", r.ok("dlq", "list"))
	assert.Contains(t, r.ok("dlq", "groups", "orders.dead"), "expired  orders  -         4         4")
	assert.Contains(t, r.ok("dlq", "peek", "orders.dead", "-n", "1"), `order\n0`)
	found := r.ok("dlq", "search", "orders.dead", "--body", "2", "--since", "1h", "--reason", "expired", "--header", "x-first-death-queue=orders")
	assert.Equal(t, 2, strings.Count(found, "\n"), found)
	assert.Contains(t, found, "m2")
	assert.Contains(t, r.exits(exitUsage, "dlq", "search", "orders.dead", "--pattern", "("), "RE2")
	assert.Contains(t, r.exits(exitUsage, "dlq", "search", "orders.dead", "--since", "yesterday"), "takes an instant")
	assert.Contains(t, r.exits(exitUsage, "dlq", "purge", "orders.dead", "--reason", "expire"), "there are expired, rejected, maxlen, delivery_limit")
	assert.Contains(t, r.exits(exitNotFound, "dlq", "groups", "nothing"), "check the name and --vhost")

	file := filepath.Join(t.TempDir(), "dead.jsonl")
	r.ok("dlq", "export", "orders.dead", "--message-id", "m3", "-f", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(text), "\n"))
	r.exits(exitFailed, "dlq", "export", "orders.dead", "-f", file)
	assert.Contains(t, r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--message-id", "m3"), "1 messages match; to delete them add --confirm 1")
	assert.Contains(t, r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--message-id", "m3", "--confirm", "2"), "--confirm 1")
	assert.Contains(t, r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--message-id", "m3", "--confirm", "0"), "--confirm 1")
	for _, c := range []string{"dlq", "queue"} {
		_, help, _ := runCommand(t, c, "purge", "--help")
		assert.NotContains(t, help, "default -1")
	}
	assert.Equal(t, "DELETED\n1\n", r.ok("dlq", "purge", "orders.dead", "--message-id", "m3", "--confirm", "1"))
	assert.Equal(t, "IMPORTED\n1\n", r.ok("dlq", "import", "orders.dead", file))
	assert.Contains(t, r.ok("dlq", "export", "orders.dead", "--message-id", "m3"), string(text)[strings.Index(string(text), `"properties"`):], "nothing of it is lost")

	dry := r.ok("dlq", "replay", "orders.dead", "--dry-run", "--ttl", "none", "--message-id", "m1")
	assert.Contains(t, dry, "dry run")
	r.waits("orders.dead", 4)
	assert.Contains(t, r.ok("dlq", "replay", "orders.dead", "--ttl", "10m", "--limit", "3"), "done")
	r.waits("orders", 3)
	assert.Contains(t, r.ok("dlq", "replay", "orders.dead", "--exchange", "nowhere"), "unroutable=1")
	assert.Equal(t, 3, strings.Count(r.ok("dlq", "runs"), "\n"))
	for _, what := range []string{"cancel", "resume"} {
		assert.Contains(t, r.exits(exitNotFound, "dlq", what, "none"), `there is no replay "none"; curfew dlq runs lists them`)
	}
	assert.Contains(t, r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--message-id", "none"), "no messages match: there is nothing to delete")
	assert.Contains(t, r.exits(exitUsage, "dlq", "replay", "orders.dead", "--ttl", "soon"), "--ttl takes")
}

func TestDeadlineAndQueueCommands(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	r.send(ch, amqp091.Publishing{Expiration: "3600000", MessageId: "a"})
	r.send(ch, amqp091.Publishing{Expiration: "60000", MessageId: "b"})
	list := r.ok("deadlines", "list")
	assert.Less(t, strings.Index(list, "  b\n"), strings.Index(list, "  a\n"), list)
	assert.Equal(t, 1, strings.Count(r.ok("deadlines", "list", "orders", "--overdue"), "\n"))
	assert.Contains(t, r.ok("deadlines", "extend", "orders", "2", "--by", "2h"), "rescheduled")
	list = r.ok("deadlines", "list", "orders")
	assert.Less(t, strings.Index(list, "  a\n"), strings.Index(list, "  b\n"), list)
	assert.Contains(t, r.ok("deadlines", "shorten", "orders", "--message-id", "b", "--by", "1h"), "rescheduled")
	assert.Equal(t, "OUTCOME      DEADLINE\nrescheduled  -\n", r.ok("deadlines", "cancel", "orders", "2"))
	assert.Equal(t, "OUTCOME  DEADLINE\nexpired  -\n", r.ok("deadlines", "fire", "orders", "--message-id", "a"))
	r.waits("orders.dead", 1)
	assert.Contains(t, r.exits(exitNotFound, "deadlines", "fire", "orders", "1"), "no message with this number")
	assert.Contains(t, r.exits(exitNotFound, "deadlines", "fire", "orders", "--message-id", "a"), "no ready message")
	r.exits(exitUsage, "deadlines", "extend", "orders", "2")
	r.exits(exitUsage, "deadlines", "cancel", "orders")
	assert.Contains(t, r.exits(exitUsage, "deadlines", "fire", "orders", "a"), `by its number in the queue (curfew deadlines list), not "a"`)
	assert.Contains(t, r.exits(exitUsage, "deadlines", "extend", "orders", "2", "--by", "1h", "--at", "2030-01-01T00:00:00Z"), "one of them")

	assert.Contains(t, r.ok("queue", "list"), "orders.dead  classic  1      0        0")
	shown := r.ok("queue", "show", "orders")
	assert.Contains(t, shown, "messages_ready               1")
	assert.Contains(t, shown, `{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders.dead"}`)
	assert.Contains(t, r.ok("queue", "peek", "orders", "--state", "ready", "--tail"), "orders")
	assert.Contains(t, r.exits(exitUsage, "queue", "peek"), "curfew queue peek takes a queue\n")
	assert.Contains(t, r.exits(exitUnconfirmed, "queue", "purge", "orders"), "1 messages are ready in \"orders\"; to delete them add --confirm 1")
	assert.Equal(t, "DELETED\n1\n", r.ok("queue", "purge", "orders", "--confirm", "1"))
}

func TestStatusAndAuditCommands(t *testing.T) {
	dir := t.TempDir()
	r := startRunning(t, "DATA_DIR="+dir, "MISS_THRESHOLD=1h")
	r.dead(2)
	require.Eventually(t, func() bool { return strings.Count(r.ok("audit", "search"), "\n") == 3 }, time.Minute, 20*time.Millisecond)
	assert.Contains(t, r.ok("audit", "search", "--message-id", "m1"), "dead_lettered")
	assert.Equal(t, 2, strings.Count(r.ok("audit", "export"), "\n"))
	assert.Equal(t, 3, strings.Count(r.ok("audit", "export", "--format", "csv"), "\n"))
	assert.Equal(t, 2, strings.Count(r.ok("audit", "export", "--dir", dir), "\n"), "without asking it")
	assert.Contains(t, r.ok("audit", "search", "--dir", dir, "--queue", "orders", "-n", "1"), "m1")
	assert.Contains(t, r.exits(exitFailed, "audit", "search", "--dir", t.TempDir()), "--dir takes the data folder")
	r.exits(exitUsage, "audit", "export", "--format", "xml")
	code, _, errOut := runCommand(t, append([]string{"status"}, append(r.flags, "--user", "nobody")...)...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "(HTTP 401); check --user and --password-file")
	assert.Contains(t, r.exits(exitUsage, "audit", "search", "--path", "late"), "it can be eager, index, lazy, requeue, manual, scheduled")
	assert.Contains(t, r.exits(exitUsage, "audit", "search", "--outcome", "lost"), "it can be dead_lettered, dropped, parked")

	require.Eventually(t, func() bool { return strings.Contains(r.ok("status"), "  2, missed 0") }, time.Minute, 20*time.Millisecond)
	text := r.ok("status")
	for _, line := range []string{`ok\n`, `messages +2 ready, 0 unacked in 2 queues\n`, `lateness +p50 <= .*, p99 <= `, `alarms +0\n`,
		`clients +\d+ connections, 0 consumers\n`, `  \d+ segments, \d.* MiB, of which messages need \d`, `  syncs p50 <= .*, p99 <= `, `memory +\d+\.\d MiB of \d`} {
		assert.Regexp(t, line, text)
	}
	var s status
	require.NoError(t, json.Unmarshal([]byte(r.ok("status", "-o", "json")), &s))
	assert.Equal(t, "ok", s.Health)
	assert.NotNil(t, s.LatenessP99)
	assert.NotNil(t, s.SyncP50)
	assert.Positive(t, s.Live)
	assert.Greater(t, s.Stored, s.Live)
}

// TestStatusOfADegradedOne: the schedule's Redis is away.
func TestStatusOfADegradedOne(t *testing.T) {
	r := startRunning(t, "REDIS_URL=redis://"+storetest.FreeAddr())
	var out, errOut string
	require.Eventually(t, func() bool {
		var code int
		code, out, errOut = runCommand(t, append([]string{"status"}, r.flags...)...)
		return code == exitUnhealthy
	}, time.Minute, 20*time.Millisecond)
	assert.Contains(t, out, "degraded\n!")
	assert.Contains(t, errOut, "curfew: degraded: ")
}

// TestStatusShowsDeadlinesRoundedUp, as every list of them.
func TestStatusShowsDeadlinesRoundedUp(t *testing.T) {
	metrics := prometheus.NewRegistry()
	next := prometheus.NewGauge(prometheus.GaugeOpts{Name: "curfew_deadline_next_timestamp_seconds"})
	metrics.MustRegister(next)
	for seconds, want := range map[float64]int64{1795291637.406001: 1795291637407, 1795291637.407: 1795291637407} {
		next.Set(seconds)
		var s status
		s.measure(metrics)
		assert.Equal(t, want, s.Next.UnixMilli())
	}
}

// TestBodiesInTables are as they are, but for what a terminal would obey.
func TestBodiesInTables(t *testing.T) {
	var out strings.Builder
	a := api{output: "table"}
	require.NoError(t, a.print(&out, nil, []string{"BODY"}, [][]string{{bodyCell("{\"a\": \"\\\"\"}\n\x1b", "string")}, {bodyCell("AA==", "base64")}}))
	assert.Equal(t, "BODY\n{\"a\": \"\\\"\"}\\n\\x1b\n(base64) AA==\n", out.String())
}

func TestQuantile(t *testing.T) {
	bounds, counts := []float64{1, 2, 4}, []uint64{50, 98, 99}
	assert.Equal(t, 1.0, *quantile(0.5, bounds, counts, 100))
	assert.Equal(t, 4.0, *quantile(0.99, bounds, counts, 100))
	assert.Equal(t, 4.0, *quantile(1, bounds, counts, 100), "above the last bound")
	assert.Nil(t, quantile(0.5, bounds, []uint64{0, 0, 0}, 0))
}

func TestCompletion(t *testing.T) {
	code, out, _ := runCommand(t, "completion", "bash")
	assert.Zero(t, code)
	assert.Contains(t, out, "curfew")
	r := startRunning(t)
	r.dead(0)
	for _, c := range []struct{ line, want string }{
		{"dlq replay", "orders\norders.dead\n:4\n"},
		{"queue show", "orders\norders.dead\n:4\n"},
		{"deadlines fire", "orders\norders.dead\n:4\n"},
		{"dlq import orders.dead", ":0\n"}, // a file
		{"dlq replay orders --ttl", "fresh\nremaining\nnone\n:4\n"},
		{"dlq search orders --reason", "expired\nrejected\nmaxlen\ndelivery_limit\n:4\n"},
		{"audit search --path", "eager\nindex\nlazy\nrequeue\nmanual\nscheduled\n:4\n"},
		{"alert test --sink", "webhook\nalertmanager\nslack\npagerduty\ncloudevents\namqp\nlog\n:4\n"},
		{"status -o", "table\njson\n:4\n"},
	} {
		_, out, _ := runCommand(t, slices.Concat([]string{"__complete"}, r.flags, strings.Fields(c.line), []string{""})...)
		assert.Equal(t, c.want, out, c.line)
	}
}
