//go:build schedule

package store

import (
	"hash/crc32"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// schedule, if it is not nil, decides which goroutine runs.
var schedule *scheduler

// scheduler lets one goroutine at a time run, from one point to another: a point is each
// Unlock and Wait of a lock, and where a goroutine that started or waited for a channel goes
// on. All is chosen from a seed, also when time passes, so the same seed gives the same run.
// It works in a synctest bubble, which tells when a goroutine waits for something else.
//
// A seed also chooses which points are slow: there the committer or the maintainer may sleep
// while the others go on, so that even a window of two instructions is often a long one.
type scheduler struct {
	seed    uint64
	rng     *rand.Rand
	running *task
	ended   bool
	done    chan struct{}
	arrived chan struct{} // a task has come to a point

	mu     sync.Mutex // several goroutines may be resumed at a time
	tasks  map[string]*task
	parked []*task

	sites   map[site]bool // whether they are slow
	points  int           // passed, by all
	asleep  *task         // nil: none has slept yet
	until   int           // it sleeps until so many points have been passed
	choices int
	trace   uint64 // a hash of all choices
}

// site is a point in the code: the functions that led to it.
type site [2]uintptr

// task is a goroutine, named after its first function.
type task struct {
	name          string
	number        uint32        // a hash of name
	baton         chan struct{} // it may run
	left          int           // points that it passes before another may run
	background    bool          // it is one of the store's
	phase, stride int           // for this many points it runs in strides of up to this
	until         func() bool   // nil: it can run
}

// newScheduler starts a scheduler; the caller is its first task.
func newScheduler(seed uint64) *scheduler {
	s := &scheduler{
		rng: rand.New(rand.NewPCG(seed, 1)), done: make(chan struct{}),
		arrived: make(chan struct{}, 1), tasks: map[string]*task{}, sites: map[site]bool{}, seed: seed,
	}
	schedule = s
	go s.run()
	resumed()
	return s
}

// stop ends the scheduler. Only the caller is left.
func (s *scheduler) stop() {
	s.ended = true
	<-s.done
	schedule = nil
}

func (s *scheduler) run() {
	defer close(s.done)
	for {
		synctest.Wait()
		if s.ended {
			return
		}
		if s.rng.IntN(32) == 0 {
			time.Sleep(time.Duration(s.rng.IntN(150_000))) // as if all had been slow
			synctest.Wait()
		}
		t := s.choose()
		if t == nil {
			<-s.arrived // when some time has passed
			continue
		}
		s.running = t
		if t.phase <= 0 {
			t.phase, t.stride = 1+s.rng.IntN(1000), 4<<s.rng.IntN(8)
		}
		t.left = 1 + s.rng.IntN(t.stride)
		t.phase -= t.left
		s.choices++
		s.trace = s.trace*31 + uint64(t.number)*1000 + uint64(t.left)
		t.baton <- struct{}{}
	}
}

// choose takes one of the tasks that can run; nil: there is none.
func (s *scheduler) choose() *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.parked, func(a, b *task) int { return strings.Compare(a.name, b.name) })
	var able []*task
	for _, t := range s.parked {
		if t.until == nil || t.until() {
			able = append(able, t)
		}
	}
	if len(able) == 0 {
		return nil
	}
	if len(able) > 1 && s.points < s.until {
		able = slices.DeleteFunc(able, func(t *task) bool { return t == s.asleep })
	}
	t := able[s.rng.IntN(len(able))]
	s.parked = slices.DeleteFunc(s.parked, func(x *task) bool { return x == t })
	return t
}

// park lets others run, at least until the condition is true.
func (s *scheduler) park(t *task, until func() bool) {
	s.mu.Lock()
	t.until = until
	s.parked = append(s.parked, t)
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	<-t.baton
}

// point is where another task may run.
func (s *scheduler) point() {
	var at site
	runtime.Callers(3, at[:])
	s.points++
	if s.points >= s.until && s.running.background && s.slow(at) && s.rng.IntN(2) == 0 {
		s.asleep, s.until = s.running, s.points+16<<s.rng.IntN(8)
		s.park(s.running, nil)
	} else if s.running.left--; s.running.left <= 0 {
		s.park(s.running, nil)
	}
}

// slow reports whether tasks may sleep here, which depends on the seed.
func (s *scheduler) slow(at site) bool {
	slow, known := s.sites[at]
	if !known {
		h := fnv.New32a()
		frames := runtime.CallersFrames(at[:])
		for f, more := frames.Next(); ; f, more = frames.Next() {
			io.WriteString(h, f.Function)
			if !more {
				break
			}
		}
		slow = rand.New(rand.NewPCG(s.seed, uint64(h.Sum32()))).IntN(8) == 0
		s.sites[at] = slow
	}
	return slow
}

func resumed() {
	if s := schedule; s != nil {
		s.park(s.self(), nil)
	}
}

// self returns the calling goroutine's task.
func (s *scheduler) self() *task {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(1, stack[:])])
	var name string
	for f, more := frames.Next(); more; f, more = frames.Next() {
		name = f.Function // the last one is the runtime's
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks[name] == nil {
		s.tasks[name] = &task{name: name, number: crc32.ChecksumIEEE([]byte(name)), baton: make(chan struct{}), background: strings.Contains(name, "run")}
	}
	return s.tasks[name]
}

// mutex is a sync.Mutex, unless a scheduler runs.
type mutex struct {
	sync.Mutex
	held bool
}

func (m *mutex) Lock() {
	s := schedule
	if s == nil {
		m.Mutex.Lock()
		return
	}
	for m.held {
		s.park(s.running, func() bool { return !m.held })
	}
	m.held = true
}

func (m *mutex) Unlock() {
	if schedule == nil {
		m.Mutex.Unlock()
		return
	}
	m.held = false
	schedule.point()
}

// cond is a sync.Cond, unless a scheduler runs.
type cond struct {
	sync.Cond
	wakes int
}

func (c *cond) Wait() {
	s := schedule
	if s == nil {
		c.Cond.Wait()
		return
	}
	before := c.wakes
	c.L.Unlock()
	s.park(s.running, func() bool { return c.wakes != before })
	c.L.Lock()
}

func (c *cond) Broadcast() {
	c.wakes++
	c.Cond.Broadcast()
}
