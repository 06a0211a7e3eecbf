package rabbitmq

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq"
	"curfew/monitor/rabbitmq/cluster"
)

// delayedTypes are the types of exchange behind those of type x-delayed-message.
var delayedTypes = []string{"direct", "topic", "fanout", "headers"}

// TestDelayedPlugin runs applications that were written for the delayed-message plugin, unchanged, against RabbitMQ 4.3 with the plugin of
// deploy/rabbitmq/delayed and a Curfew beside it. Older versions refuse that plugin.
func TestDelayedPlugin(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	if family() != cluster.Family43 {
		return
	}
	modules, err := filepath.Abs("../../.cache/node/node_modules")
	check(t, err)
	for language, command := range map[string][]string{
		"go":     nil,
		"python": {"/usr/bin/python3", "../clients/pika/delayed.py"},
		"node":   {"env", "NODE_PATH=" + modules, "node", "../clients/node/delayed.js"},
		"php":    {"php", "../clients/php/delayed.php"},
		"java":   {"java", "-XX:TieredStopAtLevel=1", "-cp", "/usr/share/java/amqp-client.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar", "../clients/java/Delayed.java"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			_, url := n.vhost(t)
			a := application(goApplication{})
			if command != nil {
				a = foreign(command)
			}
			a.declare(t, url)
			r := startReplica(t, n, url, "", language, "delay:*.delay")
			eventually(t, answerLimit, "the delay queues to be kept", func() bool { return len(r.keeps()) == len(delayedTypes) })
			c := consumeJobs(t, url)
			var lines []string
			for _, kind := range delayedTypes {
				for id, delay := range map[string]string{"without": "none", "negative": "-5", "zero": "0", "soon": "400", "later": "2500"} {
					lines = append(lines, kind+" "+id+" eu.new eu "+delay)
				}
				lines = append(lines, kind+" elsewhere us.new us 300")
			}
			sent := a.publish(t, url, lines)
			count := len(delayedTypes)*5 + 1 // what goes elsewhere comes by the fanout alone
			eventually(t, answerLimit, "all messages", func() bool { return c.count() == count })
			time.Sleep(500 * time.Millisecond) // for what should not come
			for _, line := range lines {
				words := strings.Fields(line)
				kind, id := words[0], words[1]
				name := kind + " " + id
				if id == "elsewhere" && kind != "fanout" {
					require.Empty(t, c.arrived[name], name)
					continue
				}
				require.Len(t, c.arrived[name], 1, name)
				delay, _ := strconv.Atoi(words[4])
				late := c.arrived[name][0].Sub(sent[name]) - time.Duration(max(delay, 0))*time.Millisecond
				require.GreaterOrEqual(t, late, time.Duration(0), name)
				require.Less(t, late, 2*time.Second, name)
			}
			for _, kind := range delayedTypes {
				require.Empty(t, r.queue("delayed."+kind+".delay").Troubles)
			}
			refused := a.refused(t, url)
			require.Len(t, refused, 2)
			require.Contains(t, refused[0], "406")
			require.Contains(t, refused[0], "PRECONDITION_FAILED - Invalid argument, 'x-delayed-type' must be an existing exchange type")
			require.Contains(t, refused[1], "406")
			require.Contains(t, refused[1], "'unheard-of'")
		})
	}
}

