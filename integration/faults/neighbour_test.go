//go:build !race

package faults

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	memoryLimit  = 256 << 20
	residentKill = 1 << 30 // above its limit; a broker that takes more is killed: the machine has other guests

	timely = 100 * time.Millisecond // for the 99th of 100 deadlines, confirms and deliveries

	warmUp    = 300 * time.Millisecond
	calmFor   = 600 * time.Millisecond
	breath    = 100 * time.Millisecond // the end of it, so that what began before has ended
	strikeFor = time.Second
	drainFor  = 10 * time.Second

	stalledMost    = 0.3 // of an attack's time; above it the run says little
	noiseGrows     = 3   // how much more noise there may be beside an attack than in the calm before, when that is judged
	neighbourTries = 3
)

// attack is one way in which a virtual host can do its worst. Only the name is needed, and one of setup and strike.
type attack struct {
	name      string        // a word
	bodyBytes int           // of the neighbour's messages; 0: neighbourBody
	over10    bool          // the neighbour's clients speak AMQP 1.0
	limits    string        // a shell command before the broker starts
	settings  []string      // of the broker, beside a small memory limit
	memory    int64         // that limit, in bytes; 0: memoryLimit
	lasts     time.Duration // how long it strikes at most, if it ends by itself; 0: it strikes for strikeFor
	realDisk  bool          // for the journal, which is otherwise in memory where there is room: others use the disk, too, and make confirms wait

	// setup declares what is needed.
	setup func(*attacker)
	// strike, if setup was not enough, does the worst until ctx ends, in a process of its own, whose connections last as long. To be
	// refused, blocked or cut off is what may happen to it; an error means that there was no attack.
	strike func(context.Context, *attacker) error
	// check looks, once the neighbour is quiet, at what else has to hold.
	check func(*attacker) error
	// later does so when no attack is measured any more: it may keep the processors busy.
	later func(*attacker) error
}

// length is how long it strikes.
func (a *attack) length() time.Duration { return cmp.Or(a.lasts, strikeFor) }

// TestNeighbour: whatever one virtual host does, the deadlines, confirms and deliveries of another are right and on time, the
// memory limit holds, and health never says that a restart is the cure.
//
//	go test ./integration/faults -run 'TestNeighbour/bomb' -v
//
// With FAULTS_VICTIM=1.0 the neighbour's clients always speak AMQP 1.0.
//
// The cases are the attacks, and what a tenant does with very much of something (tenantTasks): with FAULTS_CEILINGS=1 with the most that
// a virtual host may have.
//
// The limits are for a broker on a machine that works. So bare timers, on each processor and in the test's own process, and bare
// syncs of a file, run beside it. The time in which one of them was stalled is taken off each wait that it is a part of. When that is
// much of the attack's time, the case is repeated. If it is so each time, what is left of the waits is stretched over the time that
// was taken off, and the limits grow with what the same clients saw in a calm right before the attack, which only the last try has. A
// message that is lost, or memory, no noise excuses.
func TestNeighbour(t *testing.T) {
	all := everyAttack()
	for i := range all {
		a := &all[i]
		t.Run(a.name, func(t *testing.T) {
			for try := 1; ; try++ {
				last := try == neighbourTries
				r, x := a.run(t, last)
				noisy := !last && r.attacked.noisy() // others may have used the machine
				var late []string
				if !noisy {
					late = r.late(t)
				}
				if last || r.wrong != nil || !noisy && late == nil {
					for _, text := range append(r.wrong, late...) {
						t.Error(text)
					}
					a.end(x)
					return
				}
				x.p.kill()
				t.Log("late, or the machine stood still for too long: again", late)
			}
		})
	}
}

func everyAttack() []attack { return slices.Concat(attacks, attacks10, tenantTasks()) }

// outcome is what was seen in one run.
type outcome struct {
	wrong    []string // whatever the machine does
	calm     figures
	attacked figures
}

// end looks at what has to hold later.
func (a *attack) end(x *attacker) {
	if a.later == nil || x.t.Failed() {
		x.p.kill()
		return
	}
	if os.Getenv(ceilingsVariable) == "" { // at the ceilings there is no memory for the brokers of several attacks
		x.t.Parallel() // after all the attacks
	}
	check(x.t, a.later(x))
}

