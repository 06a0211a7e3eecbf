package rabbitmq

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/lease"
)

// TestKeeperStandsAsideForConsumers: an application comes, seen by a look or an event, gets all in order, and goes.
func TestKeeperStandsAsideForConsumers(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, url := n.vhost(t)
	for _, kind := range queueTypes {
		for _, by := range []string{"look", "event"} {
			t.Run(string(kind)+" "+by, func(t *testing.T) {
				t.Parallel()
				const count = 3000
				q := declareKept(t, url, string(kind)+by, kind, nil)
				events := make(chan keeper.Event, 1)
				r := q.keep(t, func(o *keeper.Options) { o.Events = events })
				r.reach(t, keeper.Keeping, 0)
				q.fill(count, strconv.Itoa, func(i int) time.Duration { return time.Hour })
				r.reach(t, keeper.Keeping, count)

				ch := openChannel(t, dial(t, url))
				check(t, ch.Qos(count, 0, false))
				begin := time.Now()
				deliveries, err := ch.Consume(q.name, "app", false, false, false, false, nil)
				check(t, err)
				if by == "event" {
					events <- keeper.Event{ConsumerTag: "app"}
				}
				var ids []string
				var first time.Duration
				for d := range deliveries {
					if len(ids) == 0 {
						first = time.Since(begin)
					}
					if ids = append(ids, d.MessageId); len(ids) <= 1000 {
						check(t, d.Ack(false))
					}
					if len(ids) == count {
						break
					}
				}
				if n := breaks(ids); n > 0 {
					t.Errorf("%d breaks in the order", n)
				}
				s := r.reach(t, keeper.StandingAside, 0)
				t.Logf("%s, seen by %s: first of %d messages after %v, release took %v, the last after %v", kind, by, count, first, s.LastRelease.Took, time.Since(begin))

				// Messages that came meanwhile and were not consumed are kept when the application has gone.
				q.publish("late", 500*time.Millisecond)
				check(t, ch.Close())
				s = r.reach(t, keeper.Keeping, count-1000)
				if s.Counts.UnknownAge > 0 {
					t.Errorf("%d messages of unknown age: their deadlines were known before", s.Counts.UnknownAge)
				}
				q.expectDead(1, answerLimit)
			})
		}
	}
}

