package integration

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
)

const (
	toolsQueues   = 20
	toolsParallel = 4
)

// TestAmqpTools is the same with the commands of amqp-tools (librabbitmq): 1,000 times amqp-publish. They cannot set an expiration, so
// the deadlines come from queues' own times to live, 50-3,000 ms; mid-queue expiry through librabbitmq is in TestDeadlines.
func TestAmqpTools(t *testing.T) {
	needs(t, "amqp-tools", "amqp-publish", "--usage")
	redis := testenv.StartRedis(t)
	for name, settings := range map[string][]string{"embedded": nil, "redis": {"REDIS_URL=" + redis.URL}} {
		t.Run(name, func(t *testing.T) {
			broker := startCurfew(t, settings...)
			tool(t, "amqp-declare-queue", "-u", broker.url, "-q", "plain", "-d")
			tool(t, "amqp-publish", "-u", broker.url, "-r", "plain", "-b", "unlimited")
			timely(t, broker, func(attempt int) timing {
				return toolsRun(t, broker, fmt.Sprintf("tools-%d", attempt))
			})
			if got := tool(t, "amqp-get", "-u", broker.url, "-q", "plain"); got != "unlimited" {
				t.Errorf("amqp-get got %q", got)
			}
		})
	}
}

func toolsRun(t *testing.T, broker *curfew, prefix string) timing {
	t.Helper()
	ttls := toolsTopology(t, broker.url, prefix)
	dead := librabbitmqClient(t).collect(t, broker.url, prefix+".dead", shortCount) // not from this process: forking delays its sockets
	consumed := inBackground(func() string {
		return tool(t, "amqp-consume", "-u", broker.url, "-q", prefix+".copies", "-c", fmt.Sprint(shortCount), "sed", "$a\\") // ends each body with a newline
	})
	tool(t, "amqp-publish", "-u", broker.url, "-r", prefix+".hour", "-b", hourLong)
	published := publishWithTools(t, broker.url, prefix, ttls)
	m := judge(t, published, dead())

	if copies := strings.Fields(consumed()); len(copies) != shortCount || len(slices.Compact(slices.Sorted(slices.Values(copies)))) != shortCount {
		t.Errorf("amqp-consume got %d messages, not each of %d once", len(copies), shortCount)
	}
	if got := tool(t, "amqp-get", "-u", broker.url, "-q", prefix+".hour"); got != hourLong {
		t.Errorf("amqp-get got %q, not the hour-long message", got)
	}
	return m
}

// toolsTopology makes the queues, each with a time to live, one of them of an hour, and returns those of the others in ms. Their dead
// letters go to two queues, to be timed in one and consumed by the command in the other.
func toolsTopology(t *testing.T, url, prefix string) []int64 {
	t.Helper()
	ch := openChannel(t, dial(t, url))
	dlx := prefix + ".dlx"
	check(t, ch.ExchangeDeclare(dlx, "fanout", true, false, false, false, nil))
	for _, name := range []string{prefix + ".dead", prefix + ".copies"} {
		_, err := ch.QueueDeclare(name, true, false, false, false, nil)
		check(t, err)
		check(t, ch.QueueBind(name, "", dlx, false, nil))
	}
	limited := func(name string, ttlMillis int64) {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp091.Table{"x-message-ttl": ttlMillis, "x-dead-letter-exchange": dlx})
		check(t, err)
	}
	limited(prefix+".hour", time.Hour.Milliseconds())
	ttls := make([]int64, toolsQueues)
	for i := range ttls {
		ttls[i] = 50 + rand.Int64N(2951)
		limited(fmt.Sprintf("%s.%d", prefix, i), ttls[i])
	}
	return ttls
}

// publishWithTools runs amqp-publish once for each message, a few at a time. The process has ended, and with it its connection, after the
// broker has taken the message.
func publishWithTools(t *testing.T, url, prefix string, ttls []int64) []sent {
	out := make([]sent, shortCount)
	var publishers sync.WaitGroup
	for p := range toolsParallel {
		publishers.Go(func() {
			for i := p; i < shortCount; i += toolsParallel {
				queue := i % len(ttls)
				out[i] = sent{id: fmt.Sprint(i), ttlMillis: ttls[queue], before: time.Now().UnixMicro()}
				tool(t, "amqp-publish", "-u", url, "-r", fmt.Sprintf("%s.%d", prefix, queue), "-p", "-b", out[i].id)
				out[i].after = time.Now().UnixMicro()
			}
		})
	}
	publishers.Wait()
	return out
}

// tool runs a command and returns what it printed.
func tool(t testing.TB, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, args, err, &stderr)
	}
	return string(out)
}