// run leaves the broker as it is after the attack.
func (a *attack) run(t *testing.T, calmBefore bool) (r outcome, x *attacker) {
	var calm time.Duration
	if calmBefore {
		calm = calmFor
	}
	dir := t.TempDir()
	if !a.realDisk {
		dir = memoryFolder(t)
	}
	limit := cmp.Or(a.memory, memoryLimit)
	launch := func() *process {
		return launchUnder(t, a.limits, filepath.Join(dir, "data"), append([]string{fmt.Sprintf("MEMORY_LIMIT=%d", limit)}, a.settings...)...)
	}
	p := launch()
	p.ready()
	memory := watchMemory(p, limit)
	x = attackerOf(t, p)
	x.relaunch, x.calm = launch, calm
	t.Cleanup(x.leave)
	n := newNeighbour(t, p, a)
	defer n.leave()
	if a.setup != nil {
		a.setup(x)
	}
	strike := x.prepare(a)
	machine := watchMachine(t, dir)
	health := watchHealth(p)

	memory.begin()
	warm := time.Now().Add(warmUp)
	struck := warm.Add(calm)
	n.start()
	<-time.After(time.Until(struck))
	err := strike()
	over := time.Now()
	n.finish(over)
	machine.stop()
	r.wrong = n.wrong()
	if err != nil {
		r.wrong = append(r.wrong, fmt.Sprintf("there was no attack: %v", err))
	}
	if a.check != nil && p.running() {
		if err := a.check(x); err != nil {
			r.wrong = append(r.wrong, err.Error())
		}
	}
	r.wrong = slices.Concat(memory.stop(), r.wrong, health.stop())
	if !p.running() {
		out := p.out.String()
		t.Logf("curfew's last words:\n%s", out[max(0, len(out)-4000):])
	}
	r.calm, r.attacked = n.figures(machine, warm, struck.Add(-min(calm, breath))), n.figures(machine, struck, over)
	if calmBefore {
		t.Logf("calm:   %v", &r.calm)
	}
	t.Logf("attack: %v", &r.attacked)
	t.Logf("%v; %v", memory, health)
	return r, x
}

// late is what took longer than the limits.
func (r *outcome) late(t *testing.T) (wrong []string) {
	for i, w := range r.attacked.all() {
		limit, got := timely, w.net.p99()
		if w.noisy() {
			calm := r.calm.all()[i].gross.p99()
			limit, got = timely+noiseGrows*calm, min(w.gross.p99(), w.stretched())
			t.Logf("%s: the machine was too noisy: judged by the calm, whose p99 was %v", w.name, calm)
		}
		switch {
		case len(w.gross) == 0:
			wrong = append(wrong, fmt.Sprintf("%s: none at all during the attack", w.name))
		case got > limit:
			wrong = append(wrong, fmt.Sprintf("%s: p99 %v during the attack, more than %v", w.name, got.Round(time.Millisecond), limit.Round(time.Millisecond)))
		}
	}
	return wrong
}

// figures are the waits that began in one span of time.
type figures struct{ deadlines, confirms, deliveries waits }

func (f *figures) all() []*waits { return []*waits{&f.deadlines, &f.confirms, &f.deliveries} }

func (f *figures) String() string {
	var parts []string
	for _, w := range f.all() {
		parts = append(parts, w.String())
	}
	return strings.Join(parts, "; ")
}

func (f *figures) noisy() bool { return slices.ContainsFunc(f.all(), (*waits).noisy) }

// waits are those of one kind, in order.
type waits struct {
	name       string
	stalls     *stalls       // of what they depend on
	gross, net ordered       // as they were, and without the time in which that stood still
	span       time.Duration // in which they began
	stalled    time.Duration // of that
	count      int           // of stalls
}

// add takes in a wait between two instants in Unix µs; one that was over before it began is none.
func (w *waits) add(from, to int64) {
	gross := max(0, time.Duration(to-from)*time.Microsecond)
	stalled, _ := w.stalls.within(from, to)
	w.gross = append(w.gross, gross)
	w.net = append(w.net, gross-stalled)
}

// noisy reports whether so much of the attack's time was stalled that they prove little.
func (w *waits) noisy() bool { return w.stalled > time.Duration(stalledMost*float64(w.span)) }

// stretched is what the p99 would have been, had the time that was stalled been as the rest was.
func (w *waits) stretched() time.Duration {
	rest := max(w.span-w.stalled, time.Millisecond)
	return time.Duration(float64(w.net.p99()) * float64(w.span) / float64(rest))
}

func (w *waits) String() string {
	text := fmt.Sprintf("%d %s, p50 %v, p99 %v, max %v", len(w.net), w.name, w.net.quantile(0.5), w.net.p99(), w.net.quantile(1))
	if w.count > 0 {
		text += fmt.Sprintf(" (p99 %v with %d stalls of the machine, %v in all)", w.gross.p99(), w.count, w.stalled.Round(time.Millisecond))
	}
	return text
}

type ordered []time.Duration

func (s ordered) quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	return s[min(int(q*float64(len(s))), len(s)-1)].Round(100 * time.Microsecond)
}

func (s ordered) p99() time.Duration { return s.quantile(0.99) }