// TestKeeperSurvivesLosses: the connection is cut, a channel is closed by a lost permission, the queue is deleted and declared again.
func TestKeeperSurvivesLosses(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	vhost, url := n.vhost(t)
	for _, kind := range queueTypes {
		t.Run("cut "+string(kind), func(t *testing.T) {
			t.Parallel()
			q := declareKept(t, url, "cut."+string(kind), kind, nil)
			var mu sync.Mutex
			var sockets []net.Conn
			r := q.keep(t, func(o *keeper.Options) {
				o.PerChannel = 50
				o.Connect = func(context.Context) (*cluster.Conn, error) {
					return own(amqp091.DialConfig(url, amqp091.Config{Dial: func(network, addr string) (net.Conn, error) {
						c, err := amqp091.DefaultDial(answerLimit)(network, addr)
						mu.Lock()
						sockets = append(sockets, c)
						mu.Unlock()
						return c, err
					}}))
				}
			})
			r.reach(t, keeper.Keeping, 0)
			due := 0
			ttl := mixed(2, 3*time.Second)
			q.fill(600, strconv.Itoa, func(i int) time.Duration {
				d := ttl(i)
				if d < time.Minute {
					due++
				}
				return d
			})
			for range 3 {
				mu.Lock()
				sockets[len(sockets)-1].Close()
				count := len(sockets)
				mu.Unlock()
				eventually(t, answerLimit, "another connection", func() bool { mu.Lock(); defer mu.Unlock(); return len(sockets) > count })
			}
			q.expectDead(due, answerLimit)
			r.reach(t, keeper.Keeping, 600-due)
			late := q.lateness()
			t.Logf("%s, connection cut three times: late p50 %v max %v", kind, percentile(late, 0.5), late[len(late)-1])
		})
		t.Run("deleted "+string(kind), func(t *testing.T) {
			t.Parallel()
			q := declareKept(t, url, "deleted."+string(kind), kind, nil)
			r := q.keep(t, func(o *keeper.Options) { o.PerChannel = 10 })
			r.reach(t, keeper.Keeping, 0)
			q.fill(45, strconv.Itoa, func(int) time.Duration { return time.Hour })
			r.reach(t, keeper.Keeping, 45)
			_, err := q.ch.QueueDelete(q.name, false, false, false)
			check(t, err)
			r.reach(t, keeper.Observing, 0)
			q.declare(nil)
			q.publish("again", 300*time.Millisecond)
			q.publish("kept", time.Hour)
			q.expectDead(1, answerLimit)
			r.reach(t, keeper.Keeping, 1)
		})
		t.Run("declared again "+string(kind), func(t *testing.T) {
			t.Parallel()
			q := declareKept(t, url, "again."+string(kind), kind, nil)
			events := make(chan keeper.Event, 1)
			r := q.keep(t, func(o *keeper.Options) { o.PerChannel, o.Events = 50, events })
			r.reach(t, keeper.Keeping, 0)
			q.fill(230, strconv.Itoa, func(int) time.Duration { return time.Hour })
			r.reach(t, keeper.Keeping, 230)
			_, err := q.ch.QueueDelete(q.name, false, false, false)
			check(t, err)
			q.declare(nil)
			if kind == cluster.Quorum && family() == cluster.Family3 { // where nothing else shows it
				events <- keeper.Event{Kind: keeper.QueueDeleted}
			}
			r.reach(t, keeper.Keeping, 0)
			q.publish("again", 300*time.Millisecond)
			q.publish("kept", time.Hour)
			q.expectDead(1, answerLimit)
			r.reach(t, keeper.Keeping, 1)
			if ids := q.drain(t, 1); ids[0] != "kept" {
				t.Errorf("an application was given %v", ids)
			}
		})
		t.Run("permission "+string(kind), func(t *testing.T) {
			t.Parallel()
			q := declareKept(t, url, "permission."+string(kind), kind, nil)
			name := "keeper-" + string(kind)
			as := n.user(t, url, name, "", "", "", ".*")
			r := q.keep(t, func(o *keeper.Options) {
				o.PerChannel = 10
				o.Connect = connectTo(as)
			})
			r.reach(t, keeper.Keeping, 0)
			q.fill(25, strconv.Itoa, func(int) time.Duration { return time.Hour })
			r.reach(t, keeper.Keeping, 25)
			allow := func(read string) {
				n.api(t, http.MethodPut, "permissions/"+vhost+"/"+name, map[string]string{"configure": "", "write": "", "read": read}, nil)
			}
			allow("^$")
			q.fill(25, func(i int) string { return strconv.Itoa(100 + i) }, func(int) time.Duration { return time.Hour })
			s := r.reach(t, keeper.Refused, 0)
			if !strings.Contains(s.Reason, "may not") {
				t.Errorf("%+v", s)
			}
			allow(".*")
			r.reach(t, keeper.Keeping, 50)
		})
	}
}

// TestKeeperSparesTheDeliveryLimit: no message is dead-lettered because the keeper has taken it too often.
func TestKeeperSparesTheDeliveryLimit(t *testing.T) {
	t.Parallel()
	_, url := sharedNode(t).vhost(t)
	q := declareKept(t, url, "limited", cluster.Quorum, amqp091.Table{"x-delivery-limit": 5})
	q.facts.DeliveryLimit = 5
	q.fill(20, strconv.Itoa, func(int) time.Duration { return time.Hour })
	for range 2 {
		r := q.keep(t, nil)
		r.reach(t, keeper.Keeping, 20)
		r.stop()
	}
	r := q.keep(t, nil)
	if family() == cluster.Family43 { // where a nack does not count
		r.reach(t, keeper.Keeping, 20)
	} else if s := r.reach(t, keeper.Refused, 0); !strings.Contains(s.Reason, "delivery limit") {
		t.Errorf("%+v", s)
	}
	r.stop()
	if ids := q.drain(t, 20); breaks(ids) > 0 || q.dead() > 0 {
		t.Errorf("%d dead letters, order %v", q.dead(), ids)
	}
}

