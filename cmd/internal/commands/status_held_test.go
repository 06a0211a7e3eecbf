package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/node"
)

// TestStatusNamesWhatIsParked: as long as there are parked messages, though nobody is alarmed about them.
func TestStatusNamesWhatIsParked(t *testing.T) {
	r := startRunning(t, "ALERTS="+alertsFile(t, "defaults: {wait: 10ms}\nrules: [{severity: warning}]"))
	ch := r.dead(0)
	_, err := ch.QueueDeclare("typo", true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "gone"})
	require.NoError(t, err)
	assert.NotContains(t, r.ok("status"), "!")
	for _, want := range []string{"1 message is", "2 messages are"} {
		require.NoError(t, ch.Publish("", "typo", false, false, amqp091.Publishing{Expiration: "1"}))
		line := "\n!                " + want + " parked in curfew.undeliverable: curfew dlq groups curfew.undeliverable\n"
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Contains(c, r.ok("status"), line) }, time.Minute, 20*time.Millisecond)
	}
	var s node.Status
	require.NoError(t, json.Unmarshal([]byte(r.ok("status", "-o", "json")), &s))
	assert.Equal(t, "ok", s.Health)
	require.Len(t, s.Undeliverable, 1)
	assert.Equal(t, 2, s.Undeliverable[0].Messages)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Regexp(c, `\nalerts           critical 0, other \d \(see curfew alert ls\)\n`, r.ok("status"))
	}, time.Minute, 20*time.Millisecond)
	assert.Contains(t, r.ok("alert", "list"), `2 in queue "typo"`)

	assert.Contains(t, r.ok("dlq", "list"), "(parked; curfew dlq groups curfew.undeliverable says why)\n")
	assert.Contains(t, r.exits(exitUsage, "dlq", "list", "typo"), "for the dead letters of a queue: curfew dlq peek typo\n")
	_, err = ch.QueuePurge("curfew.undeliverable", false)
	require.NoError(t, err)
	assert.NotContains(t, r.ok("status"), "!")
}

// TestStatusNamesTheVirtualHost in which messages are parked.
func TestStatusNamesTheVirtualHost(t *testing.T) {
	s := node.Status{}
	require.NoError(t, json.Unmarshal([]byte(`{"undeliverable": [{"vhost": "the shop", "messages": 3}]}`), &s))
	assert.Equal(t, []string{"!", `3 messages are parked in curfew.undeliverable of virtual host "the shop": curfew dlq groups curfew.undeliverable --vhost "the shop"`}, statusRows(&s)[0])
}

// TestStatusNamesANewFolder, which may be one that was not mounted.
func TestStatusNamesANewFolder(t *testing.T) {
	named := func(s node.Status) bool {
		return strings.Contains(fmt.Sprint(statusRows(&s)), "the data folder was empty at this start")
	}
	assert.True(t, named(node.Status{NewDataDir: true}))
	assert.False(t, named(node.Status{}))
}

// TestStatusCountsSilencedAlerts, of which nobody is told otherwise.
func TestStatusCountsSilencedAlerts(t *testing.T) {
	s := node.Status{}
	s.Alerts.Silenced = 2
	assert.Contains(t, fmt.Sprint(statusRows(&s)), "[alerts critical 0, other 0, silenced 2 (see curfew alert ls)]")
}

// TestHeldIsNotNext: a message that a consumer holds past its deadline is called that, and the next deadline is another's.
func TestHeldIsNotNext(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	require.NoError(t, ch.Qos(1, 0, false))
	r.send(ch, amqp091.Publishing{Expiration: "300"})
	got, err := ch.Consume("orders", "slow", false, false, false, false, nil)
	require.NoError(t, err)
	d := <-got
	alone := `\ndeadlines        1 pending, 1 held past its deadline \(see curfew consumers\)\n`
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Regexp(c, alone, r.ok("status")) }, time.Minute, 20*time.Millisecond)
	r.send(ch, amqp091.Publishing{Expiration: "3600000"})
	both := `\ndeadlines        2 pending, next in (1h0m0s|59m\d+s) \(20\S+Z\), 1 held past its deadline \(see curfew consumers\)\n`
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Regexp(c, both, r.ok("status")) }, time.Minute, 20*time.Millisecond)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Regexp(c, `\ndeadlines +2, the first \d+s ago, held\n`, r.ok("queue", "show", "orders"))
	}, time.Minute, 20*time.Millisecond)
	assert.Regexp(t, `\norders +1 +20\S+Z  \d+s ago, held  unacked `, r.ok("deadlines", "list"))
	require.NoError(t, d.Ack(false))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Regexp(c, `\ndeadlines        1 pending, next in \S+ \(20\S+Z\)\n`, r.ok("status"))
	}, time.Minute, 20*time.Millisecond)
}
