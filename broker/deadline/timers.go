package deadline

import (
	"sync"
	"time"
)

// NoTimer is the index of a queue or exchange that has no timer: what a Heap says of what is out.
const NoTimer int32 = -1

// Timers wakes queues and exchanges when they have something to do at a certain time: x-expires
// (RabbitMQ: Queue TTL) or x-auto-delete-on-idle (Service Bus: AutoDeleteOnIdle) runs out, a
// lock lapses, a dead letter is tried again. The schedules of delayed messages have Timers of
// their own. There is one goroutine and one timer. Each queue is in the heap at most once, at
// the earliest instant that it has asked for. If it has nothing to do then, it asks for the
// next instant.
type Timers struct {
	// Woken receives when something was added that is due before all others.
	Woken chan struct{}

	clock *KeptClock
	mu    sync.Mutex  // leaf; guards the TimerIndex of all in the heap, too
	heap  Heap[timer] // the earliest first

	Turns Longest // how long OnTimer took
}

// Timed is what Timers wake: a queue, an exchange or a schedule of delayed messages.
type Timed interface {
	TimerIndex() *int32 // its index in the heap
	OnTimer()           // does what is due, and adds the next instant; no lock is held
}

type timer struct {
	at Instant
	of Timed
}

// Init must be called before any other method.
func (t *Timers) Init(c *KeptClock) {
	t.clock, t.Woken = c, make(chan struct{}, 1)
	t.heap.Before = func(a, b timer) bool { return a.at < b.at }
	t.heap.Moved = func(x timer, place int) { *x.of.TimerIndex() = int32(place) }
}

// Add asks for of to be woken at an instant or earlier: if of is in the heap with an earlier
// instant it stays there, and asks again when that has come.
func (t *Timers) Add(of Timed, at Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := *of.TimerIndex(); i == NoTimer {
		t.heap.Push(timer{at, of})
	} else if at < t.heap.Items[i].at { // a policy has shortened its period
		t.heap.Items[i].at = at
		t.heap.Fix(int(i))
	}
	if t.heap.Items[0].of == of {
		Wake(t.Woken)
	}
}

// Drop removes something that was deleted.
func (t *Timers) Drop(of Timed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := *of.TimerIndex(); i != NoTimer {
		t.heap.Remove(int(i))
	}
}

// Run wakes each at its time, until quit is closed. It sleeps for a minute at most, so that it
// notices when the machine was suspended.
func (t *Timers) Run(quit <-chan struct{}) {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		_, wait := t.RunDue()
		timer.Reset(min(wait, time.Minute))
		select {
		case <-timer.C:
		case <-t.Woken:
		case <-quit:
			return
		}
	}
}

// RunDue wakes all whose time has come, one after the other, and returns how many, and how long it takes until the next
// is due. Run calls it; where the clock is manual, nobody runs Run, and whoever moves the clock calls it.
func (t *Timers) RunDue() (n int, wait time.Duration) {
	for {
		now := t.clock.Now()
		of, until := t.due(now)
		if of == nil {
			return n, until
		}
		of.OnTimer()
		t.Turns.Add(now, t.clock.Now().Sub(now))
		n++
	}
}

// Next is when the next one is due; 0: none is.
func (t *Timers) Next() Instant {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap.Items) == 0 {
		return 0
	}
	return t.heap.Items[0].at
}

// due pops one that is due, or returns how long it takes until one is.
func (t *Timers) due(now Instant) (of Timed, in time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap.Items) == 0 {
		return nil, time.Minute
	}
	if at := t.heap.Items[0].at; at > now {
		return nil, at.Sub(now)
	}
	return t.heap.Remove(0).of, 0
}
