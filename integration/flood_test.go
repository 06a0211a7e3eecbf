package integration

import (
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"curfew/integration/bench/load"
)

// floodKept is the least part of what is published that consumers take under a flood.
const floodKept = 0.8

// TestFlood: consumers keep up with publishers without bound, on a busy machine as well.
func TestFlood(t *testing.T) {
	c := startCurfew(t)
	for _, busy := range []bool{false, true} {
		if busy {
			keepBusy(t)
		}
		for _, s := range []load.Spec{
			{Producers: 1, Consumers: 1, Prefetch: 1000},
			{Producers: 4, Consumers: 4, Prefetch: 1000},
			{Producers: 16, Consumers: 1, Queues: 1, Prefetch: 1000},
			{Producers: 4, Consumers: 4, Prefetch: 10},
		} {
			s.URL, s.Size, s.Ack, s.Warmup, s.Duration = c.url, 100, "each", time.Second/2, 2*time.Second
			onceWithin(t, time.Minute, func() error { // the machine may stand still for a while
				r, err := load.Throughput(t.Context(), s)
				check(t, err)
				t.Logf("busy %v, %d producers, %d consumers, prefetch %d: %.0f published and %.0f consumed a second",
					busy, s.Producers, s.Consumers, s.Prefetch, r.Published, r.Consumed)
				if r.Consumed < floodKept*r.Published || r.Consumed == 0 {
					return fmt.Errorf("consumers took %.2f of what was published", r.Consumed/r.Published)
				}
				return nil
			})
		}
	}
}

// onceWithin fails the test if fn fails each time until the limit has passed.
func onceWithin(t *testing.T, limit time.Duration, fn func() error) {
	t.Helper()
	began := time.Now()
	for err := fn(); err != nil; err = fn() {
		t.Log(err)
		if time.Since(began) > limit {
			t.Fatal(err)
		}
	}
}

// keepBusy runs a process on each processor that does nothing else, until the end of the test.
func keepBusy(t *testing.T) {
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		check(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

const (
	costlyExchanges  = 6000
	costlyPublishers = 60
	costlyMessages   = 10 // of each
	victimTTL        = 200 * time.Millisecond
	victimLimit      = 100 * time.Millisecond
)

// TestCostlyPublishesDelayNobodyElse: many connections of a tenant publish what takes long to route. Another tenant's publishes and
// deadlines are on time.
func TestCostlyPublishesDelayNobodyElse(t *testing.T) {
	c := startCurfew(t)
	victim := openChannel(t, dial(t, c.url))
	declareDeadLettered(t, victim, topology{"v", "vx", "late"}, amqp091.Table{"x-message-ttl": victimTTL.Milliseconds()})
	letters, err := victim.Consume("late", "", true, false, false, false, nil)
	check(t, err)

	c.done(t, http.MethodPut, "vhosts/m", "")
	c.done(t, http.MethodPut, "permissions/m/guest", `{"configure": ".*", "write": ".*", "read": ".*"}`)
	tenant := openChannel(t, dial(t, c.url+"/m"))
	check(t, tenant.ExchangeDeclare("F", "fanout", false, false, false, true, nil))
	for i := range costlyExchanges {
		name := "x" + strconv.Itoa(i)
		check(t, tenant.ExchangeDeclare(name, "fanout", false, false, false, true, nil))
		check(t, tenant.ExchangeBind(name, "", "F", true, nil))
	}
	_, err = tenant.QueueDeclare("sync", false, false, false, false, nil)
	check(t, err)
	onceWithin(t, time.Minute, func() error { // the machine may stand still for a while
		late := costlyPublishes(t, c, victim, letters)
		slices.Sort(late)
		t.Logf("%d dead letters: p50 %v, p99 %v, worst %v late", len(late), quantile(late, 0.5), quantile(late, 0.99), late[len(late)-1])
		if p99 := quantile(late, 0.99); p99 > victimLimit {
			return fmt.Errorf("deadlines were %v late", p99)
		}
		return nil
	})
}

// costlyPublishes has the tenant publish, and returns how late the victim's dead letters were meanwhile.
func costlyPublishes(t *testing.T, c *curfew, victim *amqp091.Channel, letters <-chan amqp091.Delivery) (late []time.Duration) {
	t.Helper()
	var publishing sync.WaitGroup
	for range costlyPublishers {
		ch := openChannel(t, dial(t, c.url+"/m"))
		check(t, ch.Confirm(false))
		publishing.Go(func() {
			for i := range costlyMessages {
				confirm, err := ch.PublishWithDeferredConfirm("F", fmt.Sprint("k", i), false, false, amqp091.Publishing{})
				if err != nil || i == costlyMessages-1 && !confirm.Wait() {
					t.Error("a publish was refused: ", err)
					return
				}
			}
		})
	}
	over := make(chan struct{})
	go func() {
		publishing.Wait()
		close(over)
	}()
	for sent, busy := 0, true; busy || sent < 200 || len(late) < sent; {
		select {
		case <-over:
			busy, over = false, nil
		case m := <-letters:
			at, err := strconv.ParseInt(string(m.Body), 10, 64)
			check(t, err)
			late = append(late, time.Since(time.UnixMicro(at))-victimTTL)
		case <-time.After(5 * time.Millisecond):
			if busy || sent < 200 {
				body := strconv.AppendInt(nil, time.Now().UnixMicro(), 10)
				check(t, victim.Publish("", "v", false, false, amqp091.Publishing{Body: body}))
				sent++
			}
		}
	}
	return late
}
