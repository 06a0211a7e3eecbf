package rabbitmq

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// queueTypes are the types that can be kept.
var queueTypes = []cluster.QueueType{cluster.Classic, cluster.Quorum}

// keptQueue is a queue with a dead-letter queue, whose letters are read as they come.
type keptQueue struct {
	t     testing.TB
	url   string
	name  string
	facts keeper.Facts
	conn  *amqp091.Connection // of the publisher and the reader
	ch    *amqp091.Channel    // in confirm mode

	unconfirmed int  // of fill, at most
	repeats     bool // RabbitMQ may dead-letter a message twice: at-least-once, and its node was killed

	// truncated is how early RabbitMQ alone may be: a quorum queue notes in whole milliseconds when a message came. A keeper gives
	// nothing back early: it counts from the receipt.
	truncated time.Duration

	mu        sync.Mutex
	deadline  map[string]time.Time // of the messages published with a TTL
	letters   map[string]letter
	twice     []string
	forgotten map[string]bool // whether they come or not does not matter
}

type letter struct {
	at     time.Time
	reason string
	queue  string // of the first death
}

func declareKept(t testing.TB, url, name string, kind cluster.QueueType, args amqp091.Table) *keptQueue {
	t.Helper()
	q := &keptQueue{t: t, url: url, name: name, facts: keeper.Facts{Type: kind, Family: family(), TTL: -1, ConsumerTimeout: 30 * time.Minute},
		unconfirmed: 64, deadline: map[string]time.Time{}, letters: map[string]letter{}, forgotten: map[string]bool{}}
	if kind == cluster.Quorum && family() != cluster.Family3 {
		q.facts.DeliveryLimit = 20 // by default
	}
	q.conn = dial(t, url)
	q.ch = openChannel(t, q.conn)
	check(t, q.ch.Confirm(false))
	q.declare(args)
	check(t, q.ch.ExchangeDeclare(name+".dlx", "fanout", true, false, false, false, nil))
	_, err := q.ch.QueueDeclare(name+".dead", true, false, false, false, nil)
	check(t, err)
	check(t, q.ch.QueueBind(name+".dead", "", name+".dlx", false, nil))
	go q.readLetters(dial(t, url))
	return q
}

// declare makes the queue; args are further arguments.
func (q *keptQueue) declare(args amqp091.Table) {
	q.t.Helper()
	all := amqp091.Table{"x-queue-type": string(q.facts.Type), "x-dead-letter-exchange": q.name + ".dlx"}
	for name, value := range args {
		all[name] = value
	}
	_, err := q.ch.QueueDeclare(q.name, true, false, false, false, all)
	check(q.t, err)
}

func (q *keptQueue) readLetters(conn *amqp091.Connection) {
	ch, err := conn.Channel()
	if err != nil {
		return
	}
	deliveries, err := ch.Consume(q.name+".dead", "", true, false, false, false, nil)
	if err != nil {
		return
	}
	for d := range deliveries {
		reason, _ := d.Headers["x-first-death-reason"].(string)
		queue, _ := d.Headers["x-first-death-queue"].(string)
		q.mu.Lock()
		switch _, twice := q.letters[d.MessageId]; {
		case q.forgotten[d.MessageId]:
		case twice:
			q.twice = append(q.twice, d.MessageId)
		default:
			q.letters[d.MessageId] = letter{time.Now(), reason, queue}
		}
		q.mu.Unlock()
	}
}

// publish sends one message and waits for its confirm; a negative ttl is none.
func (q *keptQueue) publish(id string, ttl time.Duration) {
	q.t.Helper()
	q.confirm(q.send(id, ttl))
}

func (q *keptQueue) confirm(c *amqp091.DeferredConfirmation) {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), answerLimit)
	defer cancel()
	if ok, err := c.WaitContext(ctx); !ok || err != nil {
		q.t.Fatalf("not confirmed: %v", err)
	}
}

