package plan

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/cluster"
)

const steep = `queues: [{queue: "*retry.delay", mode: retry, backoff: [1s, 5s], park: "{queue}.failed"}]`

// retryPlan is of a virtual host with work queues, of which those in policies have one.
func retryPlan(t *testing.T, version, watch string, policies map[string]map[string]any) *Plan {
	t.Helper()
	i := &cluster.Inventory{Server: cluster.Server{Product: "RabbitMQ", Version: version}, VHost: "/"}
	for _, name := range []string{"fixed", "jobs", "mail", "other"} {
		q := cluster.Queue{Name: name, Type: cluster.Quorum, Durable: true, State: "running", Policy: policies[name]}
		if name == "fixed" {
			q.Arguments = map[string]any{"x-dead-letter-exchange": "dlx"}
		}
		i.Queues = append(i.Queues, q)
	}
	w, err := cluster.ParseWatchFile([]byte(watch))
	require.NoError(t, err)
	return New(i, nil, nil, nil, w)
}

func definitionsOf(t *testing.T, p *Plan, queues ...string) (all map[string][]map[string]any) {
	t.Helper()
	s, err := p.Setup(SetupOptions{Retry: queues})
	require.NoError(t, err)
	for _, format := range Formats {
		var out bytes.Buffer
		require.NoError(t, s.Emit(&out, format))
		if format == "definitions" {
			require.NoError(t, json.Unmarshal(out.Bytes(), &all))
		}
	}
	return all
}

// named returns a key of what is listed, by name.
func named(all []map[string]any, key string) map[string]any {
	values := map[string]any{}
	for _, one := range all {
		name, _ := one["name"].(string)
		values[name] = one[key]
	}
	return values
}

func TestRetriesOnRabbitMQ4(t *testing.T) {
	all := definitionsOf(t, retryPlan(t, "4.0.5", steep, map[string]map[string]any{"mail": {"max-length": int64(5)}}), "jobs", "mail", "other")
	require.Equal(t, map[string]any{"retry": "fanout", "retry.back": "headers", "retry.undelivered": "fanout"}, named(all["exchanges"], "type"))
	require.Contains(t, named(all["queues"], "name"), "mail.failed")
	require.Len(t, all["bindings"], 2, "Curfew makes the others")
	require.Equal(t, map[string]any{"alternate-exchange": "retry.undelivered"}, named(all["policies"], "definition")["curfew.retry.back"])
	require.Equal(t, map[string]any{"curfew.retry": "^(jobs|other)$", "curfew.mail": "^mail$", "curfew.retry.delay": `^retry\.delay$`, "curfew.retry.back": `^retry\.back$`}, named(all["policies"], "pattern"))
	require.Equal(t, map[string]any{"dead-letter-exchange": "retry", "max-length": 5.0}, named(all["policies"], "definition")["curfew.mail"], "what it drops stays as it was")
	require.Contains(t, all["permissions"][0]["write"], `|jobs|jobs\.failed|mail|`)
	require.Contains(t, all["permissions"][0]["write"], `|retry\.back)`)
	require.Contains(t, all["permissions"][0]["read"], `retry\.back`)

	lead := map[string]any{"dead-letter-exchange": "retry", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}
	all = definitionsOf(t, retryPlan(t, "4.0.5", steep, map[string]map[string]any{"jobs": lead}), "mail")
	require.Equal(t, "^(jobs|mail)$", named(all["policies"], "pattern")["curfew.retry"], "it stays for the first one")
	all = definitionsOf(t, retryPlan(t, "4.0.5", steep, map[string]map[string]any{"jobs": lead}))
	require.Contains(t, all["permissions"][0]["write"], `jobs\.failed`)
}

func TestRetriesOnRabbitMQ3(t *testing.T) {
	all := definitionsOf(t, retryPlan(t, "3.10.8", steep, nil), "jobs", "mail")
	require.Equal(t, map[string]any{"jobs.retry": "fanout", "jobs.retry.back": "fanout", "mail.retry": "fanout", "mail.retry.back": "fanout"}, named(all["exchanges"], "type"))
	require.Len(t, all["bindings"], 4)
	require.Equal(t, map[string]any{"dead-letter-exchange": "jobs.retry", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"},
		named(all["policies"], "definition")["curfew.jobs"])
	require.Contains(t, all["permissions"][0]["write"], `amq\.default`, "to park")
}

// TestRetriesOfRabbitMQ: where RabbitMQ's own delayed retry waits just as long, it does that.
func TestRetriesOfRabbitMQ(t *testing.T) {
	const linear = `queues: [{queue: retry.delay, mode: retry, backoff: [5s, 10s, 12s]}]`
	all := definitionsOf(t, retryPlan(t, "4.3.6", linear, nil), "jobs")
	require.Equal(t, map[string]any{"curfew.jobs": map[string]any{"delayed-retry-type": "all", "delayed-retry-min": 5000.0, "delayed-retry-max": 12_000.0}}, named(all["policies"], "definition"))
	require.Empty(t, all["exchanges"])
	require.NotEmpty(t, definitionsOf(t, retryPlan(t, "4.3.6", steep, nil), "jobs")["exchanges"])
}

func TestRetriesRefused(t *testing.T) {
	for queue, want := range map[string]string{"none": "no such queue", "fixed": "is declared with x-dead-letter-exchange"} {
		_, err := retryPlan(t, "4.3.6", steep, nil).Setup(SetupOptions{Retry: []string{queue}})
		require.ErrorContains(t, err, want)
	}
	_, err := retryPlan(t, "4.3.6", `queues: [{queue: "*", mode: delay}]`, nil).Setup(SetupOptions{Retry: []string{"jobs"}})
	require.ErrorContains(t, err, "no rule with mode retry is for a queue retry.delay")
}