// TestDelayedMessagesWithoutAQueue: what is due and leads nowhere holds up nothing, and is kept: by the plugin of deploy/rabbitmq/delayed as well as by
// rewritten definitions. Where an operator has made a delay queue without such a way out, Curfew says that messages stay.
func TestDelayedMessagesWithoutAQueue(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	d := declareDelays(t, n)
	exchanges := []string{"foo"}
	check(t, d.publish.QueueUnbind("jobs", "#", "foo.now", nil))
	check(t, d.publish.QueueBind("jobs", "a.b", "foo.now", false, nil))
	if family() == cluster.Family43 {
		exchanges = append(exchanges, "old")
		check(t, d.publish.ExchangeDeclare("old", "x-delayed-message", true, false, false, false, amqp091.Table{"x-delayed-type": "topic"}))
		check(t, d.publish.QueueBind("jobs", "a.b", "old", false, nil))
	}
	check(t, d.publish.ExchangeDeclare("nowhere", "topic", true, false, false, false, nil))
	stuck := amqp091.Table{"x-queue-type": "quorum", "x-dead-letter-exchange": "nowhere", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
	if family() != cluster.Family3 {
		stuck["x-delivery-limit"] = -1
	}
	_, err := d.publish.QueueDeclare("stuck.delay", true, false, false, false, stuck)
	check(t, err)
	check(t, d.publish.ExchangeDeclare("stuck", "headers", true, false, false, false, nil))
	r := startReplica(t, n, d.url, "", "one", "delay:*.delay")
	eventually(t, answerLimit, "the delay queues to be kept", func() bool { return len(r.keeps()) == len(exchanges)+1 })
	d.bound()
	const many = 40 // RabbitMQ has 32 of a queue in flight
	for i := range many + 1 {
		for _, exchange := range append(exchanges, "stuck") {
			key := "not.there"
			if i == many {
				key = "a.b"
			}
			c, err := d.publish.PublishWithDeferredConfirm(exchange, key, false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, MessageId: exchange + strconv.Itoa(i),
				Headers: amqp091.Table{"x-delay": 300}})
			check(t, err)
			require.True(t, c.Wait())
		}
	}
	eventually(t, answerLimit, "what has a queue", func() bool { return d.count() == len(exchanges) })
	for _, exchange := range exchanges {
		eventually(t, answerLimit, "what leads nowhere", func() bool {
			q, err := d.publish.QueueDeclarePassive(exchange+".undelivered", true, false, false, false, nil)
			check(t, err)
			return q.Messages == many
		})
	}
	eventually(t, 4*time.Minute, "the queue whose messages stay to be told", func() bool {
		told := r.queue("stuck.delay").Troubles
		return len(told) == 1 && told[0].Name == "undelivered" && strings.HasPrefix(told[0].Reason, "41 messages that were due are not delivered")
	})
	require.Zero(t, r.queue("stuck.delay").Aside)
	for _, exchange := range exchanges {
		require.Empty(t, r.queue(exchange+".delay").Troubles)
	}
}

// TestDelayedExchangeThatIsNew: its first message is on time, although RabbitMQ has no statistics of the delay queue yet, which alone name what operator policies
// set for other queues.
func TestDelayedExchangeThatIsNew(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	if family() != cluster.Family43 {
		return
	}
	vhost, at := n.vhost(t)
	n.api(t, http.MethodPut, "operator-policies/"+vhost+"/all", map[string]any{"pattern": ".*", "apply-to": "queues", "definition": map[string]any{"message-ttl": 86_400_000}}, nil)
	r := startReplica(t, n, at, "", "one", "delay:*.delay")
	eventually(t, answerLimit, "the queues to be looked at", func() bool {
		var s rabbitmq.Status
		return r.get("rabbitmq", &s) && s.LookedAt != 0
	})
	ch := openChannel(t, dial(t, at))
	check(t, ch.ExchangeDeclare("new", "x-delayed-message", true, false, false, false, amqp091.Table{"x-delayed-type": "fanout"}))
	_, err := ch.QueueDeclare("jobs", true, false, false, false, nil)
	check(t, err)
	check(t, ch.QueueBind("jobs", "", "new", false, nil))
	sent := time.Now()
	check(t, ch.Publish("new", "", false, false, amqp091.Publishing{Headers: amqp091.Table{"x-delay": 500}}))
	eventually(t, answerLimit, "the message", func() bool {
		q, err := ch.QueueDeclarePassive("jobs", true, false, false, false, nil)
		check(t, err)
		return q.Messages == 1
	})
	require.Less(t, time.Since(sent), 4*time.Second)
}

// TestDelayedPluginImported: definitions of the old plugin are imported as they are. The delay queue, if it is deleted, is made again, so that nothing
// goes out early.
func TestDelayedPluginImported(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	if family() != cluster.Family43 {
		return
	}
	vhost, url := n.vhost(t)
	n.api(t, http.MethodPost, "definitions/"+vhost, json.RawMessage(ofThePlugin), nil)
	ch := openChannel(t, dial(t, url))
	check(t, ch.Confirm(false))
	for range 2 {
		deleted, err := ch.QueueDelete("foo.delay", false, false, false)
		check(t, err)
		require.Zero(t, deleted)
		c, err := ch.PublishWithDeferredConfirm("foo", "a.b", false, false, amqp091.Publishing{MessageId: "one", Headers: amqp091.Table{
			"x-delay": 300,
			"x-death": []any{amqp091.Table{"queue": "foo.delay", "exchange": "foo", "reason": "rejected", "count": int64(1), "routing-keys": []any{"a.b"}}}, // as who publishes again what has waited
		}})
		check(t, err)
		require.True(t, c.Wait())
		eventually(t, answerLimit, "the message to wait", func() bool {
			q, err := ch.QueueDeclarePassive("foo.delay", true, false, false, false, nil)
			check(t, err)
			return q.Messages == 1
		})
		purged, err := ch.QueuePurge("foo.delay", false)
		check(t, err)
		require.Equal(t, 1, purged)
	}
	jobs, err := ch.QueueDeclarePassive("jobs", true, false, false, false, nil)
	check(t, err)
	require.Zero(t, jobs.Messages)
}