func (q *keptQueue) send(id string, ttl time.Duration) *amqp091.DeferredConfirmation {
	q.t.Helper()
	p := amqp091.Publishing{MessageId: id, DeliveryMode: amqp091.Persistent, Body: []byte("body of " + id)}
	if ttl = ttl.Truncate(time.Millisecond); ttl >= 0 {
		p.Expiration = strconv.FormatInt(ttl.Milliseconds(), 10)
		q.mu.Lock()
		q.deadline[id] = time.Now().Add(ttl)
		q.mu.Unlock()
	}
	c, err := q.ch.PublishWithDeferredConfirm("", q.name, false, false, p)
	check(q.t, err)
	return c
}

// forgetUnconfirmed waits up to a minute for the confirms of messages, by id, and returns those that have none, in order: RabbitMQ need not have them,
// and their publisher would send them again. They count no more.
func (q *keptQueue) forgetUnconfirmed(sent map[string]*amqp091.DeferredConfirmation) []string {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), time.Minute)
	defer cancel()
	var without []string
	for id, c := range sent {
		if _, _ = c.WaitContext(ctx); !c.Acked() { // after the minute it answers by chance
			without = append(without, id)
		}
	}
	slices.Sort(without)
	if len(without) > len(sent)/2 {
		q.t.Fatalf("RabbitMQ has confirmed %d of %d messages", len(sent)-len(without), len(sent))
	} else if len(without) > 0 {
		q.t.Logf("RabbitMQ has not confirmed %d messages: %.200q", len(without), without)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range without {
		q.forgotten[id] = true
		delete(q.letters, id)
	}
	return without
}

// fill publishes many.
func (q *keptQueue) fill(count int, id func(i int) string, ttl func(i int) time.Duration) {
	q.t.Helper()
	var waiting []*amqp091.DeferredConfirmation
	for i := range count {
		if len(waiting) >= q.unconfirmed {
			q.confirm(waiting[0])
			waiting = waiting[1:]
		}
		waiting = append(waiting, q.send(id(i), ttl(i)))
	}
	for _, c := range waiting {
		q.confirm(c)
	}
}

// dead returns how many letters have come.
func (q *keptQueue) dead() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.letters)
}

// consumers returns how many the queue counts.
func (q *keptQueue) consumers() int {
	q.t.Helper()
	counted, err := q.ch.QueueDeclarePassive(q.name, true, false, false, false, nil)
	check(q.t, err)
	return counted.Consumers
}

// expectDead waits until exactly the messages due by now have come, each once, expired, from this queue.
func (q *keptQueue) expectDead(count int, limit time.Duration) {
	q.t.Helper()
	q.t.Cleanup(func() {
		if q.t.Failed() {
			q.t.Logf("%s: %d of %d dead letters", q.name, q.dead(), count)
		}
	})
	eventually(q.t, limit, fmt.Sprintf("%d dead letters", count), func() bool { return q.dead() >= count })
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.letters) != count || len(q.twice) > 0 && !q.repeats {
		q.t.Fatalf("%d dead letters, %d twice; want %d", len(q.letters), len(q.twice), count)
	}
	for id, l := range q.letters {
		if l.reason != "expired" || l.queue != q.name {
			q.t.Fatalf("dead letter %s: reason %q, queue %q", id, l.reason, l.queue)
		}
		if early := q.deadline[id].Sub(l.at); early > q.truncated {
			q.t.Fatalf("dead letter %s came %v early", id, early)
		}
	}
}

// lateness returns the times from deadline to arrival, sorted.
func (q *keptQueue) lateness() []time.Duration { return q.latenessSince(time.Time{}) }

// latenessSince returns those of the messages that were due since then.
func (q *keptQueue) latenessSince(since time.Time) (late []time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, l := range q.letters {
		if due := q.deadline[id]; !due.Before(since) {
			late = append(late, l.at.Sub(due))
		}
	}
	slices.Sort(late)
	return late
}

func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

