package rabbitmq

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/monitor/rabbitmq/cluster"
)

// longDelay is the delay of what is not due in its round: from 4.3 on it is put aside, and held before the end.
const longDelay = 70 * time.Second

// roundTries are the steps of the back-off. The worker accepts a message after them.
var roundTries = []time.Duration{500 * time.Millisecond, time.Second}

// modeOf is the mode of a round: those that KEEPER_MODE names, or all, take turns.
func modeOf(t testing.TB, number int) cluster.Mode {
	modes := strings.Split(cmp.Or(os.Getenv(modeVariable), "keep,delay,retry"), ",")
	name := modes[number%len(modes)]
	for _, m := range []cluster.Mode{cluster.Keep, cluster.Delay, cluster.Retry} {
		if string(m) == name {
			return m
		}
	}
	t.Fatalf("%s: %q is no mode of a round", modeVariable, name)
	return cluster.Off
}

// watchFile is what CURFEW_WATCH names, for queues with that pattern.
func watchFile(t testing.TB, mode cluster.Mode, queues string) string {
	t.Helper()
	rule := fmt.Sprintf("{queue: '%s', mode: %v}", queues, mode)
	if mode == cluster.Retry {
		rule = fmt.Sprintf("{queue: '%s', mode: retry, backoff: [%v, %v, 10s]}", queues, roundTries[0], roundTries[1])
	}
	path := filepath.Join(t.TempDir(), "watch.yaml")
	check(t, os.WriteFile(path, []byte("queues: ["+rule+"]"), 0o600))
	return path
}

// waitInstead makes the round one with a queue in which messages wait, as the plan sets it up.
func (r *round) waitInstead() {
	if r.mode == cluster.Retry || family() == cluster.Family43 {
		r.kind = cluster.Quorum
	}
	if r.kind == cluster.Quorum {
		r.policy["dead-letter-strategy"], r.policy["overflow"] = "at-least-once", "reject-publish"
		if family() != cluster.Family3 {
			r.policy["delivery-limit"] = -1
		}
		if family() == cluster.Family43 {
			r.policy["consumer-disconnected-timeout"] = 1000
		}
	}
	if r.mode == cluster.Retry {
		r.policy["dead-letter-exchange"] = "back-" + r.queue
	}
}

// workQueue is one whose worker rejects each message as often as there are steps in roundTries.
type workQueue struct {
	name string

	mu       sync.Mutex
	wanted   map[string]bool      // the messages that are confirmed
	rejected map[string]time.Time // when one was first, by its id and the number of tries
	accepted map[string]int
	early    []string
}

// startWork declares the work queue around the queue of the round, and starts its worker.
func (r *round) startWork() {
	t := r.t
	w := &workQueue{name: "work-" + r.queue, wanted: map[string]bool{}, rejected: map[string]time.Time{}, accepted: map[string]int{}}
	r.work = w
	declare(t, r.ch, w.name, table{"x-queue-type": "quorum", "x-dead-letter-exchange": "retry-" + r.queue, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
	check(t, r.ch.ExchangeDeclare("retry-"+r.queue, "fanout", true, false, false, false, nil))
	check(t, r.ch.QueueBind(r.queue, "", "retry-"+r.queue, false, nil))
	kind := "headers" // Curfew binds it
	if family() == cluster.Family3 {
		kind = "fanout"
	}
	check(t, r.ch.ExchangeDeclare("back-"+r.queue, kind, true, false, false, false, nil))
	if kind == "fanout" {
		check(t, r.ch.QueueBind(w.name, "", "back-"+r.queue, false, nil))
	}
	ch := openChannel(t, dial(t, r.url))
	check(t, ch.Qos(50, 0, false))
	deliveries, err := ch.Consume(w.name, "", false, false, false, false, nil)
	check(t, err)
	go func() {
		for d := range deliveries {
			if w.take(&d) {
				_ = d.Ack(false)
			} else {
				_ = d.Nack(false, false)
			}
		}
	}()
}

// take notes a delivery, and reports whether it is accepted.
func (w *workQueue) take(d *amqp091.Delivery) bool {
	tries := 0
	deaths, _ := d.Headers["x-death"].([]any)
	for _, one := range deaths {
		if death, ok := one.(amqp091.Table); ok && death["queue"] == w.name {
			count, _ := death["count"].(int64)
			tries += int(count)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if tries > 0 && time.Now().Before(w.rejected[fmt.Sprint(d.MessageId, tries-1)].Add(roundTries[min(tries, len(roundTries))-1])) {
		w.early = append(w.early, d.MessageId)
	}
	if tries >= len(roundTries) {
		w.accepted[d.MessageId]++
		return true
	}
	if name := fmt.Sprint(d.MessageId, tries); w.rejected[name].IsZero() {
		w.rejected[name] = time.Now()
	}
	return false
}

func (w *workQueue) published(id string, confirmed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if confirmed {
		w.wanted[id] = true
	}
}

// missing are the messages that have not been accepted.
func (w *workQueue) missing() (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.wanted {
		if w.accepted[id] == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// expectTries waits until every message was accepted.
func (r *round) expectTries() {
	r.t.Helper()
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Logf("not accepted: %v", r.work.missing())
		}
	})
	eventually(r.t, roundLimit, "all to be accepted after their tries", func() bool { return len(r.work.missing()) == 0 })
}

// judge looks at what the worker has noted.
func (w *workQueue) judge(r *round) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.early) > 0 {
		r.t.Errorf("early: %v", w.early)
	}
	twice := 0
	for _, times := range w.accepted {
		twice += times - 1
	}
	if r.day.repeats {
		r.twice += twice
	} else if twice > 0 {
		r.t.Errorf("%d were accepted twice", twice)
	}
	r.t.Logf("%d messages were tried %d times each, %d twice", len(w.wanted), len(roundTries)+1, twice)
}

// finish waits for what was not due in the rounds with mode delay.
func (rs *rounds) finish(t *testing.T) {
	if len(rs.waits) == 0 {
		return
	}
	r := *rs.waits[0]
	r.t, r.sent, r.keepers, r.day.repeats = t, nil, nil, true
	for _, one := range rs.waits {
		r.sent = append(r.sent, one.sent...)
	}
	startReplica(t, rs.calm, urlsIn(keeperUser, []*node{rs.calm}, rs.vhost), rs.redis.URL, "finish", watchFile(t, cluster.Delay, "round-*"))
	r.queue = "round-*"
	r.expectLetters(time.Hour)
	r.collect()
	for _, one := range rs.waits {
		rs.calm.api(t, "DELETE", "policies/"+strings.Join([]string{rs.vhost, one.queue}, "/"), nil, nil)
	}
}