// TestDelayedPluginBoundToAnExchange declares what MassTransit does for a queue with scheduled messages and redeliveries: a delayed exchange of type fanout
// that is bound to the queue's own exchange, not to the queue. A message that is published again when it comes, as for a redelivery, waits again.
func TestDelayedPluginBoundToAnExchange(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	if family() != cluster.Family43 {
		return
	}
	_, url := n.vhost(t)
	ch := openChannel(t, dial(t, url))
	check(t, ch.Confirm(false))
	check(t, ch.ExchangeDeclare("submit-order", "fanout", true, false, false, false, nil))
	_, err := ch.QueueDeclare("submit-order", true, false, false, false, nil)
	check(t, err)
	check(t, ch.QueueBind("submit-order", "", "submit-order", false, nil))
	check(t, ch.ExchangeDeclare("submit-order_delay", "x-delayed-message", true, false, false, false, amqp091.Table{"x-delayed-type": "fanout"}))
	check(t, ch.ExchangeBind("submit-order", "", "submit-order_delay", false, nil))
	r := startReplica(t, n, url, "", "masstransit", "delay:*.delay")
	eventually(t, answerLimit, "the delay queue to be kept", func() bool { return len(r.keeps()) == 1 })

	deliveries, err := ch.Consume("submit-order", "", true, false, false, false, nil)
	check(t, err)
	for attempt := range int32(3) {
		sent := time.Now()
		c, err := ch.PublishWithDeferredConfirm("submit-order_delay", "", true, false, amqp091.Publishing{MessageId: "order", DeliveryMode: amqp091.Persistent,
			Headers: amqp091.Table{"x-delay": int32(400), "MT-Redelivery-Count": attempt}})
		check(t, err)
		require.True(t, c.Wait())
		select {
		case m := <-deliveries:
			require.Equal(t, "order", m.MessageId)
			require.Equal(t, attempt, m.Headers["MT-Redelivery-Count"])
			require.GreaterOrEqual(t, time.Since(sent), 400*time.Millisecond)
		case <-time.After(answerLimit):
			t.Fatalf("attempt %d has not come", attempt)
		}
	}
	require.Empty(t, r.queue("submit-order_delay.delay").Troubles)
}

// TestDelayedPluginOnThreeNodes: what waits while no Curfew runs, and while every node is killed and started again, is delivered once, and not early.
func TestDelayedPluginOnThreeNodes(t *testing.T) {
	nodes := threeNodes(t)
	if family() != cluster.Family43 {
		return
	}
	vhost, url := nodes[0].vhost(t)
	goApplication{}.declare(t, url)
	const all = 200
	var lines []string
	for i := range all {
		lines = append(lines, fmt.Sprintf("direct %d eu.new eu %d", i, 20_000+i))
	}
	sent := goApplication{}.publish(t, url, lines)
	ch := openChannel(t, dial(t, url))
	waiting := func(queue string) int {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		check(t, err)
		return q.Messages
	}
	require.Equal(t, all, waiting("delayed.direct.delay"), "without Curfew they wait")
	require.Zero(t, waiting("jobs.direct"))
	for _, n := range nodes {
		n.kill()
	}
	started := make(chan error)
	for _, n := range nodes {
		go func() { started <- n.start() }()
	}
	for range nodes {
		check(t, <-started)
	}
	r := startReplica(t, nodes[0], urlsIn("guest", nodes, vhost), "", "one", "delay:*.delay")
	eventually(t, time.Minute, "what waits to be held", func() bool { return r.keeps()["delayed.direct.delay"] == all })
	c := consumeJobs(t, url)
	eventually(t, time.Minute, "all messages", func() bool { return c.count() == all })
	for i := range all {
		name := fmt.Sprintf("direct %d", i)
		require.Len(t, c.arrived[name], 1, name)
		require.GreaterOrEqual(t, c.arrived[name][0].Sub(sent[name]), time.Duration(20_000+i)*time.Millisecond, name)
	}
}

