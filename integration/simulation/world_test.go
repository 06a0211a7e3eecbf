package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// world is one simulation: the broker, the model beside it, clients, and whoever watches
// the deadlines. The driver is one goroutine; monitors are others. Every call into the
// broker is made with mu held. First the model predicts it, then it is made, and its
// results are compared with the prediction before mu is released.
type world struct {
	t    *testing.T
	plan plan
	rng  *rand.Rand // used by the driver only

	jumped atomic.Int64 // ns the virtual clock is ahead of the bubble's
	jumpAt time.Time    // the last jump forward, by the bubble's clock

	mu        sync.Mutex
	model     *model
	broker    *broker.Broker
	vhost     *broker.VHost
	publisher *broker.Publisher
	primary   broker.Deadlines
	queues    map[*modelQueue]*broker.Queue
	clients   []*client
	seen      map[*modelQueue][]seen // deliveries of the present call
	nextID    int
	history   []string
	failure   string

	dir      string
	restarts int
	durables []durable // possible contents of the journal, oldest first

	expiriesMu sync.Mutex // a leaf: the broker reports in whichever goroutine moves a dead letter
	expiries   []deadline.Expiry

	redis    *redis
	watchers []*watcher
	pump     *pump
}

func newWorld(t *testing.T, p plan, rng *rand.Rand) *world {
	w := &world{t: t, plan: p, rng: rng, queues: map[*modelQueue]*broker.Queue{}, seen: map[*modelQueue][]seen{}}
	w.jumped.Store(rng.Int64N(int64(time.Second)))
	w.model = newModel(p.rules, w.fail)
	for i := range 3 {
		w.clients = append(w.clients, &client{name: fmt.Sprint("client ", i)})
	}
	if p.disk {
		w.dir = scratch(t)
	}
	if p.monitored && p.redis {
		w.redis = newRedis()
	}
	w.open(w.dir)
	return w
}

// now returns the virtual time. Only the driver moves it, never during a call.
func (w *world) now() int64 { return time.Now().UnixNano() + w.jumped.Load() }

// segmentBytes is small, so that segments fill up and are dropped.
const segmentBytes = 1 << 18

// open starts a broker with the contents of dir.
func (w *world) open(dir string) {
	o := broker.Options{
		Clock: w.now,
		Store: store.Options{Dir: dir, Sync: w.plan.sync, SegmentBytes: segmentBytes},
	}
	if w.plan.rules.messageFirst {
		o.TTLPrecedence = policy.MessageFirst
	}
	if !w.plan.rules.park {
		o.Unroutable = broker.Drop
	}
	b, err := broker.New(o)
	if err != nil {
		w.t.Fatalf("%v: %v", &w.plan, err)
	}
	w.broker = b
	w.vhost, _ = b.VHost("/")
	w.publisher = w.vhost.NewPublisher("guest")
	w.primary = b.Deadlines()
	b.Deadlines().Expiries().Subscribe(deadline.Basic, w.recordExpiries)
	w.model.count = newCounts()
	w.model.subscribed, w.model.events = false, map[deadline.Ref][]deadline.Event{}
	if w.plan.monitored {
		w.subscribe()
		w.pump = startPump(w)
	}
}

// subscribe opens the broker's feed.
func (w *world) subscribe() {
	if err := w.broker.Deadlines().Snapshot(context.Background(), func([]deadline.Ref) error { return nil }); err != nil {
		w.fail("Deadlines: %v", err)
	}
	w.model.subscribed = true
	for _, e := range w.model.live() {
		e.tracked = e.tracked || e.deadline != 0
	}
}

// call makes one call into the broker: it is recorded, predicted, made, and compared. After
// a failure it does nothing.
func (w *world) call(made func(), format string, args ...any) {
	w.callIf(nil, made, format, args...)
}

// callIf is call for a monitor, unless the monitor has been killed.
func (w *world) callIf(v *view, made func(), format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != "" || v != nil && v.killed() {
		return
	}
	w.note(format, args...)
	w.model.begin(w.now())
	clear(w.seen)
	defer w.survive()
	made()
	if err := w.broker.Forwarded(context.Background()); err != nil {
		w.fail("%v", err)
	}
	if w.failure == "" {
		w.compare()
	}
	w.remember()
}

// survive turns a panic into a failure of the test. Otherwise a monitor would take the
// panic for its own and go on. It is reported at once, since the code that panicked may
// hold a lock forever.
func (w *world) survive() {
	if p := recover(); p != nil {
		w.fail("panic: %v\n%s", p, debug.Stack())
		fmt.Fprintln(os.Stderr, w.report(false))
	}
}

// note adds a line to the history.
func (w *world) note(format string, args ...any) {
	at := time.Unix(0, w.now()).UTC().Format("15:04:05.000000")
	w.history = append(w.history, fmt.Sprintf("%s  %s", at, fmt.Sprintf(format, args...)))
}

// fail records the first failure. It needs mu.
func (w *world) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
		w.note("WRONG: %s", w.failure)
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != ""
}

// historyLines is how many lines of a failing history are printed, unless its seed is
// replayed.
const historyLines = 60

func (w *world) report(whole bool) string {
	lines := w.history
	if n := len(lines) - historyLines; n > 0 && !whole {
		lines = append([]string{fmt.Sprintf("... %d lines before", n)}, lines[n:]...)
	}
	report := fmt.Sprintf("%v\n%s\n", &w.plan, strings.Join(lines, "\n"))
	if w.failure == "" {
		return report
	}
	again := ""
	if w.plan.monitored {
		again = " -count 50 (monitors are not ordered by the seed: it may take several tries)"
	}
	return fmt.Sprintf("%swrong: %s\nreplay: SIMULATION_SEED=%d go test ./integration/simulation -run TestSimulation%s",
		report, w.failure, w.plan.seed, again)
}

// recordExpiries records the expiries that the broker reports, and passes them on to every
// monitor.
func (w *world) recordExpiries(batch []deadline.Expiry) {
	w.expiriesMu.Lock()
	defer w.expiriesMu.Unlock()
	w.expiries = append(w.expiries, batch...)
	for _, x := range w.watchers {
		if !x.view.killed() {
			x.view.expired.Publish(batch)
		}
	}
}

// settleDown lets all other goroutines do what they have to do at this instant.
func (w *world) settleDown() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		w.noteIdle()
	}
}
