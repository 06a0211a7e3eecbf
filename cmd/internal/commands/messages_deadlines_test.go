package commands

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	assert.Contains(t, r.exits(exitUsage, "deadlines", "fire", "orders", "a"), `seq: "a" is not a whole number`)
	assert.Contains(t, r.exits(exitUsage, "deadlines", "extend", "orders", "2", "--by", "1h", "--at", "2030-01-01T00:00:00Z"), "not both")

	assert.Contains(t, r.exits(exitUsage, "deadlines", "extend", "orders", "2", "--by", "soon"), `"soon" is invalid: want a duration`)
	assert.Contains(t, r.exits(exitUsage, "deadlines", "shorten", "orders", "2", "--by", "10"), `"10" is invalid: want a duration with its unit`)
	assert.Contains(t, r.exits(exitUsage, "deadlines", "shorten", "orders", "2", "--at", "soon"), "want an instant")

	assert.Contains(t, r.ok("queue", "list"), "orders.dead  dead-letters  1      0        0        -     -")
	shown := r.ok("queue", "show", "orders")
	assert.Contains(t, shown, "messages_ready               1")
	assert.Contains(t, shown, `{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"orders.dead"}`)
	assert.Contains(t, r.ok("queue", "peek", "orders", "--state", "ready", "--tail"), "orders")
	assert.Contains(t, r.exits(exitUsage, "queue", "peek"), "curfew queue peek takes <queue>\n")
	assert.Contains(t, r.exits(exitUnconfirmed, "queue", "purge", "orders"), "1 messages are ready in \"orders\"; to delete them add --confirm 1")
	assert.Equal(t, "DELETED\n1\n", r.ok("queue", "purge", "orders", "--confirm", "1"))
}

// TestACutListSaysSo, and how to see more.
func TestACutListSaysSo(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	for _, id := range []string{"a", "b", "c"} {
		r.send(ch, amqp091.Publishing{MessageId: id, Headers: amqp091.Table{"x-delay": int32(3_600_000)}})
	}
	assert.Contains(t, r.exits(0, "scheduled", "list", "--count", "2"), "These are the first 2, and there may be more: --count takes up to 10000.")
	assert.Empty(t, r.exits(0, "scheduled", "list"))
	assert.Regexp(t, `ID +DUE +IN +EXCHANGE +KEY +MESSAGE-ID.*\n.* a .*\n`, r.ok("scheduled", "list", "--all"))
	assert.Equal(t, "cancelled scheduled message \"a\" (vhost \"/\", exchange \"amq.default\")\n", r.ok("scheduled", "cancel", "amq.default", "a"))
	id, _, _ := strings.Cut(strings.Split(r.ok("scheduled", "list", "--all"), "\n")[1], " ")
	r.ok("scheduled", "cancel", "amq.default", id)
	assert.Equal(t, 2, strings.Count(r.ok("scheduled", "list", "amq.default", "--before", "2h"), "\n"))
	assert.Equal(t, 1, strings.Count(r.ok("scheduled", "list", "amq.default", "--before", "1m"), "\n"))
	assert.Contains(t, r.exits(exitUsage, "scheduled", "list", "amq.default", "--all"), "--all takes no amq.default")
}

// TestTheSoonestIsListedFirst, of whatever virtual host, also where the list is cut.
func TestTheSoonestIsListedFirst(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	for _, hours := range []int32{3, 2} {
		r.send(ch, amqp091.Publishing{MessageId: fmt.Sprint("in", hours), Headers: amqp091.Table{"x-delay": hours * 3_600_000}})
	}
	r.ok("vhost", "add", "zoo")
	r.amqp += "zoo"
	r.send(r.dead(0), amqp091.Publishing{MessageId: "in1", Headers: amqp091.Table{"x-delay": int32(3_600_000)}})
	assert.Regexp(t, `(?s) in1\b.* in2\b.* in3\b`, r.ok("scheduled", "list"))
	assert.Regexp(t, `(?s)^[^\n]*\n[^\n]* in1\b[^\n]*\n$`, r.ok("scheduled", "list", "--count", "1"))
}

// TestIDsOfWhatWaits: a message that waits without a deadline has none in the list, and who names one that does not wait learns where the ids are.
func TestIDsOfWhatWaits(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	r.ok("policy", "set", "retry", "^orders$", `{"retry-backoff":"1h"}`)
	r.send(ch, amqp091.Publishing{})
	m, _, err := ch.Get("orders", false)
	require.NoError(t, err)
	require.NoError(t, m.Nack(false, true))
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`s +1 +(- +)+-\n`).MatchString(r.ok("retries", "list", "orders"))
	}, time.Minute, time.Millisecond)
	assert.Contains(t, r.exits(exitNotFound, "retries", "now", "orders", "1"), "not an id that curfew retries list shows")
	assert.Contains(t, r.exits(exitNotFound, "scheduled", "cancel", "amq.default", "cart-7"), `there is no scheduled message "cart-7"; curfew scheduled list lists them`)
}

// TestTimesByAManualClock: how long it is until a deadline is counted by the clock that the deadline is on.
func TestTimesByAManualClock(t *testing.T) {
	r := startRunning(t, "CLOCK=manual", "DATA_DIR=")
	r.send(r.dead(0), amqp091.Publishing{Expiration: "7200000"})
	r.ok("clock", "advance", "30m")
	assert.Contains(t, r.ok("deadlines", "list"), "  1h30m0s  ")
	assert.Regexp(t, `deadlines +1, next in 1h30m0s\n`, r.ok("queue", "show", "orders"))
}
