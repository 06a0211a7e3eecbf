package rabbitmq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/plan"
)

// delays is a delayed exchange foo with a consumer, and a history of what it was to deliver and has delivered.
type delays struct {
	t       testing.TB
	n       *node
	url     string
	vhost   string // escaped, for the API
	publish *amqp091.Channel
	conn    *amqp091.Connection
	body    []byte

	mu      sync.Mutex
	due     map[string]time.Time
	arrived map[string][]time.Time
}

// ofThePlugin are the definitions of a virtual host with an exchange of the delayed-message plugin.
const ofThePlugin = `{"exchanges": [{"name": "foo", "type": "x-delayed-message", "durable": true, "auto_delete": false, "internal": false, "arguments": {"x-delayed-type": "topic"}}],
"queues": [{"name": "jobs", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "quorum"}}],
"bindings": [{"source": "foo", "destination": "jobs", "destination_type": "queue", "routing_key": "#", "arguments": {}}]}`

// declareDelays imports what the plan makes of ofThePlugin, and consumes from jobs. Whoever watches foo.delay binds it.
func declareDelays(t testing.TB, n *node) *delays {
	t.Helper()
	vhost, at := n.vhost(t)
	d := &delays{t: t, n: n, url: at, vhost: url.PathEscape(vhost), body: []byte("body"), due: map[string]time.Time{}, arrived: map[string][]time.Time{}}
	d.conn = dial(t, at)
	d.publish = openChannel(t, d.conn)
	var rewritten bytes.Buffer
	_, err := plan.Delayed(&rewritten, strings.NewReader(ofThePlugin), nil, serverVersion())
	check(t, err)
	n.api(t, http.MethodPost, "definitions/"+d.vhost, json.RawMessage(rewritten.Bytes()), nil)
	check(t, d.publish.Confirm(false))
	d.consume()
	return d
}

// consume notes what arrives in jobs.
func (d *delays) consume() {
	d.t.Helper()
	deliveries, err := openChannel(d.t, d.conn).Consume("jobs", "", true, false, false, false, nil)
	check(d.t, err)
	go func() {
		for m := range deliveries {
			d.mu.Lock()
			d.arrived[m.MessageId] = append(d.arrived[m.MessageId], time.Now())
			d.mu.Unlock()
		}
	}()
}

// bound waits until messages with x-delay go to foo.delay.
func (d *delays) bound() {
	d.t.Helper()
	eventually(d.t, answerLimit, "the binding", func() bool {
		var bound []struct{ Destination string }
		d.n.api(d.t, http.MethodGet, "exchanges/"+d.vhost+"/foo/bindings/source", nil, &bound)
		return len(bound) > 0
	})
}

// send publishes a message and does not wait for the confirm.
func (d *delays) send(id string, delay time.Duration, headers amqp091.Table, replyTo string) *amqp091.DeferredConfirmation {
	d.t.Helper()
	all := amqp091.Table{}
	if delay > 0 {
		all["x-delay"] = delay.Milliseconds()
	}
	for name, value := range headers {
		all[name] = value
	}
	d.mu.Lock()
	if id != "" {
		d.due[id] = time.Now().Add(delay)
	}
	d.mu.Unlock()
	c, err := d.publish.PublishWithDeferredConfirm("foo", "a.b", false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, MessageId: id, Headers: all,
		ReplyTo: replyTo, CorrelationId: id, Body: d.body})
	check(d.t, err)
	return c
}

// count returns how many messages have arrived.
func (d *delays) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.arrived)
}

// settled checks that what is due by then has arrived once, and nothing early, and returns how late each was, sorted.
func (d *delays) settled(until time.Time) (late []time.Duration) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	lost, twice, early := 0, 0, []time.Duration(nil)
	for id, due := range d.due {
		got := d.arrived[id]
		switch {
		case len(got) == 0 && due.Before(until):
			lost++
		case len(got) > 1:
			twice++
		}
		if len(got) > 0 {
			late = append(late, got[0].Sub(due))
			if got[0].Before(due) {
				early = append(early, due.Sub(got[0]))
			}
		}
	}
	require.Zero(d.t, lost, "lost")
	require.Zero(d.t, twice, "twice")
	require.Empty(d.t, early, "early, by that")
	slices.Sort(late)
	return late
}

