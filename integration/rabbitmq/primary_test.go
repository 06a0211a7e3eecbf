package rabbitmq

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
	"curfew/monitor/incident"
	"curfew/monitor/rabbitmq"
)

// replica is a `curfew serve` that keeps the deadlines of RabbitMQ.
type replica struct {
	t   testing.TB
	cmd *exec.Cmd
	api string
	ops string
	log *testenv.Log
}

// startReplica starts a replica with the rules; redis may be empty.
func startReplica(t testing.TB, n *node, url, redis, name, watch string) *replica {
	t.Helper()
	path, err := binary()
	check(t, err)
	r := &replica{t: t, api: testenv.FreeAddr(), ops: testenv.FreeAddr(), log: new(testenv.Log)}
	r.cmd = command(r.log, []string{"CURFEW_PRIMARY_URL=" + url, "CURFEW_PRIMARY_API_URL=" + n.http, "CURFEW_WATCH=" + watch, "CURFEW_REDIS_URL=" + redis,
		"CURFEW_INSTANCE=" + name, "CURFEW_HTTP_ADDR=" + r.api, "CURFEW_OPS_ADDR=" + r.ops, "CURFEW_LOG_FORMAT=console"}, path, "serve")
	check(t, r.cmd.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, r.log.Tail(6000))
		}
		end(r.cmd)
	})
	eventually(t, answerLimit, name+" to be ready", func() bool {
		res, err := http.Get("http://" + r.ops + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return r
}

// get asks it for a path below /api/curfew; false if it does not answer.
func (r *replica) get(path string, out any) bool {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.api+"/api/curfew/"+path, http.NoBody)
	if err != nil {
		return false
	}
	req.SetBasicAuth("guest", "guest")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK && json.NewDecoder(res.Body).Decode(out) == nil
}

// keeps returns the queues that it keeps and whose messages it has all seen, with the number of messages held.
func (r *replica) keeps() map[string]int {
	var s rabbitmq.Status
	kept := map[string]int{}
	if r.get("rabbitmq", &s) {
		for _, q := range s.Queues {
			if q.Here && q.State == "keeping" {
				kept[q.Queue] = q.Held
			}
		}
	}
	return kept
}

// queue returns the status of a watched queue; empty if there is none.
func (r *replica) queue(name string) (found rabbitmq.Queue) {
	var s rabbitmq.Status
	r.get("rabbitmq", &s)
	for _, one := range s.Queues {
		if one.Queue == name {
			found = one
		}
	}
	return found
}

// metric returns the sum of a metric's series.
func (r *replica) metric(name string) (sum float64) {
	res, err := http.Get("http://" + r.ops + "/metrics")
	if err != nil {
		return -1
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
			if err == nil {
				sum += value
			}
		}
	}
	return sum
}

