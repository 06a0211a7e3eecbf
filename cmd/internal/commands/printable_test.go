package commands

import (
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNamesCannotSteerTheTerminal: whoever may publish chooses message-ids, and whoever may declare chooses names.
func TestNamesCannotSteerTheTerminal(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	_, err := ch.QueueDeclare("\x1b[31mq", false, false, false, false, nil)
	require.NoError(t, err)
	r.send(ch, amqp091.Publishing{MessageId: "\x1b[2Jid", Expiration: "3600000"})
	for _, args := range [][]string{{"queue", "list"}, {"queue", "show", "\x1b[31mq"}, {"queue", "peek", "orders"}, {"deadlines", "list"}, {"dlq", "search", "orders"}} {
		out := r.ok(args...)
		assert.NotContains(t, out, "\x1b", "%q", args)
		assert.Contains(t, out, `\x1b[`, "%q", args)
	}
	assert.NotContains(t, r.exits(exitFailed, "policy", "set", "\x1b[31mp", "(", "{}"), "\x1b")
}
