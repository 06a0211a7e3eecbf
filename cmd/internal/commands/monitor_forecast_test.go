package commands

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/node"
)

// TestOneNumberAtRisk: twelve queues for work and one whose expiry is meant. Status, list of queues, overview, page of queues, API, history and top
// have the same numbers at risk, and the same order: what is lost first.
func TestOneNumberAtRisk(t *testing.T) {
	r := startRunning(t)
	conn, err := amqp091.Dial(r.amqp)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	publish := func(queue string, args amqp091.Table, messages int, life time.Duration) {
		_, err := ch.QueueDeclare(queue, true, false, false, false, args)
		require.NoError(t, err)
		for range messages {
			c, err := ch.PublishWithDeferredConfirm("", queue, false, false, amqp091.Publishing{Expiration: strconv.FormatInt(life.Milliseconds(), 10)})
			require.NoError(t, err)
			require.True(t, c.Wait())
		}
	}
	var want []string
	for i := range 12 {
		name := fmt.Sprintf("work-%02d", (5*i+3)%12) // the order is neither that of the names nor of the numbers
		publish(name, nil, 1+(7*i)%12, time.Hour+time.Duration(i)*time.Minute)
		want = append(want, name)
	}
	publish("readings", amqp091.Table{"x-curfew-purpose": "telemetry"}, 9, 30*time.Minute)

	var s node.Status
	require.Eventually(t, func() bool {
		require.NoError(t, json.Unmarshal([]byte(r.ok("status", "-o", "json")), &s))
		return s.MessagesAtRisk == 78
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, []int{12, 9, 10}, []int{s.QueuesAtRisk, s.AsMeant, len(s.AtRisk)})
	for i, f := range s.AtRisk {
		require.Equal(t, want[i], f.Queue)
	}
	text := r.ok("status")
	require.Regexp(t, `\nat risk +78 messages; 9 more expire as meant\n`, text)
	require.Regexp(t, `work-03 \(vhost /\): 1 of 1 messages? with a deadline, the first in `, text)
	require.Contains(t, text, "and 2 queues more (see curfew queue list --sort risk)")

	names := func(text string) (list []string) {
		for _, name := range regexp.MustCompile(`work-\d\d|readings`).FindAllString(text, -1) {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
		return list
	}
	all := append(slices.Clone(want), "readings")
	require.Equal(t, all, names(r.ok("queue", "list", "--sort", "risk")))
	require.Contains(t, topLists, []string{"queue", "list", "--sort", "risk"}, "top shows it")
	_, page := r.visit("/queues", nil)
	_, page, _ = strings.Cut(page, "<tbody>")
	require.Equal(t, all, names(page))
	require.Contains(t, page, "9 as meant")

	_, page = r.visit("/", nil)
	require.Regexp(t, `>At risk</span><b [^>]*>78<div><span class="faint">9 more expire as meant<`, page)
	_, forecasts, _ := strings.Cut(page, "Forecast by queue")
	require.Equal(t, want[:8], names(forecasts)[:8])
	require.Regexp(t, `<b>78</b> at risk`, page, "the deadlines ahead")

	var list []struct {
		Queue   string `json:"queue"`
		AtRisk  int    `json:"at_risk"`
		AsMeant int    `json:"as_meant"`
	}
	_, body := r.ask("GET", "/api/curfew/forecasts", "", nil)
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Equal(t, []any{want[11], "readings", 0, 9}, []any{list[11].Queue, list[12].Queue, list[12].AtRisk, list[12].AsMeant})
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`at risk +78 +78 `).MatchString(r.ok("history", "--span", "1m"))
	}, time.Minute, 100*time.Millisecond)
	require.Contains(t, r.ok("queue", "show", "readings"), "9 of 9 that have a deadline expire as meant, the first in ")
	require.Contains(t, r.ok("queue", "show", "work-03"), "1 of 1 that have a deadline at risk, the first in ")
}

// TestOneOrderOfQueues: what is in a critical incident is worse than what is at risk, on the page, for the command and in top.
func TestOneOrderOfQueues(t *testing.T) {
	r := startRunning(t)
	r.ok("declare", "queue", "slow", "--ttl", "1h")
	r.ok("declare", "queue", "parked", "--ttl", "1ms", "--dlx", "gone")
	r.ok("publish", "slow", "x")
	r.ok("publish", "parked", "x")
	want := []string{"curfew.undeliverable", "parked", "slow"}
	names := func(text string) (list []string) {
		for _, name := range regexp.MustCompile(`curfew.undeliverable|slow|parked`).FindAllString(text, -1) {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
		return list
	}
	var page string
	require.Eventually(t, func() bool {
		_, page = r.visit("/queues", nil)
		_, page, _ = strings.Cut(page, "<tbody>")
		_, forecasts := r.ask("GET", "/api/curfew/forecasts", "", nil)
		return strings.Count(page, `tag bad">critical<`) == 2 && strings.Contains(forecasts, `"at_risk":1`)
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, want, names(page))
	table := r.ok("queue", "list", "--sort", "risk")
	require.Equal(t, want, names(table))
	require.Regexp(t, `curfew.undeliverable .* critical `, table)
	var one struct {
		Level *string `json:"incident_level"`
	}
	_, body := r.ask("GET", "/api/queues/%2F/curfew.undeliverable", "", nil)
	require.NoError(t, json.Unmarshal([]byte(body), &one))
	require.Equal(t, "critical", *one.Level)
	_, body = r.ask("GET", "/api/queues/%2F/slow", "", nil)
	require.Contains(t, body, `"incident_level":null`)
}
