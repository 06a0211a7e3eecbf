package rabbitmq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/observe"
)

// observing is an Observer at work, with what it has reported.
type observing struct {
	*observe.Observer
	mu   sync.Mutex
	told map[string]deadline.Expiry // by message-id
	stop func()
}

func startObserver(t *testing.T, c *cluster.Cluster, watch string) *observing {
	t.Helper()
	w, err := cluster.ParseWatch(watch)
	check(t, err)
	o := &observing{told: map[string]deadline.Expiry{}}
	o.Observer = observe.New(observe.Options{VHost: c.Address.VHost, Expired: o.expired, Log: zaptest.NewLogger(t),
		Connect: func(ctx context.Context) (*amqp091.Connection, error) { return c.Connect(ctx, "observe", false) }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	var looking sync.WaitGroup
	looking.Go(func() { // as a Primary does
		for ctx.Err() == nil {
			if v, err := lookFor(ctx, c, w); err == nil {
				o.Show(v)
			} else if ctx.Err() == nil {
				t.Logf("look: %v", err)
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
	o.stop = sync.OnceFunc(func() {
		cancel()
		looking.Wait()
		if err := <-ended; err != context.Canceled {
			t.Errorf("the observer ended with %v", err)
		}
	})
	t.Cleanup(o.stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("queues: %+v", o.States())
		}
	})
	return o
}

// lookFor takes an inventory; every queue with a rule is observed.
func lookFor(ctx context.Context, c *cluster.Cluster, w cluster.Watch) (*observe.View, error) {
	names, _ := w.Names()
	i, err := c.Inventory(ctx, names, w.Measured(c.Address.VHost))
	if err != nil {
		return nil, err
	}
	v := &observe.View{Inventory: i, Observed: map[string]bool{}}
	for _, q := range i.Queues {
		_, v.Observed[q.Name] = w.Rule(i.VHost, q.Name)
	}
	v.Exchanges, v.Bindings, v.Unknown = c.Topology(ctx)
	return v, nil
}

func (o *observing) expired(list []deadline.Expiry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range list {
		o.told[string(e.MessageID)] = e
	}
}

func (o *observing) state(queue string) (s observe.State) {
	for _, one := range o.States() {
		if one.Queue == queue {
			return one
		}
	}
	return s
}

func (o *observing) tapped(t *testing.T, queues ...string) {
	t.Helper()
	eventually(t, answerLimit, "taps of "+strings.Join(queues, ", "), func() bool {
		for _, q := range queues {
			if !o.state(q).Tapped {
				return false
			}
		}
		return true
	})
}

// TestTapAccuracy: with a consumer that is too slow, the tap shows for each message whether it still waited at its deadline.
func TestTapAccuracy(t *testing.T) {
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			accurate := false
			for attempt := 1; !accurate && !t.Failed(); attempt++ {
				require.LessOrEqual(t, attempt, 3, "too much was told wrongly or not at all, three times")
				t.Run(strconv.Itoa(attempt), func(t *testing.T) { accurate = tapAccuracy(t, kind) })
			}
		})
	}
}

// tapAccuracy reports whether nearly all messages that expired were reported, and nearly no others. On a busy machine, counts come too late
// for some.
func tapAccuracy(t *testing.T, kind string) bool {
	const messages, publishRate, consumeRate = 1500, 500, 200
	n := sharedNode(t)
	_, url := n.vhost(t)
	conn := dial(t, url)
	ch := openChannel(t, conn)
	check(t, ch.ExchangeDeclare("work", "topic", true, false, false, false, nil))
	declare(t, ch, "dead", nil)
	declare(t, ch, "jobs", table{"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
	check(t, ch.QueueBind("jobs", "job.#", "work", false, nil))
	check(t, ch.QueueBind("jobs", "job.*", "work", false, nil)) // both match: one copy, here and in the tap
	o := startObserver(t, open(t, n, url), "observe:jobs")
	o.tapped(t, "jobs")

	// The truth: which messages were consumed, and which were dead-lettered.
	consumed, dead := make(chan string, messages), make(chan string, messages)
	worker := openChannel(t, conn)
	check(t, worker.Qos(5, 0, false))
	jobs, err := worker.Consume("jobs", "worker", false, false, false, false, nil)
	check(t, err)
	go func() {
		next := time.NewTicker(time.Second / consumeRate)
		defer next.Stop()
		for d := range jobs {
			<-next.C
			d.Ack(false)
			consumed <- d.MessageId
		}
	}()
	letters, err := openChannel(t, conn).Consume("dead", "", true, false, false, false, nil)
	check(t, err)
	go func() {
		for d := range letters {
			dead <- d.MessageId
		}
	}()

	pace := time.NewTicker(time.Second / publishRate)
	defer pace.Stop()
	for i := range messages {
		<-pace.C
		check(t, ch.PublishWithContext(t.Context(), "work", "job.x", false, false, amqp091.Publishing{
			MessageId: strconv.Itoa(i), Expiration: strconv.Itoa(100 + rand.IntN(4000)), DeliveryMode: amqp091.Persistent}))
	}
	served, expired := map[string]bool{}, map[string]bool{}
	for range messages {
		select {
		case id := <-consumed:
			served[id] = true
		case id := <-dead:
			expired[id] = true
		case <-time.After(answerLimit):
			t.Fatalf("of %d messages %d were consumed and %d expired", messages, len(served), len(expired))
		}
	}
	eventually(t, answerLimit, "every message to be judged", func() bool {
		s := o.state("jobs")
		return s.Counts.InTime+s.Counts.Expired == messages
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	falseAlarms, untold, late := 0, 0, 0
	for id := range o.told {
		if served[id] {
			falseAlarms++
		}
	}
	for id := range expired {
		m, ok := o.told[id]
		if !ok {
			untold++
		} else if m.Action != deadline.DeadLettered || m.Arrived < m.Ref.Deadline {
			t.Errorf("message %s: %+v", id, m)
		} else if m.Lateness() > 50*time.Millisecond {
			late++
		}
	}
	unsure := int(o.state("jobs").Unsure)
	t.Logf("%s: %d consumed, %d expired, of which %d were told and %d not (%d are unsure); %d false alarms; %d were seen to leave more than 50 ms late",
		kind, len(served), len(expired), len(expired)-untold, untold, unsure, falseAlarms, late)
	require.Greater(t, len(expired), messages/5, "the consumer was not slow enough to say anything")
	require.Zero(t, o.state("jobs").Overdue)
	// The few false alarms are consumed while they are counted; a message at the head at its deadline may have been consumed.
	return falseAlarms <= len(served)/200 && untold <= unsure+len(expired)/100
}

// TestObserveForecast: a message behind a long line is reported before it misses its deadline. If the machine stalled for so long that the
// connection was lost, the counts are lost too, and the test tries again.
func TestObserveForecast(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, url := n.vhost(t)
	ch := openChannel(t, dial(t, url))
	c := open(t, n, url)
	for attempt := 1; ; attempt++ {
		queue := fmt.Sprint("line-", attempt)
		declare(t, ch, queue, nil)
		check(t, ch.QueueBind(queue, queue, "amq.direct", false, nil))
		o := startObserver(t, c, "observe:"+queue)
		o.tapped(t, queue)
		restarted := func() bool { return o.state(queue).Restarts > 0 }
		publish(t, ch, "amq.direct", queue, "", 500)
		publish(t, ch, "amq.direct", queue, "60000", 100)
		eventually(t, answerLimit, "the deadlines", func() bool { return o.state(queue).Expire == 100 || restarted() })
		missed := o.state(queue).Missed
		publish(t, ch, "amq.direct", queue, "50", 10)
		eventually(t, answerLimit, "what has missed its deadline", func() bool { return o.state(queue).Overdue == 10 || restarted() })
		if restarted() && attempt < 3 {
			t.Logf("attempt %d: counting started over", attempt)
			o.stop()
			continue
		}
		require.False(t, restarted())
		require.Zero(t, missed)
		require.EqualValues(t, 10, o.state(queue).Missed)
		_, err := ch.QueuePurge(queue, false)
		check(t, err)
		eventually(t, answerLimit, "the purge", func() bool { return o.state(queue).Overdue == 0 })
		return
	}
}

// TestUntappable: queues that cannot be tapped are listed with the reason, and counted.
func TestUntappable(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, url := n.vhost(t)
	ch := openChannel(t, dial(t, url))
	check(t, ch.ExchangeDeclare("hash", "x-consistent-hash", true, false, false, false, nil))
	check(t, ch.ExchangeDeclare("random", "x-random", true, false, false, false, nil))
	want := map[string]string{
		"default":    "default exchange",
		"hash":       `Exchange hash of type "x-consistent-hash"`,
		"random":     `Exchange random of type "x-random"`,
		"priorities": "priorities",
		"full":       "refuses messages",
		"retry":      "Dead letters of queue default",
		"stream":     "stream",
		"bypassed":   "some arrive through the default exchange",
	}
	args := map[string]table{"default": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "retry"}, "priorities": {"x-max-priority": 3},
		"full": {"x-max-length": 10, "x-overflow": "reject-publish"}, "stream": {"x-queue-type": "stream"}}
	for name := range want {
		declare(t, ch, name, args[name])
	}
	for queue, exchange := range map[string]string{"hash": "hash", "random": "random", "priorities": "amq.direct", "full": "amq.direct", "retry": "amq.direct", "bypassed": "amq.direct"} {
		check(t, ch.QueueBind(queue, "1", exchange, false, nil))
	}
	o := startObserver(t, open(t, n, url), "observe:*")
	o.tapped(t, "bypassed")
	publish(t, ch, "", "default", "", 3)
	eventually(t, answerLimit, "the reasons", func() bool {
		publish(t, ch, "", "bypassed", "", 1)
		for name, reason := range want {
			if s := o.state(name); s.Tapped || !strings.Contains(s.Reason, reason) {
				return false
			}
		}
		return o.state("default").Ready == 3
	})

	// RabbitMQ does not count an exclusive queue for others: its totals are those of the management API.
	_, err := ch.QueueDeclare("locked", false, false, true, false, nil)
	check(t, err)
	publish(t, ch, "", "locked", "", 4)
	eventually(t, answerLimit, "the totals of an exclusive queue", func() bool {
		s := o.state("locked")
		return s.Ready == 4 && !s.Tapped && strings.Contains(s.Reason, "exclusive")
	})
}

// TestTapsGo: a tap leaves nothing behind, follows bindings, and needs no permissions but its own.
func TestTapsGo(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	vhost, url := n.vhost(t)
	ch := openChannel(t, dial(t, url))
	declare(t, ch, "jobs", nil)
	check(t, ch.QueueBind("jobs", "a", "amq.topic", false, nil))
	write := `^curfew\.tap\.`
	if family() == cluster.Family43 { // where counting needs some permission
		write = `^(curfew\.tap\..*|jobs)$`
	}
	user := n.user(t, url, "observer", "monitoring", `^curfew\.tap\.`, write, `^(curfew\.tap\..*|amq\.topic)$`)
	o := startObserver(t, open(t, n, user), "observe:jobs")
	o.tapped(t, "jobs")
	publish(t, ch, "amq.topic", "a", "60000", 5)
	eventually(t, answerLimit, "the messages", func() bool { return o.state("jobs").Entered == 5 })
	check(t, ch.QueueBind("jobs", "b", "amq.topic", false, nil))
	eventually(t, answerLimit, "the second binding", func() bool { return o.state("jobs").Restarts == 1 && o.state("jobs").Tapped })
	publish(t, ch, "amq.topic", "b", "60000", 7)
	eventually(t, answerLimit, "the messages", func() bool { return o.state("jobs").Entered == 7 })
	require.Equal(t, cluster.TTLStats{Messages: 12, Expiring: 12, Least: 60_000, Most: 60_000}, o.state("jobs").Seen)

	taps := func() (names []string) {
		var list []struct{ Name string }
		n.api(t, "GET", fmt.Sprintf("queues/%s?disable_stats=true&enable_queue_totals=true", vhost), nil, &list)
		for _, q := range list {
			if strings.HasPrefix(q.Name, cluster.TapPrefix) {
				names = append(names, q.Name)
			}
		}
		return names
	}
	eventually(t, answerLimit, "one tap", func() bool { return len(taps()) == 1 })
	o.stop()
	eventually(t, answerLimit, "no tap", func() bool { return len(taps()) == 0 })
}
