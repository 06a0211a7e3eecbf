package rabbitmq

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/cluster"
)

// retries are work queues whose workers reject everything, on a node that is set up as the plan prints it.
type retries struct {
	t     testing.TB
	n     *node
	vhost string
	url   string // of guest
	own   string // of Curfew's user, which may do what the plan gives it
	watch string // a file
	ch    *amqp091.Channel

	mu    sync.Mutex
	tries map[string][]try // by queue and message-id
}

type try struct{ delivered, rejected time.Time }

// backoff is that of the rule in planRetries.
var backoff = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// planRetries declares work queues that are bound to the topic exchange shop, and sets up what the plan prints for them.
func planRetries(t *testing.T, n *node, park string, queues ...string) *retries {
	t.Helper()
	vhost, at := n.vhost(t)
	r := &retries{t: t, n: n, vhost: vhost, url: at, watch: t.TempDir() + "/watch.yaml", tries: map[string][]try{}}
	check(t, os.WriteFile(r.watch, []byte(`queues: [{queue: "*retry.delay", mode: retry, backoff: [500ms, 1s, 2s], jitter: 10%, park: "`+park+`"}]`), 0o600))
	r.ch = openChannel(t, dial(t, at))
	check(t, r.ch.ExchangeDeclare("shop", "topic", true, false, false, false, nil))
	for _, queue := range queues {
		_, err := r.ch.QueueDeclare(queue, true, false, false, false, amqp091.Table{"x-queue-type": "quorum"})
		check(t, err)
		check(t, r.ch.QueueBind(queue, "order.*", "shop", false, nil))
	}
	user := "retries-" + strings.ToLower(t.Name())
	env := []string{"CURFEW_PRIMARY_URL=" + at, "CURFEW_PRIMARY_API_URL=" + n.http, "CURFEW_WATCH=" + r.watch}
	set := run(t, env, "", "rabbitmq", "plan", "--emit", "definitions", "--curfew-user", user, "--retry", strings.Join(queues, ","))
	r.n.api(t, http.MethodPost, "definitions", json.RawMessage(set), nil)
	n.api(t, http.MethodPut, "users/"+user, map[string]string{"password": user, "tags": "monitoring"}, nil)
	t.Cleanup(func() { n.api(t, http.MethodDelete, "users/"+user, nil, nil) })
	u, err := url.Parse(at)
	check(t, err)
	u.User = url.UserPassword(user, user)
	r.own = u.String()
	return r
}

// reject runs workers that reject whatever they get, except what this function accepts.
func (r *retries) reject(accept func(queue string, times int) bool, queues ...string) {
	r.t.Helper()
	for _, queue := range queues {
		ch := openChannel(r.t, dial(r.t, r.url))
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		check(r.t, err)
		go func() {
			for d := range deliveries {
				now := time.Now()
				r.mu.Lock()
				name := queue + " " + d.MessageId
				r.tries[name] = append(r.tries[name], try{now, time.Now()})
				times := len(r.tries[name])
				r.mu.Unlock()
				if d.RoutingKey != "order.new" {
					r.t.Errorf("%s has come with the routing key %s", name, d.RoutingKey)
				}
				if accept(queue, times) {
					_ = d.Ack(false)
				} else {
					_ = d.Nack(false, false)
				}
			}
		}()
	}
}

func (r *retries) publish(id string) {
	r.t.Helper()
	check(r.t, r.ch.Publish("shop", "order.new", false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, MessageId: id, Body: []byte(id), Headers: amqp091.Table{"x-delay": 60_000}}))
}

// depth is how many messages are ready in a queue; -1: there is no such queue.
func (r *retries) depth(queue string) int {
	found, err := r.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		r.ch = openChannel(r.t, dial(r.t, r.url))
		return -1
	}
	return found.Messages
}

// waitsIn is the queue in which what was rejected in a work queue waits.
func waitsIn(work string) string {
	if family() == cluster.Family3 {
		return work + ".retry.delay"
	}
	return "retry.delay"
}

