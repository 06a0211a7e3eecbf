package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

// running is `curfew serve` and the flags by which commands find it.
type running struct {
	t     *testing.T
	amqp  string
	flags []string
}

func startRunning(t *testing.T, settings ...string) *running {
	t.Helper()
	setenv(t)
	web := testenv.FreeAddr()
	p := startServe(t, append(settings, "HTTP_ADDR="+web, "PASSWORD=other")...)
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("other\n"), 0o600))
	return &running{t, strings.Replace(p.line(t, "AMQP"), "PASSWORD", "other", 1), []string{"--url", "http://" + web, "--user", "guest", "--password-file", password}}
}

// ok runs a command that has to succeed, and returns what it prints.
func (r *running) ok(args ...string) string {
	r.t.Helper()
	code, out, errOut := runCommand(r.t, append(args, r.flags...)...)
	require.Zero(r.t, code, errOut)
	return out
}

// status is what curfew status prints, whether or not all is well.
func (r *running) status(args ...string) string {
	r.t.Helper()
	_, out, _ := runCommand(r.t, append(append([]string{"status"}, args...), r.flags...)...)
	return out
}

// ofTheMachine are the conditions that a machine with much else to do brings about.
var ofTheMachine = []string{"processor_starved", "deadline_fired_late", "lateness_high", "queue_locked_long", "part_stuck", "fsync_slow"}

// fails runs a command that has to fail, and returns what it prints to stderr.
func (r *running) fails(args ...string) string {
	r.t.Helper()
	code, out, errOut := runCommand(r.t, append(args, r.flags...)...)
	require.Contains(r.t, []int{exitFailed, exitNotFound}, code, out)
	return errOut
}

// exits runs a command that has to end with a code, and returns what it prints to stderr.
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
		var list []json.RawMessage
		require.NoError(r.t, json.Unmarshal([]byte(r.ok("queue", "peek", queue, "-n", "100", "-o", "json")), &list))
		return len(list) == n
	}, time.Minute, 20*time.Millisecond)
}