// TestKeeperAndARestartedNode: the node is killed and comes back; the keeper still knows the deadlines.
func TestKeeperAndARestartedNode(t *testing.T) {
	t.Parallel()
	n := loneNode(t)
	_, url := n.vhost(t)
	declared := time.Now()
	queues := map[cluster.QueueType]*keptQueue{}
	keepers := map[cluster.QueueType]*running{}
	for _, kind := range queueTypes {
		q := declareKept(t, url, "restart."+string(kind), kind, nil)
		r := q.keep(t, func(o *keeper.Options) { o.PerChannel = 100 })
		r.reach(t, keeper.Keeping, 0)
		ttl := mixed(3, 8*time.Second)
		q.fill(500, strconv.Itoa, func(i int) time.Duration {
			if d := ttl(i); d > time.Minute {
				return d
			} else {
				return d + 25*time.Second // after the restart
			}
		})
		r.reach(t, keeper.Keeping, 500)
		queues[kind], keepers[kind] = q, r
	}
	// RabbitMQ 3.10 alone brings a quorum queue back empty when its node is killed within seconds of the declaration.
	eventually(t, answerLimit, "the queues to be old enough", func() bool { return time.Since(declared) > 12*time.Second })
	n.kill()
	for _, r := range keepers {
		r.reach(t, keeper.Observing, 0)
	}
	check(t, n.start())
	for kind, q := range queues {
		due := 0
		q.mu.Lock()
		for _, at := range q.deadline {
			if time.Until(at) < time.Minute {
				due++
			}
		}
		q.mu.Unlock()
		go func() { // a restarted quorum queue refuses consumers for some seconds
			for t.Context().Err() == nil {
				if conn, err := amqp091.Dial(url); err == nil {
					q.readLetters(conn)
					conn.Close()
				}
			}
		}()
		q.expectDead(due, answerLimit)
		s := keepers[kind].reach(t, keeper.Keeping, 500-due)
		late := q.lateness()
		t.Logf("%s: %d due after the restart, late p50 %v max %v", kind, due, percentile(late, 0.5), late[len(late)-1])
		if s.Counts.UnknownAge > 0 {
			t.Errorf("%s: %d messages of unknown age", kind, s.Counts.UnknownAge)
		}
	}
}

// helperConfig is what a keeper in a process of its own needs.
type helperConfig struct {
	URL, API, Queue, Redis, Name string
	Facts                        keeper.Facts // if there is no API
}

const helperVariable = "CURFEW_TEST_KEEPER"

// init makes this test binary a keeper when it is started as one.
func init() {
	text := os.Getenv(helperVariable)
	if text == "" {
		return
	}
	if err := runHelper(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runHelper prints a Status as JSON at each change and every 50 ms.
func runHelper(text string) error {
	var c helperConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: c.Redis})
	defer client.Close()
	shadows := lease.NewShadows(client, lease.Space{}, c.Queue, false, func() time.Duration { return 0 }, zap.NewNop())
	o := keeper.Options{
		Queue: c.Queue, Name: c.Name,
		Connect: connectTo(c.URL),
		Facts:   func(context.Context) (keeper.Facts, error) { return c.Facts, nil },
		Lease:   lease.New(client, lease.Space{}, c.Queue, c.Name),
		Shadows: shadows,
	}
	k, err := keeper.New(o)
	if err != nil {
		return err
	}
	go shadows.Run(ctx)
	go func() {
		for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
			json.NewEncoder(os.Stdout).Encode(k.Status())
		}
	}()
	return k.Run(ctx)
}

// helper is a keeper in a process of its own.
type helper struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	s   keeper.Status
}

func startHelper(t testing.TB, c helperConfig) *helper {
	t.Helper()
	config, err := json.Marshal(c)
	check(t, err)
	h := &helper{cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), helperVariable+"="+string(config))
	h.cmd.Stderr = os.Stderr
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := h.cmd.StdoutPipe()
	check(t, err)
	check(t, h.cmd.Start())
	t.Cleanup(h.kill)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			h.mu.Lock()
			json.Unmarshal(lines.Bytes(), &h.s)
			h.mu.Unlock()
		}
	}()
	return h
}

func (h *helper) status() keeper.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.s
}

func (h *helper) kill() {
	h.cmd.Process.Kill()
	h.cmd.Wait()
}