// TestRetries: two queues share an exchange and fail on every message. Each of them comes back after its own back-off, never earlier, and is parked once
// after its last try, although the Curfew that holds them is killed with -9 and another one takes over, without Redis.
func TestRetries(t *testing.T) {
	t.Parallel()
	r := planRetries(t, sharedNode(t), "{queue}.failed", "jobs", "mail")
	first := startReplica(t, r.n, r.own, "", "one", r.watch)
	eventually(t, answerLimit, "the queues to be held", func() bool {
		return first.queue(waitsIn("jobs")).State == "keeping" && first.queue(waitsIn("mail")).State == "keeping"
	})
	r.reject(func(queue string, times int) bool { return queue == "mail" && times == 3 }, "jobs", "mail")
	const all = 50
	for i := range all {
		r.publish(fmt.Sprint(i))
	}
	eventually(t, answerLimit, "all to wait", func() bool {
		return first.queue(waitsIn("jobs")).Held >= all
	})
	path, err := binary()
	check(t, err)
	eventually(t, answerLimit, "what waits to be listed", func() bool { // on a busy machine a wait may just have ended
		out := new(testenv.Log)
		_ = command(out, nil, path, "scheduled", "list", waitsIn("jobs"), "--count", "3", "--url", "http://"+first.api).Run()
		return strings.Contains(out.String(), "jobs")
	})
	time.Sleep(time.Second) // in the second wait
	check(t, first.cmd.Process.Kill())
	startReplica(t, r.n, r.own, "", "two", r.watch)
	eventually(t, time.Minute, "all jobs to be parked", func() bool { return r.depth("jobs.failed") == all })
	eventually(t, answerLimit, "everything to end", func() bool {
		return r.depth("jobs") == 0 && r.depth("mail") == 0 && r.depth(waitsIn("jobs"))+r.depth(waitsIn("mail")) == 0
	})
	require.Zero(t, r.depth("mail.failed"))
	r.mu.Lock()
	defer r.mu.Unlock()
	var late []time.Duration
	for i := range all {
		for queue, want := range map[string]int{"jobs": 4, "mail": 3} {
			tries := r.tries[fmt.Sprintf("%s %d", queue, i)]
			require.Len(t, tries, want, "%s %d", queue, i)
			for n := range tries[1:] {
				waited := tries[n+1].delivered.Sub(tries[n].rejected)
				require.GreaterOrEqual(t, waited, backoff[n], "%s %d", queue, i)
				late = append(late, waited-backoff[n])
			}
		}
	}
	slices.Sort(late)
	t.Logf("late, jitter of up to 10%% included: p50 %v, latest %v", late[len(late)/2], late[len(late)-1])
	parked, ok, err := r.ch.Get("jobs.failed", true)
	check(t, err)
	require.True(t, ok)
	require.Equal(t, parked.MessageId, string(parked.Body))
	require.EqualValues(t, 60_000, parked.Headers["x-delay"], "a header of its own")
}

// TestRetriesOfADecimal: RabbitMQ 4 cannot deliver a message with a decimal in a header over AMQP 1.0. It is tried again and parked over 0-9-1, as is what waits beside
// it, and that is told.
func TestRetriesOfADecimal(t *testing.T) {
	t.Parallel()
	r := planRetries(t, sharedNode(t), "{queue}.failed", "jobs")
	c := startReplica(t, r.n, r.own, "", "one", r.watch)
	eventually(t, answerLimit, "the queue to be held", func() bool { return c.queue(waitsIn("jobs")).State == "keeping" })
	r.reject(func(string, int) bool { return false }, "jobs")
	ids := []string{"before", "decimal", "after"}
	for _, id := range ids {
		headers := amqp091.Table{"CC": []any{"nowhere"}}
		if id == "decimal" {
			headers["price"] = amqp091.Decimal{Scale: 2, Value: 314}
		}
		check(t, r.ch.Publish("shop", "order.new", false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, MessageId: id, AppId: "app", UserId: "guest", Headers: headers, Body: []byte(id)}))
	}
	eventually(t, time.Minute, "all to be parked", func() bool { return r.depth("jobs.failed") == len(ids) })
	if troubles := c.queue(waitsIn("jobs")).Troubles; family() != cluster.Family3 {
		require.Len(t, troubles, 1)
		require.Contains(t, troubles[0].Reason, "RabbitMQ fails to deliver a message over AMQP 1.0: Session error: function_clause")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		tries := r.tries["jobs "+id]
		require.Len(t, tries, len(backoff)+1, id)
		for n := range tries[1:] {
			require.GreaterOrEqual(t, tries[n+1].delivered.Sub(tries[n].rejected), backoff[n], id)
		}
		parked, ok, err := r.ch.Get("jobs.failed", true)
		check(t, err)
		require.True(t, ok)
		require.Equal(t, parked.MessageId, string(parked.Body))
		if parked.MessageId == "decimal" {
			require.Equal(t, amqp091.Decimal{Scale: 2, Value: 314}, parked.Headers["price"])
		}
	}
}

