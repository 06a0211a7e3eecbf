package main

import (
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"orders.dead ü 日本 -":       "orders.dead ü 日本 -",
		"\x1b[2J\x1b]0;title\a":    `\x1b[2J\x1b]0;title\a`,
		"a\tb\r\nc":                `a\tb\r\nc`,
		"\u009b31m\u202eabc\u2028": `\u009b31m\u202eabc\u2028`,
		"\xff\xfe":                 `\xff\xfe`,
		`a\b "c"`:                  `a\b "c"`,
	} {
		assert.Equal(t, want, visible(text, ""))
	}
	assert.Equal(t, "one\n\ttwo\\x1b", visible("one\n\ttwo\x1b", "\n\t"))
}

// TestNamesCannotSteerTheTerminal: whoever may publish chooses message-ids, whoever may declare names.
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