// application is one that was written for the delayed-message plugin; ../clients/pika/delayed.py describes what each can do.
type application interface {
	declare(t *testing.T, url string)
	publish(t *testing.T, url string, lines []string) (sent map[string]time.Time) // by type and message-id
	refused(t *testing.T, url string) []string
}

// foreign is the command of an application in another language.
type foreign []string

func (f foreign) run(t *testing.T, role, url, stdin string) []string {
	t.Helper()
	cmd := exec.Command(f[0], slices.Concat(f[1:], []string{role, url})...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func (f foreign) declare(t *testing.T, url string) { f.run(t, "declare", url, "") }

func (f foreign) refused(t *testing.T, url string) []string { return f.run(t, "refused", url, "") }

func (f foreign) publish(t *testing.T, url string, lines []string) map[string]time.Time {
	sent := map[string]time.Time{}
	for _, line := range f.run(t, "publish", url, strings.Join(lines, "\n")+"\n") {
		words := strings.Fields(line)
		require.Len(t, words, 4, line)
		micros, err := strconv.ParseInt(words[3], 10, 64)
		check(t, err)
		sent[words[1]+" "+words[2]] = time.UnixMicro(micros)
	}
	return sent
}

// goApplication uses amqp091-go.
type goApplication struct{}

func (goApplication) declare(t *testing.T, url string) {
	ch := openChannel(t, dial(t, url))
	for _, kind := range delayedTypes {
		check(t, ch.ExchangeDeclare("delayed."+kind, "x-delayed-message", true, false, false, false, amqp091.Table{"x-delayed-type": kind}))
		_, err := ch.QueueDeclare("jobs."+kind, true, false, false, false, nil)
		check(t, err)
		key, args := "eu.new", amqp091.Table{}
		switch kind {
		case "topic":
			key = "eu.*"
		case "headers":
			args = amqp091.Table{"x-match": "all", "region": "eu"}
		}
		check(t, ch.QueueBind("jobs."+kind, key, "delayed."+kind, false, args))
	}
}

func (goApplication) publish(t *testing.T, url string, lines []string) map[string]time.Time {
	ch := openChannel(t, dial(t, url))
	check(t, ch.Confirm(false))
	sent := map[string]time.Time{}
	for _, line := range lines {
		words := strings.Fields(line)
		headers := amqp091.Table{"region": words[3]}
		if delay, err := strconv.Atoi(words[4]); err == nil {
			headers["x-delay"] = delay
		}
		sent[words[0]+" "+words[1]] = time.Now()
		c, err := ch.PublishWithDeferredConfirm("delayed."+words[0], words[2], false, false, amqp091.Publishing{MessageId: words[1], Headers: headers, DeliveryMode: amqp091.Persistent})
		check(t, err)
		require.True(t, c.Wait())
	}
	return sent
}

func (goApplication) refused(t *testing.T, url string) (answers []string) {
	conn := dial(t, url)
	for _, args := range []amqp091.Table{nil, {"x-delayed-type": "unheard-of"}} {
		err := openChannel(t, conn).ExchangeDeclare("refused", "x-delayed-message", true, false, false, false, args)
		answers = append(answers, fmt.Sprint(err))
	}
	return answers
}

// jobs are the messages that have arrived in the queues of an application.
type jobs struct {
	mu      sync.Mutex
	arrived map[string][]time.Time // by type and message-id
	all     int
}

func (j *jobs) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all
}

// consumeJobs consumes from the queues of an application.
func consumeJobs(t *testing.T, url string) *jobs {
	t.Helper()
	j := &jobs{arrived: map[string][]time.Time{}}
	ch := openChannel(t, dial(t, url))
	for _, kind := range delayedTypes {
		deliveries, err := ch.Consume("jobs."+kind, "", true, false, false, false, nil)
		check(t, err)
		go func() {
			for m := range deliveries {
				j.mu.Lock()
				j.arrived[kind+" "+m.MessageId] = append(j.arrived[kind+" "+m.MessageId], time.Now())
				j.all++
				j.mu.Unlock()
			}
		}()
	}
	return j
}