// TestRetriesOverBothProtocols: a Curfew that can connect with AMQP 0-9-1 only brings a message back, and the one that follows it and reads over AMQP 1.0 where
// RabbitMQ has it goes on with its count.
func TestRetriesOverBothProtocols(t *testing.T) {
	t.Parallel()
	r := planRetries(t, sharedNode(t), "{queue}.failed", "jobs")
	p := startProxy(t, r.n.addr)
	p.bar()
	barred := strings.Replace(r.own, r.n.addr, p.addr, 1)
	require.NotEqual(t, r.own, barred)
	r.reject(func(string, int) bool { return false }, "jobs")
	first := startReplica(t, r.n, barred, "", "one", r.watch)
	eventually(t, answerLimit, "the queue to be held", func() bool { return first.queue(waitsIn("jobs")).State == "keeping" })
	r.publish("a")
	tries := func() []try {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.tries["jobs a"])
	}
	eventually(t, answerLimit, "it to be back, and to wait once more", func() bool { return len(tries()) > 1 && first.queue(waitsIn("jobs")).Held == 1 })
	check(t, first.cmd.Process.Kill())
	startReplica(t, r.n, r.own, "", "two", r.watch)
	eventually(t, time.Minute, "it to be parked", func() bool { return r.depth("jobs.failed") == 1 })
	all := tries()
	require.Len(t, all, len(backoff)+1)
	for n := range all[1:] {
		require.GreaterOrEqual(t, all[n+1].delivered.Sub(all[n].rejected), backoff[n])
	}
	require.Zero(t, r.depth("jobs")+r.depth(waitsIn("jobs")))
}

// TestRetryConditions: what is missing is told, and nothing is lost for it.
func TestRetryConditions(t *testing.T) {
	t.Parallel()
	r := planRetries(t, sharedNode(t), "{queue}.failed", "jobs")
	check(t, r.n.tryAPI(http.MethodDelete, "queues/"+r.vhost+"/jobs.failed", nil, nil))
	c := startReplica(t, r.n, r.own, "", "one", r.watch)
	told := func(name string) func() bool {
		return func() bool {
			for _, trouble := range c.queue(waitsIn("jobs")).Troubles {
				if trouble.Name == name {
					return true
				}
			}
			return false
		}
	}
	eventually(t, time.Minute, "the missing queue to be told", told("park"))
	require.False(t, told("policy")())
	r.reject(func(string, int) bool { return false }, "jobs")
	r.publish("a")
	eventually(t, answerLimit, "a try after the last one", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.tries["jobs a"]) >= 5
	})
	_, err := r.ch.QueueDeclare("jobs.failed", true, false, false, false, amqp091.Table{"x-queue-type": "quorum"})
	check(t, err)
	eventually(t, answerLimit, "it to be parked", func() bool { return r.depth("jobs.failed") == 1 })
	var policies []struct{ Name string }
	r.n.api(t, http.MethodGet, "policies/"+r.vhost, nil, &policies)
	for _, p := range policies {
		if !strings.HasSuffix(p.Name, ".delay") {
			r.n.api(t, http.MethodDelete, "policies/"+r.vhost+"/"+p.Name, nil, nil)
		}
	}
	eventually(t, 2*time.Minute, "the missing policy to be told, and the queue no longer", func() bool { return told("policy")() && !told("park")() })
}