// TestDelays: 10,000 messages wait in one queue, in any order; 3,000 of them become due while the Curfew that holds them is killed with -9 and another one
// takes over, with due times that only Redis knows. Each arrives once, none early; those without x-delay go out at once.
func TestDelays(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	redis := testenv.StartRedis(t)
	first := startReplica(t, d.n, d.url, redis.URL, "one", "delay:foo.delay")
	d.bound()
	const all, soon = 10_000, 3_000
	start := time.Now().Add(10 * time.Second)
	confirms := make([]*amqp091.DeferredConfirmation, 0, all)
	for _, i := range rand.Perm(all) {
		delay := time.Hour
		if i < soon {
			delay = time.Until(start) + time.Duration(i)*2*time.Millisecond
		}
		confirms = append(confirms, d.send(strconv.Itoa(i), delay, nil, ""))
	}
	for _, c := range confirms {
		require.True(t, c.Wait())
	}
	require.True(t, d.send("at once", 0, nil, "").Wait())
	eventually(t, answerLimit, "all to be held", func() bool { q := first.queue("foo.delay"); return q.Held+q.AsideKnown == all })
	second := startReplica(t, d.n, d.url, redis.URL, "two", "delay:foo.delay")
	require.Equal(t, 1, d.count(), "only the message without x-delay has gone out")
	time.Sleep(time.Until(start.Add(2 * time.Second))) // what is due until then has to be late
	check(t, first.cmd.Process.Kill())
	eventually(t, 40*time.Second, "the messages that are due", func() bool { return d.count() == soon+1 })
	late := d.settled(start.Add(soon * 2 * time.Millisecond))
	t.Logf("late: p50 %v, p99 %v, latest %v", late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
	require.Less(t, late[len(late)-1], 20*time.Second, "as long as another Curfew takes to take over")
	eventually(t, answerLimit, "the rest to be held by the other", func() bool {
		q := second.queue("foo.delay")
		return q.Held+int(q.Aside) == all-soon && q.UnknownAge == 0 && len(q.Troubles) == 0
	})
}

// TestDelayCommands: messages are cancelled, replaced and rescheduled by messages. The answer says who was first, and is true.
func TestDelayCommands(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	watch := t.TempDir() + "/watch.yaml"
	check(t, os.WriteFile(watch, []byte("queues: [{queue: '*.delay', mode: delay, cancel: any}]"), 0o600))
	r := startReplica(t, d.n, d.url, "", "one", watch)
	d.bound()
	answers := map[string]string{}
	var mu sync.Mutex
	ch := openChannel(t, d.conn)
	replies, err := ch.QueueDeclare("", false, true, true, false, nil)
	check(t, err)
	deliveries, err := ch.Consume(replies.Name, "", true, true, false, false, nil)
	check(t, err)
	go func() {
		for m := range deliveries {
			mu.Lock()
			answers[m.CorrelationId] = string(m.Body)
			mu.Unlock()
		}
	}()
	tell := func(id string, delay time.Duration, headers amqp091.Table) string {
		t.Helper()
		d.send(id, delay, headers, replies.Name)
		var got string
		eventually(t, answerLimit, "the answer to "+id, func() bool {
			mu.Lock()
			defer mu.Unlock()
			got = answers[id]
			return got != ""
		})
		return got
	}
	forget := func(ids ...string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, id := range ids {
			delete(d.due, id)
		}
	}

	for _, id := range []string{"a", "b", "c"} {
		require.True(t, d.send(id, 55*time.Second, nil, "").Wait())
	}
	require.Equal(t, "cancelled", tell("cancel a", 0, amqp091.Table{"x-cancel": "a"}))
	require.Equal(t, "cancelled", tell("cancel a again", 0, amqp091.Table{"x-cancel": "a"}))
	absent := []string{"not found"}
	if family() == cluster.Family43 {
		absent = append(absent, "unknown") // as long as RabbitMQ may have something aside
	}
	require.Contains(t, absent, tell("cancel z", 0, amqp091.Table{"x-cancel": "z"}))
	require.Equal(t, "replaced", tell("b2", 300*time.Millisecond, amqp091.Table{"x-replace": "b"}))
	require.Contains(t, absent, tell("b3", 100*time.Millisecond, amqp091.Table{"x-replace": "b", "x-replace-only": true}))
	require.Equal(t, "rescheduled", tell("sooner", 200*time.Millisecond, amqp091.Table{"x-reschedule": "c"}))
	eventually(t, answerLimit, "b2 and c", func() bool { return d.count() == 2 })
	require.Equal(t, "too late", tell("cancel b2", 0, amqp091.Table{"x-cancel": "b2"}))
	forget("a", "b", "b3", "c", "cancel a", "cancel a again", "cancel z", "sooner", "cancel b2")
	d.settled(time.Now())

	for id, delay := range map[string]time.Duration{"x": 30 * time.Second, "y": 50 * time.Second, "w": 55 * time.Second} {
		require.True(t, d.send(id, delay, nil, "").Wait())
	}
	curfew := func(args ...string) string { return curfewDelays(t, r, args...) }
	eventually(t, answerLimit, "all to be held", func() bool { return r.queue("foo.delay").Held == 3 })
	require.Equal(t, 2, strings.Count(curfew("list", "--before", "31s"), "\n"))
	require.Equal(t, 4, strings.Count(curfew("list"), "\n"))
	require.Contains(t, curfew("cancel", "x"), "cancelled scheduled message")
	require.Contains(t, curfew("cancel", "x"), "cancelled scheduled message", "it was")
	require.Regexp(t, "no message with the message-id never waits|never is not known here", curfew("cancel", "never"))
	require.Contains(t, curfew("reschedule", "y", "--in", "200ms"), "rescheduled scheduled message")
	require.Contains(t, curfew("now", "w"), "delivered scheduled message")
	eventually(t, answerLimit, "y and w", func() bool { return d.count() == 4 })
	require.Contains(t, curfew("now", "w"), "too late")
	require.Contains(t, curfew("reschedule", "w", "--in", "soon"), "is invalid")
	forget("x", "y", "w")

	const races = 400
	before := d.count()
	for i := range races {
		d.send(fmt.Sprintf("race %d", i), 1500*time.Millisecond+time.Duration(i)*5*time.Millisecond, nil, "")
	}
	for i := range races { // each around the time when its message is due
		time.Sleep(time.Until(d.due[fmt.Sprintf("race %d", i)].Add(time.Duration(rand.IntN(12)) * time.Millisecond)))
		d.send(fmt.Sprintf("end %d", i), 0, amqp091.Table{"x-cancel": fmt.Sprintf("race %d", i)}, replies.Name)
	}
	eventually(t, answerLimit, "all answers", func() bool {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for id := range answers {
			if strings.HasPrefix(id, "end ") {
				n++
			}
		}
		return n == races
	})
	late := 0
	for i := range races {
		if answers[fmt.Sprintf("end %d", i)] == "too late" {
			late++
		}
	}
	eventually(t, answerLimit, "those that it was too late for", func() bool { return d.count() >= before+late })
	time.Sleep(500 * time.Millisecond) // for what should not come
	cancelled := 0
	for i := range races {
		id := fmt.Sprintf("race %d", i)
		switch answer := answers[fmt.Sprintf("end %d", i)]; answer {
		case "cancelled":
			cancelled++
			require.Empty(t, d.arrived[id], id)
		default:
			require.Equal(t, "too late", answer)
			require.Len(t, d.arrived[id], 1, id)
		}
	}
	t.Logf("%d of %d were cancelled", cancelled, races)
}

// TestDelayBinding: what an import of definitions makes of the binding is mended and told, and so is a queue that is bound in its place.
func TestDelayBinding(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	check(t, d.publish.QueueBind("foo.delay", "", "foo", false, amqp091.Table{"x-match": "any-with-x", "x-delay": "undefined", "x-cancel": "undefined"}))
	_, err := d.publish.QueueDeclare("direct", true, false, false, false, nil)
	check(t, err)
	check(t, d.publish.QueueBind("direct", "key", "foo", false, nil))
	r := startReplica(t, d.n, d.url, "", "one", "delay:foo.delay")
	names := func() (all []string) {
		for _, trouble := range r.queue("foo.delay").Troubles {
			all = append(all, trouble.Name)
		}
		slices.Sort(all)
		return all
	}
	eventually(t, answerLimit, "both to be told", func() bool { return slices.Equal(names(), []string{"binding", "bound"}) })
	require.True(t, d.send("late", 700*time.Millisecond, nil, "").Wait())
	eventually(t, answerLimit, "the message", func() bool { return d.count() == 1 })
	d.settled(time.Now())
}

// curfewDelays runs a command about foo.delay and returns what it prints.
func curfewDelays(t testing.TB, r *replica, args ...string) string {
	t.Helper()
	path, err := binary()
	check(t, err)
	out := new(testenv.Log)
	_ = command(out, nil, path, slices.Concat([]string{"scheduled", args[0], "foo.delay"}, args[1:], []string{"--url", "http://" + r.api})...).Run() // what it prints tells
	return out.String()
}

// putAside publishes 3,000 messages and waits until RabbitMQ has put aside what is not due within a minute: 1,000 are due in 95 to 105 s, so that they come
// back before, 1,000 in 30 to 40 s, and 1,000 in hours.
func (d *delays) putAside(r *replica) {
	d.t.Helper()
	confirms := make([]*amqp091.DeferredConfirmation, 0, 3000)
	for i := range 1000 {
		in := time.Duration(i) * 10 * time.Millisecond
		confirms = append(confirms, d.send(fmt.Sprint("minute ", i), 95*time.Second+in, nil, ""), d.send(fmt.Sprint("soon ", i), 30*time.Second+in, nil, ""),
			d.send(fmt.Sprint("hours ", i), 5*time.Hour, nil, ""))
	}
	for _, c := range confirms {
		require.True(d.t, c.Wait())
	}
	eventually(d.t, answerLimit, "2,000 to be put aside", func() bool {
		q := r.queue("foo.delay")
		return q.Engine == "aside+hold" && q.AsideKnown == 2000 && q.Held == 1000 && q.Aside == 2000 && len(q.Troubles) == 0
	})
}

// arrive waits for what is due within two minutes, and logs how late it was.
func (d *delays) arrive(r *replica, count int) {
	d.t.Helper()
	eventually(d.t, 2*time.Minute, "what is due", func() bool { return d.count() == count })
	late := d.settled(time.Now().Add(time.Hour))
	d.t.Logf("late: p50 %v, p99 %v, latest %v", late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
	eventually(d.t, answerLimit, "the rest to be aside", func() bool { q := r.queue("foo.delay"); return q.Held == 0 && q.Aside == 1000 })
}

// TestPutAside: on 4.3 messages wait in RabbitMQ itself, with when they are due; without Redis, Curfew is killed with -9 twice and forgets nothing. What was put aside
// before is cancelled by an operator and by a message, and an older version has them held.
func TestPutAside(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	watch := t.TempDir() + "/watch.yaml"
	check(t, os.WriteFile(watch, []byte("queues: [{queue: '*.delay', mode: delay, cancel: any}]"), 0o600))
	first := startReplica(t, d.n, d.url, "", "one", watch)
	d.bound()
	if family() != cluster.Family43 {
		eventually(t, answerLimit, "to hold", func() bool { return first.queue("foo.delay").Engine == "hold" })
		return
	}
	d.putAside(first)
	require.Contains(t, curfewDelays(t, first, "reschedule", "minute 1", "--in", "1s"), "is put aside")
	require.Contains(t, curfewDelays(t, first, "cancel", "minute 1"), "cancelled scheduled message")
	require.Contains(t, curfewDelays(t, first, "cancel", "minute 1"), "cancelled scheduled message", "it was")
	require.True(t, d.send("", 0, amqp091.Table{"x-cancel": "minute 2"}, "").Wait())
	require.True(t, d.send("instead of 3", time.Second, amqp091.Table{"x-replace": "minute 3"}, "").Wait())
	eventually(t, answerLimit, "the replacement", func() bool { return d.count() == 1 })
	check(t, first.cmd.Process.Kill())
	second := startReplica(t, d.n, d.url, "", "one", watch)
	eventually(t, answerLimit, "another one to have what is held", func() bool { return second.queue("foo.delay").CaughtUp })
	require.Contains(t, curfewDelays(t, second, "cancel", "minute 4"), "is not known here")
	eventually(t, time.Minute, "half of what is due soon", func() bool { return d.count() >= 500 })
	check(t, second.cmd.Process.Kill())
	third := startReplica(t, d.n, d.url, "", "one", watch)
	d.mu.Lock()
	for _, i := range []int{1, 2, 3, 4} {
		delete(d.due, fmt.Sprint("minute ", i))
	}
	d.mu.Unlock()
	d.arrive(third, 1+1000+996)
	for _, i := range []int{1, 2, 3, 4} {
		require.Empty(t, d.arrived[fmt.Sprint("minute ", i)], i)
	}
	eventually(t, answerLimit, "no tombstone to be left", func() bool { return third.queue("foo.delay").UnknownAge == 0 })
}

// TestPutAsideNodeRestarts: the node is killed with -9 and started again, and RabbitMQ still knows when each message is due.
func TestPutAsideNodeRestarts(t *testing.T) {
	t.Parallel()
	if family() != cluster.Family43 {
		return // nothing is put aside
	}
	n := loneNode(t)
	d := declareDelays(t, n)
	r := startReplica(t, n, d.url, "", "one", "delay:foo.delay")
	d.bound()
	d.putAside(r)
	n.kill()
	check(t, n.start())
	d.conn = dial(t, d.url)
	d.consume()
	d.arrive(r, 2000)
}

// TestTombstoneCut: an operator cancels what is put aside while the connection is lost, once before RabbitMQ has got that and once before it could confirm it. Both
// stay cancelled although Curfew is killed with -9 later, and messages with the same ids that are published after that are delivered.
func TestTombstoneCut(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	if family() != cluster.Family43 {
		return // nothing is put aside
	}
	d := declareDelays(t, n)
	p := startProxy(t, n.addr)
	r := startReplica(t, &node{http: n.http}, urlsIn("guest", []*node{{addr: p.addr}}, d.vhost), "", "one", "delay:foo.delay")
	d.bound()
	const count = 2
	for _, id := range []string{"lost", "twice"} {
		require.True(t, d.send(id, 100*time.Second, nil, "").Wait())
	}
	eventually(t, answerLimit, "both to be put aside", func() bool { return r.queue("foo.delay").AsideKnown == count })
	tombstones := func() (unacked int) {
		var q struct {
			Unacked int `json:"messages_unacknowledged"`
		}
		n.api(t, http.MethodGet, "queues/"+d.vhost+"/foo.delay", nil, &q)
		return q.Unacked
	}
	for i, id := range []string{"lost", "twice"} {
		p.cutAt("x-curfew-before", id == "twice")
		require.Contains(t, curfewDelays(t, r, "cancel", id), "cancelled scheduled message")
		eventually(t, answerLimit, "the tombstone of "+id, func() bool { return tombstones() == i+1 && r.queue("foo.delay").CaughtUp })
		require.Contains(t, r.log.String(), "a tombstone is published again")
	}
	eventually(t, answerLimit, "to keep the queue again", func() bool { q := r.queue("foo.delay"); return q.State == "keeping" && q.CaughtUp })
	for _, id := range []string{"lost", "twice"} { // the ids are used again
		require.True(t, d.send(id, 20*time.Second, nil, "").Wait())
	}
	check(t, r.cmd.Process.Kill())
	r = startReplica(t, n, d.url, "", "one", "delay:foo.delay")
	arrived := time.Now().Add(3 * time.Minute)
	eventually(t, 2*time.Minute, "what was published later", func() bool { return d.count() == count })
	eventually(t, time.Until(arrived), "nothing to be left", func() bool {
		q := r.queue("foo.delay")
		return q.CaughtUp && q.Held == 0 && q.Aside == 0 && tombstones() == 0
	})
	d.settled(time.Now())
}

// TestDelayConsumers: an application that consumes from a queue of delays is told of, with either protocol, and Curfew's own consumers are not.
func TestDelayConsumers(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	r := startReplica(t, d.n, d.url, "", "one", "delay:foo.delay") // which lists consumers each half minute
	d.bound()
	told := func() bool {
		troubles := r.queue("foo.delay").Troubles
		return len(troubles) == 1 && troubles[0].Name == "consumers"
	}
	consumers := func() (count int) {
		var all []struct{ Queue struct{ Name string } }
		d.n.api(t, http.MethodGet, "consumers/"+d.vhost, nil, &all)
		for _, one := range all {
			if one.Queue.Name == "foo.delay" {
				count++
			}
		}
		return count
	}
	alone := func(what string) {
		t.Helper()
		eventually(t, time.Minute, "only Curfew to consume "+what, func() bool { return consumers() == 1 && !told() })
	}
	alone("at first")
	ch := openChannel(t, d.conn)
	_, err := ch.Consume("foo.delay", "7", false, false, false, false, nil)
	check(t, err)
	eventually(t, time.Minute, "a consumer to be told", told)
	check(t, ch.Close())
	alone("after that")
	if family() == cluster.Family3 {
		return
	}
	conn, err := amqp.Dial(t.Context(), "amqp://"+d.n.addr, &amqp.ConnOptions{HostName: "vhost:" + d.vhost, SASLType: amqp.SASLTypePlain("guest", "guest")})
	check(t, err)
	defer conn.Close()
	session, err := conn.NewSession(t.Context(), nil)
	check(t, err)
	_, err = session.NewReceiver(t.Context(), "/queues/foo.delay", &amqp.ReceiverOptions{Credit: 1})
	check(t, err)
	eventually(t, time.Minute, "a consumer of AMQP 1.0 to be told", told)
	check(t, conn.Close())
	alone("in the end")
}