// TestKeepersTakeOverFromEachOther: one is killed, one is stopped past its lease, and Redis goes away.
func TestKeepersTakeOverFromEachOther(t *testing.T) {
	t.Parallel()
	_, url := sharedNode(t).vhost(t)
	store := testenv.StartRedis(t)
	for _, kind := range queueTypes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			q := declareKept(t, url, "shared."+string(kind), kind, nil)
			start := func(name string) *helper {
				return startHelper(t, helperConfig{URL: q.url, Queue: q.name, Redis: store.Addr, Name: name, Facts: q.facts})
			}
			first := start("first")
			eventually(t, answerLimit, "the first to keep", func() bool { return first.status().State == keeper.Keeping })
			second := start("second")
			due := 0
			ttl := mixed(4, 15*time.Second)
			q.fill(1000, strconv.Itoa, func(i int) time.Duration {
				d := ttl(i)
				if d < time.Minute {
					due++
				}
				return d
			})
			eventually(t, answerLimit, "all to be held", func() bool { return first.status().Held+q.dead() >= 1000 })
			eventually(t, answerLimit, "the second to wait", func() bool { s := second.status(); return s.State == keeper.Observing && s.Keeper == "first" })
			shadows := lease.NewShadows(store.Client, lease.Space{}, q.name, false, func() time.Duration { return 0 }, zap.NewNop())
			eventually(t, answerLimit, "the shadows to be written", func() bool {
				all, err := shadows.Load(t.Context())
				return err == nil && len(all) >= first.status().Held
			})
			killed := time.Now()
			first.kill()
			eventually(t, answerLimit, "the second to keep", func() bool { s := second.status(); return s.State == keeper.Keeping && s.CaughtUp })
			took := time.Since(killed)
			if took > 15*time.Second { // 5 s on a quiet machine
				t.Errorf("taken over after %v", took)
			}
			if s := second.status(); s.Counts.UnknownAge > 0 {
				t.Errorf("%d messages of unknown age at the second keeper", s.Counts.UnknownAge)
			}
			third := start("third")
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("second: %+v; third: %+v", second.status(), third.status())
				}
			})
			holder, waiter, name := second, third, "third"
			eventually(t, answerLimit, "the third to see a keeper", func() bool { return third.status().Keeper != "" })
			if third.status().Keeper == name { // the second was without a processor for as long as its lease
				holder, waiter, name = third, second, "second"
			}
			check(t, holder.cmd.Process.Signal(syscall.SIGSTOP))
			stopped := time.Now()
			eventually(t, answerLimit, "the other one to have the lease", func() bool { return waiter.status().Keeper == name })
			leased := time.Since(stopped)
			eventually(t, answerLimit, "the other one to keep", func() bool { s := waiter.status(); return s.State == keeper.Keeping && s.Held > 0 })
			kept := time.Since(stopped)
			if kept > 15*time.Second { // 5 to 7 s on a quiet machine
				t.Errorf("taken over from the one that stands still after %v", kept)
			}
			check(t, holder.cmd.Process.Signal(syscall.SIGCONT))
			eventually(t, answerLimit, "the one that stood still to yield", func() bool { s := holder.status(); return s.State == keeper.Observing && s.Keeper == name })
			q.expectDead(due, answerLimit)
			t.Logf("%s: %d due; killed: kept by the next after %v; stopped: lease after %v, kept after %v", kind, due, took, leased, kept)
			eventually(t, answerLimit, "it to hold the rest", func() bool { s := waiter.status(); return s.State == keeper.Keeping && s.Held == 1000-due })
		})
	}
}

