package schedule

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// maxBusy is how many due shadows of one queue wait for it, at most. Others are claimed again when
// their lease ends.
const maxBusy = 1 << 14

// busyQueues are the queues that somebody else was using when their deadlines came. A goroutine waits
// for each, so that the fire loop waits for none; what comes due for the queue meanwhile is left to it,
// too. The loop records the answers.
type busyQueues struct {
	running sync.WaitGroup

	mu       sync.Mutex
	waiting  map[uint64][]deadline.Ref // by queue; each has a goroutine
	answered []answered
}

// answered is a request to the primary and its answers.
type answered struct {
	refs    []deadline.Ref
	answers []deadline.Answer
	path    deadline.Path
}

// waitFor asks the primary to expire shadows of one queue when it is the caller's turn there.
func (m *Scheduler) waitFor(refs []deadline.Ref, path deadline.Path) {
	b, queue := &m.busy, refs[0].Queue
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, waits := b.waiting[queue]
	if len(waiting) < maxBusy {
		b.waiting[queue] = append(waiting, refs...)
	}
	if !waits {
		b.running.Go(func() { m.wait(queue, path) })
	}
}

// wait expires what waits for a queue, until nothing does.
func (m *Scheduler) wait(queue uint64, path deadline.Path) {
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("cannot expire messages of a queue, trying again", zap.Error(fmt.Errorf("panic: %v\n%s", p, debug.Stack())))
			m.busy.mu.Lock()
			delete(m.busy.waiting, queue) // they are claimed again when their lease ends
			m.busy.mu.Unlock()
		}
	}()
	for refs := m.busy.take(queue); len(refs) > 0; refs = m.busy.take(queue) {
		answers := m.primary.Expire(refs, path, true, nil)
		m.busy.mu.Lock()
		m.busy.answered = append(m.busy.answered, answered{refs, answers, path})
		m.busy.mu.Unlock()
		m.wakeFire.wake()
	}
}

// take takes the first shadows that wait for a queue. If there are none, nobody waits for it any more.
func (b *busyQueues) take(queue uint64) []deadline.Ref {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.waiting[queue]
	if len(all) == 0 {
		delete(b.waiting, queue)
		return nil
	}
	n := min(len(all), fireSlice)
	b.waiting[queue] = all[n:]
	return slices.Clip(all[:n])
}

// answers takes what has been answered.
func (b *busyQueues) answers() []answered {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.answered
	b.answered = nil
	return all
}