// running is a keeper at work.
type running struct {
	*keeper.Keeper
	stop func()

	mu      sync.Mutex
	expired []keeper.Expiry
	states  []keeper.State
}

// keep runs a keeper of the queue until the end of the test, or stop.
func (q *keptQueue) keep(t testing.TB, change func(*keeper.Options)) *running {
	t.Helper()
	r := &running{}
	o := keeper.Options{
		Queue:   q.name,
		Connect: connectTo(q.url),
		Facts:   func(context.Context) (keeper.Facts, error) { return q.facts, nil },
		Expired: func(batch []keeper.Expiry) {
			r.mu.Lock()
			r.expired = append(r.expired, batch...)
			r.mu.Unlock()
		},
		Changed: func(s keeper.Status) {
			r.mu.Lock()
			r.states = append(r.states, s.State)
			r.mu.Unlock()
		},
	}
	if change != nil {
		change(&o)
	}
	k, err := keeper.New(o)
	check(t, err)
	r.Keeper = k
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("keeper: %v", err)
			}
		case <-time.After(longer(o.MaxMessages)):
			t.Errorf("the keeper does not stop: %+v", k.Status())
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			r.mu.Lock()
			t.Logf("keeper: %+v, states %v", k.Status(), r.states)
			r.mu.Unlock()
		}
		r.stop()
	})
	return r
}

// connectTo connects as Curfew does for a keeper.
func connectTo(url string) func(context.Context) (*cluster.Conn, error) {
	at, err := cluster.Open(cluster.Options{URL: url})
	return func(ctx context.Context) (*cluster.Conn, error) {
		if err != nil {
			return nil, err
		}
		return own(at.Connect(ctx, "keeper", true))
	}
}

// own is a connection that nobody else uses.
func own(conn *amqp091.Connection, err error) (*cluster.Conn, error) {
	p := &cluster.Pool{Most: 1, Open: func(context.Context, string) (*amqp091.Connection, error) { return conn, err }}
	return p.Connect(context.Background(), "", nil)
}

// reach waits for a state with that number of messages held.
func (r *running) reach(t testing.TB, state keeper.State, held int) keeper.Status {
	t.Helper()
	var s keeper.Status
	limit := time.After(answerLimit)
	for {
		if s = r.Status(); s.State == state && (held < 0 || s.Held == held) {
			return s
		}
		select {
		case <-limit:
			t.Fatalf("not %v with %d held: %+v", state, held, s)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// drain consumes ready messages, in order, until count have come.
func (q *keptQueue) drain(t testing.TB, count int) (ids []string) {
	t.Helper()
	ch := openChannel(t, dial(t, q.url))
	check(t, ch.Qos(1000, 0, false))
	deliveries, err := ch.Consume(q.name, "app", true, false, false, false, nil)
	check(t, err)
	limit := time.After(longer(count))
	for len(ids) < count {
		select {
		case d := <-deliveries:
			ids = append(ids, d.MessageId)
		case <-limit:
			t.Fatalf("%d of %d messages came", len(ids), count)
		}
	}
	check(t, ch.Close())
	return ids
}

// longer is how long giving back or consuming that many messages may take.
func longer(count int) time.Duration {
	return answerLimit + time.Duration(count)*200*time.Microsecond
}

// breaks counts the places where the order by number is broken.
func breaks(ids []string) (n int) {
	last := math.MinInt
	for _, id := range ids {
		i, _ := strconv.Atoi(id)
		if i < last {
			n++
		}
		last = i
	}
	return n
}

// mixed returns TTLs of 50 ms to 1 h behind one of an hour: a third is due within the test, the others are not.
func mixed(seed uint64, soon time.Duration) func(i int) time.Duration {
	r := rand.New(rand.NewPCG(seed, 7))
	return func(i int) time.Duration {
		switch {
		case i == 0 || r.IntN(3) > 0:
			return time.Hour - time.Duration(r.IntN(600))*time.Second
		default:
			return 50*time.Millisecond + time.Duration(r.Int64N(int64(soon)))
		}
	}
}
