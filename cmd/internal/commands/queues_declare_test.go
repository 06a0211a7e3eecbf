package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"curfew/cmd/internal/node"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestByHand: a queue, an exchange and a message, without a client.
func TestByHand(t *testing.T) {
	r := startRunning(t)
	assert.Equal(t, "declared queue \"orders\"\n", r.ok("declare", "queue", "orders", "--ttl", "1h", "--dlq", "dead", "--arg", "x-max-length=7"))
	assert.Contains(t, r.ok("declare", "queue", "orders", "--ttl", "1h", "--dlq", "dead", "--max-length", "7"), "as declared")
	_, out, errOut := runCommand(t, append([]string{"declare", "queue", "orders", "--ttl", "2h", "--type", "quorum"}, r.flags...)...)
	for _, line := range []string{`x-dead-letter-exchange +- +""`, `x-max-length +- +7`, `x-message-ttl +7200000 +3600000`, `x-queue-type +quorum +-`} {
		assert.Regexp(t, "(?m)^"+line+"$", out)
	}
	assert.Contains(t, errOut, "nothing was changed")
	assert.Contains(t, r.exits(exitUsage, "declare", "queue", "q", "--ttl", "1h", "--arg", "x-message-ttl=1"), "use one")
	assert.Contains(t, r.exits(exitFailed, "declare", "queue", "q", "--arg", "x-message-ttl=text"), "x-message-ttl")

	r.ok("declare", "exchange", "events", "--type", "topic")
	assert.Contains(t, r.exits(exitFailed, "declare", "exchange", "events"), "differs")
	r.ok("bind", "events", "orders", "--key", "order.*")
	r.ok("bind", "events", "orders", "--key", "order.*") // again
	for _, name := range []string{"", "amq.default"} {
		assert.Contains(t, r.exits(exitUsage, "bind", name, "orders"), "the default exchange takes no bindings")
	}

	file := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(file, []byte("\xff\x00"), 0o600))
	assert.Equal(t, "confirmed\n", r.ok("publish", "orders", `{"n": 1}`, "--header", "tenant=globex", "--header", "n=7", "--message-id", "m1", "--ttl", "10m", "--priority", "3"))
	assert.JSONEq(t, `{"routed": true}`, r.ok("publish", "--exchange", "events", "--key", "order.new", "--file", file, "-o", "json", "--deadline", time.Now().Add(time.Hour).Format(time.RFC3339)))
	assert.Contains(t, r.exits(exitFailed, "publish", "ordrs", "lost"), `queue "ordrs" does not exist`)
	assert.Contains(t, r.exits(exitFailed, "publish", "--exchange", "events", "--key", "x", "lost"), `exchange "events" has no binding for the routing key "x"`)
	assert.Contains(t, r.exits(exitFailed, "publish", "--exchange", "evnts", "lost"), "no exchange 'evnts'")
	assert.Contains(t, r.exits(exitUsage, "publish", "orders", "x", "--ttl", "1s", "--deadline", "2999-01-01T00:00:00Z"), "either")
	assert.Contains(t, r.exits(exitUsage, "publish", "orders", "x", "--header", "x"), "want name=value")

	var list []struct {
		Payload    string         `json:"payload"`
		Properties map[string]any `json:"properties"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.ok("get", "orders", "-n", "9", "-o", "json")), &list))
	require.Len(t, list, 2)
	assert.Equal(t, map[string]any{
		"message_id": "m1", "expiration": "600000", "priority": 3., "delivery_mode": 2., "headers": map[string]any{"tenant": "globex", "n": 7.},
	}, list[0].Properties)
	assert.Equal(t, `{"n": 1}`, r.ok("get", "orders", "--ack", "--body"))
	assert.Equal(t, "\xff\x00", r.ok("get", "orders", "--body"))
	assert.Equal(t, "\xff\x00", r.ok("get", "orders", "--body"), "it was taken without --ack")

	assert.Contains(t, r.exits(exitNotFound, "unbind", "events", "orders", "--key", "other"), "other bindings between them: 1")
	r.ok("unbind", "events", "orders", "--key", "order.*")
	r.exits(exitNotFound, "unbind", "events", "orders", "--key", "order.*")
	r.ok("delete", "exchange", "events")
	assert.Contains(t, r.exits(exitUnconfirmed, "delete", "queue", "orders"), "--confirm 1")
	assert.Contains(t, r.exits(exitUnconfirmed, "delete", "queue", "orders", "--confirm", "2"), "--confirm 1")
	r.ok("delete", "queue", "orders", "--confirm", "1")
	r.exits(exitNotFound, "delete", "queue", "orders")
}

// TestMissingDeadLetterQueue: declare warns of it, and what is parked for want of it names it.
func TestMissingDeadLetterQueue(t *testing.T) {
	r := startRunning(t)
	code, _, errOut := runCommand(t, append([]string{"declare", "queue", "a", "--ttl", "1ms", "--dlq", "a.dead"}, r.flags...)...)
	assert.Zero(t, code)
	assert.Equal(t, "there is no queue \"a.dead\" for its dead letters yet: curfew declare queue a.dead --vhost /\n", errOut)
	r.ok("publish", "a", "x")
	require.Eventually(t, func() bool {
		_, _, errOut = runCommand(t, append([]string{"dlq", "groups", "curfew.undeliverable"}, r.flags...)...)
		return strings.Contains(errOut, "parked")
	}, 10*time.Second, 20*time.Millisecond)
	assert.Contains(t, errOut, `parked because there is no queue "a.dead". Declare it, then: curfew dlq replay`)
	r.ok("declare", "queue", "a.dead")
	code, _, errOut = runCommand(t, append([]string{"declare", "queue", "a", "--ttl", "1ms", "--dlq", "a.dead"}, r.flags...)...)
	assert.Zero(t, code)
	assert.Empty(t, errOut)
}

// TestListsOfAllVirtualHosts: each list is of all of them unless --vhost is given, and then says in which its rows are; -A says so. A queue is declared in either order of words.
func TestListsOfAllVirtualHosts(t *testing.T) {
	r := startRunning(t)
	r.ok("vhost", "add", "shop")
	r.ok("user", "permissions", "set", "guest", ".*", ".*", ".*", "--vhost", "shop")
	for _, vhost := range []string{"/", "shop"} {
		assert.Equal(t, "declared queue \"orders\"\n", r.ok("queue", "declare", "orders", "--dlq", "orders.dead", "--vhost", vhost))
		assert.Contains(t, r.ok("declare", "queue", "orders", "--dlq", "orders.dead", "--vhost", vhost), "as declared")
		r.ok("queue", "declare", "orders.dead", "--vhost", vhost)
		r.ok("policy", "set", "ttl", "^x", `{"message-ttl": 5}`, "--vhost", vhost)
		r.ok("publish", "orders", "text", "--ttl", "10m", "--vhost", vhost)
	}
	for _, list := range [][]string{{"queue", "list"}, {"policy", "list"}, {"dlq", "list"}, {"deadlines", "list"}, {"consumers"}} {
		out := r.ok(append(list, "-A")...)
		assert.Regexp(t, "(?m)^(VHOST|.* VHOST) ", out, list)
		if list[0] != "consumers" {
			assert.Regexp(t, `(?m)^(|.* )shop `, out, list)
		}
		if list[0] != "consumers" {
			assert.Equal(t, strings.Fields(out)[:2], strings.Fields(r.ok(list...))[:2], list)
		}
		assert.NotContains(t, r.ok(append(list, "--vhost", "/")...), "shop")
		assert.Contains(t, r.exits(exitUsage, append(list, "-A", "--vhost", "shop")...), "not both")
	}
	assert.Regexp(t, `(?m)^(|.* )shop `, r.ok("policy", "list"))
	_, _, said := runCommand(t, append([]string{"consumers", "--vhost", "/"}, r.flags...)...)
	assert.Equal(t, "none in virtual host \"/\"; -A lists those of all\n", said)
	_, _, said = runCommand(t, append([]string{"scheduled", "list"}, r.flags...)...)
	assert.Contains(t, said, "No delayed message with a message-id of yours waits; those without one are listed")
	assert.Contains(t, r.exits(exitUsage, "consumers", "orders", "-A"), "--vhost instead of -A")
	assert.Contains(t, r.exits(exitUsage, "deadlines", "list", "orders", "-A"), "--vhost instead of -A")
}

// TestDeleteKeepsWaitingDeadLetters: a queue without messages has dead letters that their target does not take yet. It goes with them only if
// somebody says how many. So does one with dead letters in a queue of its own.
func TestDeleteKeepsWaitingDeadLetters(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	arguments := amqp091.Table{"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "full"}
	for name, arguments := range map[string]amqp091.Table{"full": {"x-max-length": 0, "x-overflow": "reject-publish"}, "retained": arguments} {
		_, err := ch.QueueDeclare(name, true, false, false, false, arguments)
		require.NoError(t, err)
	}
	c, err := ch.PublishWithDeferredConfirm("", "retained", false, false, amqp091.Publishing{Expiration: "1"})
	require.NoError(t, err)
	require.True(t, c.Wait())
	r.waits("retained", 0)
	require.Eventually(t, func() bool { // its target refuses it
		api := strings.Replace(r.flags[1], "//", "//guest:other@", 1)
		return strings.Contains(fetch(t, api+"/api/queues/%2F/retained"), `"dead_letters":1,`)
	}, time.Minute, 20*time.Millisecond)
	const question = `has messages: 0, and dead letters that go with it: 1; to delete them with it add --confirm 1`
	assert.Contains(t, r.exits(exitUnconfirmed, "delete", "queue", "retained"), question)
	assert.Contains(t, r.exits(exitUnconfirmed, "delete", "queue", "retained", "--confirm", "0"), question)
	r.ok("delete", "queue", "retained", "--confirm", "1")

	_, err = ch.QueueDeclare("own", true, false, false, false, amqp091.Table{"x-dead-letter-queue": true})
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", "own", false, false, amqp091.Publishing{Expiration: "1"}))
	r.waits("own/$deadletterqueue", 1)
	assert.Contains(t, r.exits(exitUnconfirmed, "delete", "queue", "own"), question)
	r.ok("delete", "queue", "own", "--confirm", "1")
}

// TestPublishFromStandardInput, from which a script hands over a body.
func TestPublishFromStandardInput(t *testing.T) {
	r := startRunning(t)
	r.ok("declare", "queue", "orders")
	root := Tree(node.Build{})
	root.SetArgs(append([]string{"publish", "orders"}, r.flags...))
	root.SetIn(strings.NewReader("from a pipe"))
	root.SetOut(new(strings.Builder))
	require.NoError(t, root.ExecuteContext(t.Context()))
	assert.Equal(t, "from a pipe", r.ok("get", "orders", "--body"))
}

// TestConnectionsAreClosedByName: by their addresses, or by the name that the client has given itself, if only one has it.
func TestConnectionsAreClosedByName(t *testing.T) {
	r := startRunning(t)
	closed := make([]chan *amqp091.Error, 3)
	for i, name := range []string{"worker", "twin", "twin"} {
		config := amqp091.Config{Properties: amqp091.NewConnectionProperties()}
		config.Properties.SetClientConnectionName(name)
		conn, err := amqp091.DialConfig(r.amqp, config)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		closed[i] = conn.NotifyClose(make(chan *amqp091.Error, 1))
		ch, err := conn.Channel()
		require.NoError(t, err)
		require.NoError(t, ch.Qos(5, 0, false))
	}
	var list []struct{ Name string }
	require.NoError(t, json.Unmarshal([]byte(r.ok("connections", "-o", "json")), &list))
	require.Len(t, list, 3)
	assert.Regexp(t, `(?m)^127\.0\.0\.1:\d+ -> \S+ +worker +guest +/ +running +1 +0 +0 `, r.ok("connections"))
	assert.Contains(t, r.ok("channels"), "(1)")
	assert.Contains(t, r.exits(exitFailed, "connections", "close", "twin"), "2 connections have this name")
	assert.Contains(t, r.exits(exitNotFound, "connections", "close", "none"), "curfew connections")
	assert.Contains(t, r.exits(exitUsage, "connections", "shut"), "has close")
	r.ok("connections", "close", "worker", "--reason", "it is stuck")
	assert.Contains(t, (<-closed[0]).Reason, "it is stuck")
}

// TestConsumersSaysWhoHolds: by connection and user, with what is past its deadline first.
func TestConsumersSaysWhoHolds(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	for _, queue := range []string{"orders", "orders.dead"} {
		deliveries, err := ch.Consume(queue, queue+"-worker", false, false, false, false, nil)
		require.NoError(t, err)
		if queue == "orders" {
			r.send(ch, amqp091.Publishing{Expiration: "20", MessageId: "m"})
			<-deliveries
		}
	}
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`(?m)^orders +\S+ -> \S+ +1 +\S+ +1 +up +0 +guest +orders-worker `).MatchString(r.ok("consumers"))
	}, time.Minute, 20*time.Millisecond)
	list := r.ok("consumers")
	assert.Less(t, strings.Index(list, "orders-worker"), strings.Index(list, "orders.dead-worker"), list)
	assert.NotContains(t, r.ok("consumers", "orders"), "orders.dead-worker")
	assert.Regexp(t, `(?m)^ +orders-worker of user guest at .* holds 1, the oldest since \S+; past their deadlines: 1$`, r.ok("queue", "show", "orders"))
}
