package simulation

import (
	"reflect"
	"slices"
	"time"

	"curfew/broker/deadline"
)

const (
	// recovery is how long monitors may take to restore a schedule that was away: the lease
	// of a killed owner, and the longest pause between attempts.
	recovery = 25 * time.Second
	// convergence is how long a schedule that is up may take to agree with the queues: it
	// is compared once a minute, and that may just have been done.
	convergence = 65 * time.Second
)

// finish brings the world to rest, drains it, and checks what must then be true.
func (w *world) finish() {
	defer w.shutDown()
	for _, c := range w.clients {
		w.disconnect(c)
	}
	if w.failed() {
		return
	}
	if w.plan.monitored {
		w.converge()
	}
	w.list()
	w.drain()
	w.settleDown()
	w.call(func() { w.balance() }, "the end")
}

// converge repairs everything, waits, and compares the schedule with the queues.
func (w *world) converge() {
	for _, x := range w.watchers {
		w.resume(x)
	}
	if len(w.watchers) == 0 {
		w.startMonitor()
	}
	if w.redis != nil {
		w.redisHeals()
	}
	w.pass(recovery)
	if w.redis != nil {
		w.redisLoses()
	}
	w.pass(convergence)
	w.settleDown()
	w.checkLateness()
	w.compareIndexes()
	if w.redis != nil {
		w.compareSchedule()
	}
}

// compareIndexes compares the number of deadlines that each monitor knows with the queues.
func (w *world) compareIndexes() {
	w.mu.Lock()
	defer w.mu.Unlock()
	want := int64(len(w.deadlines()))
	for _, x := range w.watchers {
		if got := x.monitor.Health().Pending; got != want {
			w.fail("a monitor holds %d deadlines, should hold %d", got, want)
		}
	}
}

// deadlines returns the shadows of the queued messages.
func (w *world) deadlines() (all []deadline.Ref) {
	for _, e := range w.model.live() {
		if e.deadline != 0 {
			all = append(all, e.ref())
		}
	}
	return all
}

// compareSchedule compares the schedule in Redis with the deadlines of the queues.
func (w *world) compareSchedule() {
	w.mu.Lock()
	defer w.mu.Unlock()
	want := w.deadlines()
	var got []deadline.Ref
	w.redis.with(func() {
		for s := range w.redis.scores {
			got = append(got, s)
		}
	})
	if only := missing(want, got); len(only) > 0 {
		w.fail("redis does not have %+v", only)
	}
	if only := missing(got, want); len(only) > 0 {
		w.fail("redis still has %+v", only)
	}
}

// drain takes everything out of every queue. A get that finds nothing may still have let a
// message expire into a queue that was drained before, and that may happen again. So drain
// goes on until nothing has come for as many rounds as there are queues.
func (w *world) drain() {
	for empty := 0; ; empty++ {
		w.mu.Lock()
		all := w.model.sorted()
		w.mu.Unlock()
		if empty > len(all) {
			return
		}
		for _, m := range all {
			for !w.failed() && w.getFrom(m, w.clients[0], true) {
				empty = 0
			}
		}
	}
}

// balance checks that every message has had exactly one end in every queue it was in, and
// that the broker's own counts agree.
func (w *world) balance() {
	for _, e := range w.model.all {
		if e.end == "" || e.state != gone {
			w.fail("%v has come to no end", e)
		}
	}
	for q := range w.queues {
		if n := len(q.entries); n != 0 {
			w.fail("%s still holds %d", q.name, n)
		}
	}
	if n := longestStep(w.broker); n > stepMost {
		w.fail("%d messages were worked on under one lock of a queue, more than %d", n, stepMost)
	}
	if got, want := counted(w.broker), w.model.count; !reflect.DeepEqual(got, want) {
		w.fail("the broker counted %+v, should have %+v", got, want)
	}
}

// shutDown ends everything that was started.
func (w *world) shutDown() {
	for _, x := range slices.Clone(w.watchers) {
		w.resume(x)
		w.kill(x)
	}
	if w.pump != nil {
		w.pump.end()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeBroker()
}