// TestKeeperWithoutRedis: a kept queue stays kept while Redis is away, flushed and back.
func TestKeeperWithoutRedis(t *testing.T) {
	t.Parallel()
	_, url := sharedNode(t).vhost(t)
	store := testenv.StartRedis(t)
	q := declareKept(t, url, "noredis", cluster.Classic, nil)
	shadows := lease.NewShadows(store.Client, lease.Space{}, q.name, false, func() time.Duration { return 0 }, zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go shadows.Run(ctx)
	r := q.keep(t, func(o *keeper.Options) {
		o.Lease, o.Shadows = lease.New(store.Client, lease.Space{}, q.name, "one"), shadows
	})
	r.reach(t, keeper.Keeping, 0)
	ttl := func(i int) time.Duration { return []time.Duration{time.Hour, 4 * time.Second}[i%2] }
	q.fill(200, strconv.Itoa, ttl)
	r.reach(t, keeper.Keeping, 200)
	store.Kill()
	eventually(t, answerLimit, "the lost lease to be told", func() bool { return r.Status().LeaseError != "" })
	q.expectDead(100, answerLimit)
	if s := r.Status(); s.State != keeper.Keeping || s.Held != 100 {
		t.Errorf("without Redis: %+v", s)
	}
	store.Restart()
	eventually(t, answerLimit, "the lease again", func() bool { return r.Status().LeaseError == "" })
	remembered := func() bool {
		all, err := shadows.Load(t.Context())
		return err == nil && len(all) >= 100
	}
	eventually(t, answerLimit, "the shadows again", remembered)
	store.Do("FLUSHALL")
	eventually(t, answerLimit, "the shadows after a flush", remembered)
	r.reach(t, keeper.Keeping, 100)
}

// TestKeeperRollsStretches: stretches are given back and taken again while messages come, for generations and for messages
// of unknown age, and the order stays; on a quorum queue a few that come during a roll may change places.
func TestKeeperRollsStretches(t *testing.T) {
	t.Parallel()
	_, url := sharedNode(t).vhost(t)
	for _, kind := range queueTypes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var args amqp091.Table
			if kind == cluster.Quorum && family() == cluster.Family40 { // whose default limit would be reached by that many generations
				args = amqp091.Table{"x-delivery-limit": -1}
			}
			q := declareKept(t, url, "rolled."+string(kind), kind, args)
			if args != nil {
				q.facts.DeliveryLimit = 0
			}
			q.facts.ConsumerTimeout = 4 * time.Second
			const before, after = 400, 600
			ttl := mixed(5, 6*time.Second)
			due := 0
			count := func(i int) time.Duration {
				d := ttl(i)
				if d < time.Minute {
					due++
				}
				return d
			}
			q.fill(before, strconv.Itoa, count)
			r := q.keep(t, func(o *keeper.Options) { o.PerChannel = 100 })
			for i := range after {
				q.publish(strconv.Itoa(before+i), count(i+1))
			}
			q.expectDead(due, answerLimit)
			rolls := uint64(15)
			if family() == cluster.Family43 { // which has no generations: only messages of unknown age are given back, for some seconds
				rolls = 5
			}
			eventually(t, answerLimit, "rolls", func() bool { return r.Status().Counts.Rolls >= rolls })
			r.reach(t, keeper.Keeping, before+after-due)
			eventually(t, answerLimit, "reports", func() bool { c := r.Status().Counts; return c.Expired >= c.GivenBack })
			r.stop()
			s := r.Status()
			late := q.lateness()
			t.Logf("%s: %d rolls, %d of unknown age, late p50 %v max %v", kind, s.Counts.Rolls, s.Counts.UnknownAge,
				percentile(late, 0.5), late[len(late)-1])
			// Some forty rolls while the queue is published to displaced 0 to 6 of 650 messages on a busy machine. One place in
			// twenty is far from the order of a queue whose messages are all delivered again.
			allowed := map[cluster.QueueType]int{cluster.Quorum: (before + after - due) / 20}[kind]
			if n := breaks(q.drain(t, before+after-due)); n > allowed {
				t.Errorf("%d breaks in the order", n)
			} else if n > 0 {
				t.Logf("%d of %d places where the order is broken", n, before+after-due)
			}
		})
	}
}

// TestKeeperMakesRoomForPolling: an application that reads a kept queue with basic.get finds nothing. RabbitMQ's statistics
// show it, the queue is refused with the reason, and the application gets its messages, in order.
func TestKeeperMakesRoomForPolling(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, url := n.vhost(t)
	c := open(t, n, url)
	for _, kind := range queueTypes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			const count = 50
			rule := cluster.DefaultWatch()[0]
			rule.Mode = cluster.Keep
			decide := func() cluster.Decision {
				i, err := c.Inventory(t.Context(), nil, "")
				check(t, err)
				found := i.Queue("polled." + string(kind))
				if found == nil {
					t.Fatal("the queue is not listed")
				}
				return cluster.Decide(found, rule, i.Server, cluster.TTLStats{}, true)
			}
			q := declareKept(t, url, "polled."+string(kind), kind, nil)
			r := q.keep(t, nil)
			r.reach(t, keeper.Keeping, 0)
			q.fill(count, strconv.Itoa, func(int) time.Duration { return time.Hour })
			r.reach(t, keeper.Keeping, count)
			eventually(t, answerLimit, "statistics", func() bool { return decide().Verdict == cluster.Kept })

			app := openChannel(t, dial(t, url))
			if _, ok, err := app.Get(q.name, true); ok || err != nil {
				t.Fatalf("a message for a poll while all are held: %v, %v", ok, err)
			}
			begin := time.Now()
			var d cluster.Decision
			eventually(t, answerLimit, "the poll to be seen", func() bool { d = decide(); return d.Verdict == cluster.Refused })
			t.Logf("%s: one basic.get seen after %v", kind, time.Since(begin))
			require.Equal(t, cluster.IsPolled, d.Code, d.Reason)
			require.Contains(t, d.Reason, "basic.get")
			r.stop()
			var ids []string
			for len(ids) < count {
				m, ok, err := app.Get(q.name, true)
				check(t, err)
				if !ok {
					t.Fatalf("%d of %d messages for the application", len(ids), count)
				}
				ids = append(ids, m.MessageId)
			}
			if n := breaks(ids); n > 0 || q.dead() > 0 {
				t.Errorf("%d breaks in the order, %d dead letters", n, q.dead())
			}
			require.Equal(t, cluster.IsPolled, decide().Code, "it may come again")
		})
	}
}