// TestReplicasShareQueues: two Curfews share the kept queues; one of them is killed with -9, and the other keeps its queues within seconds. Every
// message that is due is dead-lettered once, none early, and the rest still waits.
func TestReplicasShareQueues(t *testing.T) {
	t.Parallel()
	const queues, messages = 4, 300
	n := sharedNode(t)
	_, url := n.vhost(t)
	redis := testenv.StartRedis(t)
	var kept []*keptQueue
	for i := range queues {
		kept = append(kept, declareKept(t, url, fmt.Sprintf("keep-%d", i), queueTypes[i%2], nil))
	}
	a := startReplica(t, n, url, redis.URL, "a", "off:*.dead,keep:keep-*,off:*")
	eventually(t, answerLimit, "all queues at a", func() bool { return len(a.keeps()) == queues })
	b := startReplica(t, n, url, redis.URL, "b", "off:*.dead,keep:keep-*,off:*")
	eventually(t, time.Minute, "two queues at each", func() bool { return len(a.keeps()) == 2 && len(b.keeps()) == 2 })

	// A third of the messages is due before, around and after the kill, behind one that stays.
	due := 0
	for _, q := range kept {
		due = 0
		q.fill(messages, strconv.Itoa, func(i int) time.Duration {
			if i == 0 || i%3 != 0 {
				return time.Hour
			}
			due++
			return 2*time.Second + time.Duration(i)*40*time.Millisecond
		})
	}
	eventually(t, answerLimit, "everything to be held", func() bool {
		held := 0
		for _, r := range []*replica{a, b} {
			for _, n := range r.keeps() {
				held += n
			}
		}
		dead := 0
		for _, q := range kept {
			dead += q.dead()
		}
		return held+dead >= queues*messages
	})
	killed := time.Now()
	end(a.cmd)
	eventually(t, time.Minute, "all queues at b", func() bool { return len(b.keeps()) == queues })
	took := time.Since(killed)
	t.Logf("b keeps all queues %v after the kill", took.Round(time.Millisecond))
	if took > 20*time.Second { // 5 s on a machine that is not busy
		t.Errorf("b keeps all queues only after %v", took)
	}
	for _, q := range kept {
		q.expectDead(due, time.Minute)
		late := q.lateness()
		t.Logf("%s: lateness p50 %v, p99 %v, max %v", q.name, percentile(late, 0.5), percentile(late, 0.99), late[len(late)-1])
	}
	if fired := b.metric("curfew_deadlines_fired_total"); fired == 0 {
		t.Error("b has fired nothing by its metrics")
	}
	if up := b.metric("curfew_rabbitmq_redis_up"); up != 1 {
		t.Errorf("curfew_rabbitmq_redis_up is %v", up)
	}

	// A planned stop gives everything back before it ends.
	check(t, b.cmd.Process.Signal(syscall.SIGTERM))
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("b did not end well: %v", err)
	}
	b.cmd = new(exec.Cmd)
	for _, q := range kept {
		ids := q.drain(t, messages-due)
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id] = true
		}
		if len(seen) != messages-due {
			t.Errorf("%s: %d messages are left, %d of them different; want %d", q.name, len(ids), len(seen), messages-due)
		}
	}
}

