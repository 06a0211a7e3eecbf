package simulation

import (
	"math/rand/v2"
	"testing/synctest"
	"time"

	"curfew/broker/deadline"
)

// action is one kind of step, and how often it is drawn.
type action struct {
	weight int
	do     func(*world)
}

// actions are the actions of every simulation.
var actions = []action{
	{30, (*world).advance},
	{30, (*world).publish},
	{12, (*world).declareQueue},
	{2, (*world).deleteQueue},
	{4, (*world).bindQueue},
	{8, (*world).consume},
	{4, (*world).prefetch},
	{4, (*world).cancelConsumer},
	{10, (*world).get},
	{20, (*world).settle},
	{1, (*world).purge},
	{2, (*world).loseConnection},
	{1, (*world).list},
	{4, (*world).track},
	{5, (*world).reschedule},
	{2, (*world).jump},
}

// unmonitored are the additional actions of simulations without monitors.
var unmonitored = []action{{15, (*world).propose}}

var monitored = []action{
	{2, (*world).propose},
	{4, (*world).startMonitor},
	{1, (*world).killMonitor},
	{2, (*world).pauseMonitor},
	{3, (*world).lag},
	{8, (*world).wait},
}

var withDisk = []action{{8, (*world).commit}, {3, (*world).restart}}

var withRedis = []action{{8, (*world).redisFault}, {6, (*world).redisHeals}}

func (w *world) run() {
	all := actions
	add := func(on bool, more []action) {
		if on {
			all = append(all[:len(all):len(all)], more...)
		}
	}
	add(!w.plan.monitored, unmonitored)
	add(w.plan.monitored, monitored)
	add(w.plan.disk, withDisk)
	add(w.redis != nil, withRedis)
	if w.plan.web {
		w.weave()
	}
	for _, name := range w.plan.names {
		if w.model.queues[name] == nil {
			w.declare(name, w.randomSettings(name))
		}
	}
	w.startMonitor()
	for range w.plan.steps {
		draw(w.rng, all).do(w)
		if w.failed() {
			return
		}
		// With monitors, the driver may go on before they have done everything they have to
		// do at this instant: the scheduler determines who comes first.
		if !w.plan.monitored || chance(w.rng, 0.5) {
			w.settleDown()
			w.checkLateness()
		}
	}
}

func draw(rng *rand.Rand, from []action) action {
	total := 0
	for _, a := range from {
		total += a.weight
	}
	n := rng.IntN(total)
	for _, a := range from {
		if n -= a.weight; n < 0 {
			return a
		}
	}
	panic("unreachable")
}

// advance lets time pass: a little, up to a deadline or within a µs of it, or a lot.
func (w *world) advance() {
	d := time.Duration(w.rng.Int64N(int64(3 * time.Millisecond)))
	switch w.rng.IntN(6) {
	case 0, 1:
		d = time.Duration(w.rng.Int64N(int64(200 * time.Millisecond)))
	case 2:
		d = time.Duration(w.rng.Int64N(int64(5 * time.Second)))
	case 3, 4:
		if at := w.nextDeadline(); at > 0 {
			d = time.Duration(int64(at)*microsecond - w.now() + pick(w.rng, []int64{-microsecond, -1, 0, 0, 1, microsecond}))
		}
	}
	w.pass(d)
}

func (w *world) pass(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

// wait gives the monitors time.
func (w *world) wait() { w.pass(time.Duration(w.rng.Int64N(int64(10 * time.Second)))) }

// nextDeadline returns the earliest deadline that has not come; 0: none.
func (w *world) nextDeadline() (at deadline.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.model.live() {
		if int64(e.deadline)*microsecond > w.now() && (at == 0 || e.deadline < at) {
			at = e.deadline
		}
	}
	return at
}

// jump moves the clock forward at once, as a suspended machine does: timers do not notice.
func (w *world) jump() {
	synctest.Wait()
	d := w.rng.Int64N(int64(pick(w.rng, []time.Duration{time.Second, time.Minute, 2 * time.Hour})))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jumped.Add(d)
	w.jumpAt = time.Now()
	w.note("the clock jumps forward by %v", time.Duration(d))
}

// redisFault makes Redis fail for some time, or lose something once.
func (w *world) redisFault() {
	if chance(w.rng, 0.5) {
		w.redisLoses()
		return
	}
	r := w.redis
	slow := time.Duration(w.rng.Int64N(int64(1500 * time.Millisecond)))
	w.redisDoes(
		fault{"is away", func() { r.with(func() { r.away = true }) }},
		fault{"does not answer", func() { r.with(func() { r.silent = true }) }},
		fault{"is slow", func() { r.with(func() { r.slow = slow }) }},
		fault{"loses replies", func() { r.with(func() { r.deafFor = 1 + w.rng.IntN(4) }) }},
		fault{"replicates", r.replicate},
	)
}

// redisLoses makes Redis lose some of its data without notice.
func (w *world) redisLoses() {
	w.redisDoes(
		fault{"is flushed", w.redis.flush},
		fault{"evicts", func() { w.redis.evict(func() bool { return chance(w.rng, 0.5) }) }},
		fault{"fails over to a replica", w.redis.failover},
	)
}

type fault struct {
	name string
	do   func()
}

func (w *world) redisDoes(faults ...fault) {
	f := pick(w.rng, faults)
	w.say("redis %s", f.name)
	f.do()
}

func (w *world) redisHeals() {
	w.say("redis is well")
	w.redis.heal()
}
