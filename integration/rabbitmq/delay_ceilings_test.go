package rabbitmq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/monitor/rabbitmq"
	"curfew/monitor/rabbitmq/plan"
)

// BenchmarkDelayCeilings measures what docs/rabbitmq-delays.md says under "How much": each part fails if a message is lost, early or twice, or later than
// the page says.
//
//	go test -run '^$' -bench DelayCeilings -benchtime 1x ./integration/rabbitmq
func BenchmarkDelayCeilings(b *testing.B) {
	b.Run("queues=200", manyDelayQueues)
	b.Run("body=1MB", func(b *testing.B) { steadyDelays(b, 1000, 20, 1_000_000, 10*time.Second) })
	b.Run("rate=500", func(b *testing.B) { steadyDelays(b, 30_000, 500, 100, 2*time.Second) })
	b.Run("killed=100000", killedWithMany)
	b.Run("declared=10000", manyDeclared)
}

// told reports how late messages were, and what memory Curfew has had.
func (d *delays) told(b *testing.B, r *replica, below time.Duration) {
	b.Helper()
	late := d.settled(time.Now())
	p50, p99, latest := percentile(late, 0.5), percentile(late, 0.99), late[len(late)-1]
	b.Logf("%d messages, late: p50 %v, p99 %v, max %v; memory of Curfew %s", len(late), p50, p99, latest, r.memory())
	b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
	if below > 0 && latest > below {
		b.Errorf("the latest came %v late; the page says %v", latest, below)
	}
}

// memory is the most that the process has had.
func (r *replica) memory() string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// steadyDelays publishes at a rate to one delay queue, with delays from 5 to 30 s.
func steadyDelays(b *testing.B, count, rate, size int, below time.Duration) {
	d := declareDelays(b, sharedNode(b))
	r := startReplica(b, d.n, d.url, "", "one", "delay:foo.delay")
	d.bound()
	d.body = bytes.Repeat([]byte("x"), size)
	unconfirmed := max(16, 200_000/size) // what waits to be published counts as late
	confirms := make([]*amqp091.DeferredConfirmation, 0, count)
	began := time.Now()
	for i := range count {
		if ahead := time.Duration(i)*time.Second/time.Duration(rate) - time.Since(began); ahead > time.Millisecond {
			time.Sleep(ahead)
		}
		if i >= unconfirmed {
			confirms[i-unconfirmed].Wait()
		}
		confirms = append(confirms, d.send(strconv.Itoa(i), 5*time.Second+rand.N(25*time.Second), nil, ""))
	}
	took := time.Since(began)
	for _, c := range confirms {
		c.Wait()
	}
	published := time.Now()
	b.Logf("published %.0f/s", float64(count)/took.Seconds())
	eventually(b, 10*time.Minute, "all messages", func() bool { return d.count() == count })
	b.Logf("the last one %v after it was published", time.Since(published).Round(time.Millisecond))
	d.told(b, r, below)
}

// manyDelayQueues has 200 delayed exchanges with five messages each.
func manyDelayQueues(b *testing.B) {
	const exchanges, each = 200, 5
	d := declareDelays(b, sharedNode(b))
	var more []plan.DelayedExchange
	vhost, err := url.PathUnescape(d.vhost)
	check(b, err)
	for i := range exchanges {
		more = append(more, plan.DelayedExchange{VHost: vhost, Name: fmt.Sprint("x", i), Type: "topic"})
	}
	var definitions bytes.Buffer
	_, err = plan.Delayed(&definitions, nil, more, serverVersion())
	check(b, err)
	d.n.api(b, http.MethodPost, "definitions", json.RawMessage(definitions.Bytes()), nil)
	for i := range exchanges {
		check(b, d.publish.QueueBind("jobs", "#", fmt.Sprintf("x%d.now", i), false, nil))
	}
	began := time.Now()
	r := startReplica(b, d.n, d.url, "", "one", "delay:*.delay")
	eventually(b, 5*time.Minute, "all to be kept", func() bool { return len(r.keeps()) == exchanges+1 })
	b.Logf("all kept after %v", time.Since(began).Round(time.Millisecond))
	time.Sleep(5 * time.Second)
	busy := r.busy()
	time.Sleep(10 * time.Second)
	b.Logf("at rest: %.2f of a processor", (r.busy()-busy).Seconds()/10)
	confirms := make([]*amqp091.DeferredConfirmation, 0, exchanges*each)
	for range each {
		for i := range exchanges {
			time.Sleep(10 * time.Millisecond)
			confirms = append(confirms, d.sendTo(fmt.Sprint("x", i), strconv.Itoa(len(confirms)), 5*time.Second+rand.N(10*time.Second)))
		}
	}
	for _, c := range confirms {
		c.Wait()
	}
	eventually(b, 2*time.Minute, "all messages", func() bool { return d.count() == exchanges*each })
	d.told(b, r, 2*time.Second)
}