// TestServeWithRabbitMQ: one Curfew without Redis observes and keeps; a policy that forbids keeping lets the queue go, and its end takes it
// back; a consumer has the queue for itself. Redis and other Curfews are not needed.
func TestServeWithRabbitMQ(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	vhost, url := n.vhost(t)
	q := declareKept(t, url, "keep-one", queueTypes[1], nil)
	check(t, q.ch.ExchangeDeclare("work", "fanout", true, false, false, false, nil))
	_, err := q.ch.QueueDeclare("seen", true, false, false, false, amqp091.Table{})
	check(t, err)
	check(t, q.ch.QueueBind("seen", "", "work", false, nil))
	r := startReplica(t, n, url, "", "one", "off:*.dead,keep:keep-*,observe:seen")
	eventually(t, answerLimit, "the queue to be kept and the other one tapped", func() bool {
		o := r.queue("seen").Observed
		return r.queue("keep-one").State == "keeping" && o != nil && o.Tapped
	})
	q.fill(90, strconv.Itoa, func(i int) time.Duration {
		if i%3 == 0 {
			return time.Hour
		}
		return time.Second
	})
	q.expectDead(60, answerLimit)
	eventually(t, answerLimit, "what is held, and what has expired", func() bool {
		q := r.queue("keep-one")
		return q.Held == 30 && q.Expired == 60 && r.metric("curfew_deadlines_fired_total") == 60
	})
	if q := r.queue("keep-one"); q.P99 == nil || q.NextDue == 0 || q.Keeper != "one" || !q.Here || q.Type != "quorum" {
		t.Errorf("status: %+v", q)
	}

	// A message in an observed queue misses its deadline behind one that stays.
	for _, ttl := range []string{"3600000", "100"} {
		check(t, q.ch.PublishWithContext(t.Context(), "work", "", false, false, amqp091.Publishing{Expiration: ttl, MessageId: ttl}))
	}
	eventually(t, answerLimit, "the missed deadline", func() bool { return r.queue("seen").Observed != nil && r.queue("seen").Observed.Overdue == 1 })
	eventually(t, answerLimit, "the forecast", func() bool {
		var all []struct {
			Queue  string `json:"queue"`
			AtRisk int    `json:"at_risk"`
		}
		return r.get("forecasts", &all) && len(all) == 1 && all[0].Queue == "seen" && all[0].AtRisk >= 1
	})
	began := time.Now()
	overdue := func() (found incident.Incident) {
		var all struct{ Incidents []incident.Incident }
		r.get("incidents", &all)
		for _, one := range all.Incidents {
			if one.Condition == "rabbitmq_overdue" {
				found = one
			}
		}
		return found
	}
	eventually(t, answerLimit, "the incident", func() bool { return overdue().ID != "" })
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the incident began after %v", took)
	}
	told := overdue()
	if text := "RabbitMQ leaves messages past their deadlines: seen (vhost " + vhost + "): 1 message left, the first was due "; !strings.HasPrefix(told.Summary, text) || told.Level != incident.Warning {
		t.Errorf("%s: %s", told.Level, told.Summary)
	}
	if n := r.metric("curfew_rabbitmq_overdue_messages"); n != 1 {
		t.Errorf("%v messages are overdue by the metric", n)
	}
	curfew := func(words ...string) string {
		return run(t, nil, "", append(words, "--url", "http://"+r.api, "--password-file", passwordFile(t))...)
	}
	if out := curfew(strings.Fields(told.Command)[1:]...); !strings.Contains(out, "1 (1 still there)") {
		t.Errorf("%s:\n%s", told.Command, out)
	}
	var is struct {
		Health string `json:"health"`
		Late   int    `json:"late"`
	}
	if !r.get("status", &is) || is.Health != "degraded" || is.Late != 0 {
		t.Errorf("status: %+v", is)
	}
	_, err = q.ch.QueuePurge("seen", false)
	check(t, err)
	eventually(t, answerLimit, "its expiry on the stream", func() bool { return r.metric("curfew_deadlines_fired_total") == 61 })
	eventually(t, answerLimit, "the end of the incident", func() bool { return overdue().ID == "" })
	if r.metric(`curfew_deadlines_failed_total{queue="seen",reason="rabbitmq",vhost="`+vhost+`"}`) != 1 {
		t.Error("the metric does not say that RabbitMQ was late")
	}
	var after struct{ Incidents []incident.Incident }
	eventually(t, answerLimit, "what else is wrong", func() bool { return r.get("incidents", &after) })
	for _, one := range after.Incidents {
		if one.Condition == "deadline_fired_late" || one.Command != "curfew rabbitmq status" {
			t.Errorf("%s: %s", one.Summary, one.Command)
		}
	}

	// A policy that forbids keeping.
	n.api(t, http.MethodPut, "policies/"+vhost+"/limit", map[string]any{"pattern": "^keep-one$", "definition": map[string]any{"max-length": 1000}, "apply-to": "queues"}, nil)
	eventually(t, time.Minute, "the refusal", func() bool {
		return r.queue("keep-one").State == "refused" && r.queue("keep-one").Code == "max_length_drop_head"
	})
	eventually(t, answerLimit, "all to be given back", func() bool {
		found, err := q.ch.QueueDeclarePassive("keep-one", true, false, false, false, nil)
		return err == nil && found.Messages == 30
	})
	if r.metric("curfew_rabbitmq_queue_not_kept") != 1 {
		t.Error("the metric does not say that it is not kept")
	}
	n.api(t, http.MethodDelete, "policies/"+vhost+"/limit", nil, nil)
	eventually(t, time.Minute, "the queue to be kept again", func() bool { return r.queue("keep-one").State == "keeping" && r.queue("keep-one").Held == 30 })

	// A consumer has it for itself.
	if ids := q.drain(t, 30); breaks(ids) > 0 {
		t.Errorf("order: %v", ids)
	}
	eventually(t, answerLimit, "the keeper to stand aside", func() bool { return r.queue("keep-one").LastRelease != nil })
	status := run(t, nil, "", "rabbitmq", "status", "--url", "http://"+r.api, "--password-file", passwordFile(t))
	if !strings.Contains(status, "keep-one") || !strings.Contains(status, "seen") {
		t.Errorf("curfew rabbitmq status:\n%s", status)
	}
}

func passwordFile(t *testing.T) string {
	path := t.TempDir() + "/password"
	check(t, os.WriteFile(path, []byte("guest"), 0o600))
	return path
}
