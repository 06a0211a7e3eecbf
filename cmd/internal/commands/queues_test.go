package commands

import (
	"encoding/json"
	"testing"
	"time"

	"curfew/broker/deadline"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestQueueShow says what is in force, who says so, and what will become of the messages.
func TestQueueShow(t *testing.T) {
	r := startRunning(t)
	r.ok("declare", "queue", "orders", "--ttl", "1h", "--dlq", "dead")
	r.ok("declare", "queue", "events")
	assert.Regexp(t, `(?m)^time to live +1h \(argument x-message-ttl\)$`, r.ok("queue", "show", "orders"))
	r.ok("policy", "set", "short", "^", `{"message-ttl": 600000, "dead-letter-exchange": "late"}`, "--apply-to", "queues")
	r.ok("publish", "orders", "x")
	orders, events := r.ok("queue", "show", "orders"), r.ok("queue", "show", "events")
	assert.Regexp(t, `(?m)^time to live +10m \(policy short\)$`, orders)
	assert.Regexp(t, `(?m)^dead letters +to queue dead, by the default exchange \(argument x-dead-letter-exchange\)$`, orders)
	assert.Regexp(t, `(?m)^deadlines +1, next in (10m0s|9m5\ds)$`, orders)
	assert.Regexp(t, `(?m)^dead letters +to exchange late with their own routing key \(policy short\); there is no such exchange$`, events)
	assert.Regexp(t, `(?m)^deadlines +0$`, events)
	assert.Regexp(t, `(?m)^forecast +no ready message has a deadline$`, events)
	assert.Regexp(t, `(?m)^purpose +work \(inferred\)$`, events)
	r.ok("policy", "set", "short", "^", `{"message-ttl": 7200000, "curfew-purpose": "telemetry"}`, "--apply-to", "queues")
	assert.Regexp(t, `(?m)^time to live +1h \(argument x-message-ttl; policy short has 2h, and the lower one applies\)$`, r.ok("queue", "show", "orders"))
	events = r.ok("queue", "show", "events")
	assert.Regexp(t, `(?m)^dead letters +lost: it has no dead-letter exchange$`, events)
	assert.Regexp(t, `(?m)^purpose +telemetry \(policy short\)$`, events)

	r.ok("declare", "queue", "own", "--arg", "x-dead-letter-queue=true")
	r.ok("policy", "set", "short", "^", `{"dead-letter-queue": true}`, "--apply-to", "queues")
	for name, to := range map[string]string{
		"own":                  `to queue own/\$deadletterqueue \(argument x-dead-letter-queue\)`,
		"own/$deadletterqueue": `lost: it has no dead-letter exchange`,
		"events":               `to queue events/\$deadletterqueue \(policy short\)`,
		"orders":               `to queue dead, by the default exchange \(argument x-dead-letter-exchange\)`,
	} {
		assert.Regexp(t, `(?m)^dead letters +`+to+`$`, r.ok("queue", "show", name))
	}
	r.ok("policy", "set", "short", "^", `{"dead-letter-exchange": "late"}`, "--apply-to", "queues")
	assert.Regexp(t, `(?m)^dead letters +to exchange late with their own routing key \(policy short\); there is no such exchange$`, r.ok("queue", "show", "own"), "an exchange goes before it")
}

// TestWhereAQueueIs: an answer about one that is not there, or has nothing, names its virtual host, and others in which there is one.
func TestWhereAQueueIs(t *testing.T) {
	r := startRunning(t)
	r.ok("vhost", "add", "shop")
	r.ok("queue", "declare", "orders", "--vhost", "shop")
	for _, command := range []string{"show", "peek"} {
		assert.Contains(t, r.exits(exitNotFound, "queue", command, "orders"), "there is one with --vhost shop\n")
	}
	assert.NotContains(t, r.exits(exitNotFound, "queue", "show", "none"), "there is one")
	assert.Contains(t, r.fails("history", "orders"), `in virtual host "/"`)
	in := []string{"orders", "--vhost", "shop"}
	assert.Contains(t, r.exits(0, append([]string{"consumers"}, in...)...), `queue "orders" in virtual host "shop" has none`)
	assert.Contains(t, r.exits(0, append([]string{"dlq", "groups"}, in...)...), `no dead letter in "orders" in virtual host "shop" matches`)
	assert.Contains(t, r.exits(0, append([]string{"dlq", "replay", "--dry-run"}, in...)...), "there is nothing to replay")
	assert.Contains(t, r.exits(exitNotFound, "audit", "search", "-A"), "keeps no audit", "it takes -A, and there is none")
}

// TestQueueShowTellsItsIncident, with what to do and what was lost.
func TestQueueShowTellsItsIncident(t *testing.T) {
	r := startRunning(t)
	r.ok("declare", "queue", "orders")
	assert.NotContains(t, r.ok("queue", "show", "orders"), "incident")
	r.ok("publish", "orders", "x", "--ttl", "1ms")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		shown := r.ok("queue", "show", "orders")
		assert.Regexp(c, `(?m)^incident +critical: Messages expire`, shown)
		assert.Regexp(c, `(?m)^what to do +.*curfew policy set`, shown)
		assert.Regexp(c, `(?m)^last hour +1 lost, 0 dead-lettered$`, shown)
	}, time.Minute, 50*time.Millisecond)
}

// TestQueueListHasForecasts, in the table and for programs.
func TestQueueListHasForecasts(t *testing.T) {
	r := startRunning(t)
	r.ok("declare", "queue", "orders", "--ttl", "1h")
	r.ok("declare", "queue", "other")
	r.ok("publish", "orders", "x")
	var list []struct {
		Name     string
		Forecast *deadline.Forecast
	}
	require.Eventually(t, func() bool {
		list = nil
		require.NoError(t, json.Unmarshal([]byte(r.ok("queue", "list", "-o", "json")), &list))
		return len(list) == 2 && list[0].Forecast != nil
	}, time.Minute, 50*time.Millisecond)
	assert.Equal(t, 1, list[0].Forecast.Deadlines)
	assert.Nil(t, list[1].Forecast)
	assert.Regexp(t, `(?m)^/ +orders +work +1 +0 +\d +\S+ +\S+ +\S+ +\S+ +\S+ +\S+ +\S+ +- +0 +- +1 +classic `, r.ok("queue", "list"))
	assert.Regexp(t, `(?m)^/ +other +work +0 +0 +0 +\S+ +\S+ +\S+ +- +(?:0|-) +(?:0|-) +- +- +0 +- +0 +classic `, r.ok("queue", "list"))
}