// sendTo publishes a delayed message to an exchange.
func (d *delays) sendTo(exchange, id string, delay time.Duration) *amqp091.DeferredConfirmation {
	d.t.Helper()
	d.mu.Lock()
	d.due[id] = time.Now().Add(delay)
	d.mu.Unlock()
	c, err := d.publish.PublishWithDeferredConfirm(exchange, "a.b", false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, MessageId: id,
		Headers: amqp091.Table{"x-delay": delay.Milliseconds()}})
	check(d.t, err)
	return c
}

// busy is how long the process has used a processor.
func (r *replica) busy() time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	words := strings.Fields(string(stat))
	user, _ := strconv.Atoi(words[13])
	system, _ := strconv.Atoi(words[14])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// killedWithMany has 100,000 messages wait, 4,000 of which become due at 200 a second, and kills Curfew meanwhile. Another one starts at once, without Redis.
func killedWithMany(b *testing.B) {
	const all, soon = 100_000, 4_000
	d := declareDelays(b, sharedNode(b))
	r := startReplica(b, d.n, d.url, "", "one", "delay:foo.delay")
	d.bound()
	begin := time.Now().Add(75 * time.Second)
	confirms := make([]*amqp091.DeferredConfirmation, 0, all)
	for at, i := range rand.Perm(all) {
		delay := time.Hour
		if i < soon {
			delay = time.Until(begin) + time.Duration(i)*5*time.Millisecond
		}
		if at >= 2000 {
			confirms[at-2000].Wait()
		}
		confirms = append(confirms, d.publishAged(strconv.Itoa(i), delay))
	}
	eventually(b, 2*time.Minute, "all to wait", func() bool { q := r.queue("foo.delay"); return q.Held+q.AsideKnown >= all-d.count() })
	b.Logf("all wait, %v before the first is due; memory of Curfew %s", time.Until(begin).Round(time.Second), r.memory())
	time.Sleep(time.Until(begin.Add(5 * time.Second)))
	end(r.cmd)
	killed := time.Now()
	r = startReplica(b, d.n, d.url, "", "two", "delay:foo.delay")
	eventually(b, 2*time.Minute, "all to be known again", func() bool {
		q := r.queue("foo.delay")
		return q.CaughtUp && q.Held+int(max(0, q.Aside)) > 0
	})
	b.Logf("caught up %v after the kill", time.Since(killed).Round(time.Millisecond))
	eventually(b, 3*time.Minute, "what is due", func() bool { return d.count() == soon })
	d.told(b, r, 30*time.Second)
}

// publishAged publishes a delayed message with a timestamp. It is due by that, in whole milliseconds.
func (d *delays) publishAged(id string, delay time.Duration) *amqp091.DeferredConfirmation {
	at := time.Now().Truncate(time.Millisecond)
	c := d.send(id, delay, amqp091.Table{"timestamp_in_ms": at.UnixMilli()}, "")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due[id] = at.Add(delay.Truncate(time.Millisecond))
	return c
}

// manyDeclared has 10,000 queues, 100 of which are delay queues that are kept.
func manyDeclared(b *testing.B) {
	const declared, kept = 10_000, 100
	n := sharedNode(b)
	_, at := n.vhost(b)
	ch := openChannel(b, dial(b, at))
	for i := range declared {
		name := fmt.Sprint("other-", i)
		if i < kept {
			name = fmt.Sprintf("kept-%d.delay", i)
		}
		declare(b, ch, name, table{"x-dead-letter-exchange": "amq.fanout"})
	}
	time.Sleep(15 * time.Second) // for RabbitMQ's own statistics
	before := n.busy()
	time.Sleep(30 * time.Second)
	alone := n.busy() - before
	began := time.Now()
	r := startReplica(b, n, at, "", "one", "delay:*.delay")
	eventually(b, 5*time.Minute, "all to be kept", func() bool { return len(r.keeps()) == kept })
	b.Logf("all kept after %v", time.Since(began).Round(time.Millisecond))
	time.Sleep(30 * time.Second)
	before, busy := n.busy(), r.busy()
	time.Sleep(60 * time.Second)
	var s rabbitmq.Status
	r.get("rabbitmq", &s)
	b.Logf("RabbitMQ alone %.3f of a processor, with Curfew %.3f; Curfew %.3f, memory %s; looked at %v ago", alone.Seconds()/30, (n.busy()-before).Seconds()/60,
		(r.busy()-busy).Seconds()/60, r.memory(), time.Since(time.UnixMilli(s.LookedAt)).Round(time.Second))
}

// busy is how long the processes of the node have used a processor.
func (n *node) busy() (sum time.Duration) {
	stats, _ := os.ReadDir("/proc")
	for _, dir := range stats {
		stat, err := os.ReadFile("/proc/" + dir.Name() + "/stat")
		if err != nil {
			continue
		}
		environment, _ := os.ReadFile("/proc/" + dir.Name() + "/environ")
		words := strings.Fields(string(stat[max(0, bytes.LastIndexByte(stat, ')')):]))
		if len(words) < 14 || !bytes.Contains(environment, []byte("RABBITMQ_NODENAME="+n.name)) {
			continue
		}
		user, _ := strconv.Atoi(words[12])
		system, _ := strconv.Atoi(words[13])
		sum += time.Duration(user+system) * 10 * time.Millisecond
	}
	return sum
}