// TestRetriesInAnAlarm: while RabbitMQ has too little memory, it takes nothing that is published. What is to be parked waits for that, and is parked once. What is
// due comes back meanwhile, and Curfew can stop.
func TestRetriesInAnAlarm(t *testing.T) {
	t.Parallel()
	n := loneNode(t)
	r := planRetries(t, n, "{queue}.failed", "jobs")
	c := startReplica(t, n, r.own, "", "one", r.watch)
	eventually(t, answerLimit, "the queue to be held", func() bool { return c.queue(waitsIn("jobs")).State == "keeping" })
	r.reject(func(string, int) bool { return false }, "jobs")
	tries := func(id string) int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.tries["jobs "+id])
	}
	untilTries := func(id string, count int) {
		eventually(t, answerLimit, "tries of "+id, func() bool { return tries(id) == count })
	}
	r.publish("a")
	untilTries("a", 3)
	r.publish("b")
	t.Cleanup(func() { n.runOutOfMemory(t, false) })
	n.runOutOfMemory(t, true)
	untilTries("a", 4)
	untilTries("b", 4)
	time.Sleep(6 * time.Second) // longer than a publish was once waited for
	n.runOutOfMemory(t, false)
	eventually(t, answerLimit, "both to be parked", func() bool { return r.depth("jobs.failed") == 2 })
	r.publish("c")
	untilTries("c", 3)
	n.runOutOfMemory(t, true)
	untilTries("c", 4)
	time.Sleep(time.Second)
	began := time.Now()
	check(t, c.cmd.Process.Signal(os.Interrupt))
	_ = c.cmd.Wait()
	require.Less(t, time.Since(began), 10*time.Second)
	require.Equal(t, []int{4, 4}, []int{tries("a"), tries("b")})
}

// TestRetryOfADeletedQueue: what waits for a work queue that is deleted meanwhile comes back when there is one of that name again, also from a Curfew
// that was started since and has seen nothing of that queue.
func TestRetryOfADeletedQueue(t *testing.T) {
	t.Parallel()
	r := planRetries(t, sharedNode(t), "{queue}.failed", "jobs")
	c := startReplica(t, r.n, r.own, "", "one", r.watch)
	eventually(t, answerLimit, "the queue to be held", func() bool { return c.queue(waitsIn("jobs")).State == "keeping" })
	r.publish("a")
	eventually(t, answerLimit, "the message", func() bool {
		m, ok, err := r.ch.Get("jobs", false)
		check(t, err)
		return ok && m.Nack(false, false) == nil
	})
	eventually(t, answerLimit, "it to wait", func() bool { return c.queue(waitsIn("jobs")).Held == 1 })
	_, err := r.ch.QueueDelete("jobs", false, false, false)
	check(t, err)
	eventually(t, answerLimit, "it to be discarded", func() bool { return c.queue(waitsIn("jobs")).Held == 0 })
	if family() != cluster.Family3 {
		eventually(t, 2*time.Minute, "it to be told", func() bool {
			told := c.queue(waitsIn("jobs")).Troubles
			return len(told) > 0 && told[0].Name == "undelivered" && strings.Contains(told[0].Reason, "are in retry.undelivered")
		})
	}
	_, err = r.ch.QueueDeclare("jobs", true, false, false, false, amqp091.Table{"x-queue-type": "quorum"})
	check(t, err)
	end(c.cmd)
	startReplica(t, r.n, r.own, "", "two", r.watch)
	if family() == cluster.Family3 { // there the operator has bound it
		check(t, r.ch.QueueBind("jobs", "", "jobs.retry.back", false, nil))
	}
	eventually(t, 6*time.Minute, "it to be back, which RabbitMQ tries every three minutes", func() bool { return r.depth("jobs") == 1 })
}
