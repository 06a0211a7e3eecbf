package schedule

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// busyQueues are the queues that somebody else was using when their deadlines came. A goroutine waits
// for each with what was claimed of it, so that the fire loop waits for none. Until the loop has recorded the answers,
// the schedules hold the rest of the queue: its messages expire in their order.
type busyQueues struct {
	running sync.WaitGroup

	mu       sync.Mutex
	held     map[uint64]struct{}
	answered []answered
}

// answered is a request to the primary and its answers, none if there was a panic.
type answered struct {
	refs    []deadline.Ref
	answers []deadline.Answer
	path    deadline.Path
}

// waitFor asks the primary to expire shadows of one queue when it is the caller's turn there.
func (m *Scheduler) waitFor(queue uint64, refs []deadline.Ref, path deadline.Path) {
	m.hold(queue, true)
	m.busy.running.Go(func() {
		a := answered{refs: refs, path: path}
		defer func() {
			if p := recover(); p != nil {
				m.log.Error("cannot expire messages of a queue, trying again", zap.Error(fmt.Errorf("panic: %v\n%s", p, debug.Stack())))
				time.Sleep(retryAfter)
			}
			m.busy.mu.Lock()
			m.busy.answered = append(m.busy.answered, a)
			m.busy.mu.Unlock()
			deadline.Wake(m.wakeFire.signal)
		}()
		a.answers = m.primary.Expire(refs, path, true, nil)
	})
}

// hold holds a queue in the schedules that are fired from, or goes on with it.
func (m *Scheduler) hold(queue uint64, held bool) {
	m.busy.mu.Lock()
	defer m.busy.mu.Unlock()
	if held {
		m.busy.held[queue] = struct{}{}
	} else {
		delete(m.busy.held, queue)
	}
	m.index.Hold(queue, held)
	if m.due != nil {
		m.due.Hold(queue, held)
	}
}

// goOn goes on with every queue.
func (m *Scheduler) goOn() {
	m.busy.mu.Lock()
	held := m.busy.held
	m.busy.held, m.busy.answered = map[uint64]struct{}{}, nil
	m.busy.mu.Unlock()
	for queue := range held {
		m.hold(queue, false)
	}
}

// answers takes what has been answered.
func (b *busyQueues) answers() []answered {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.answered
	b.answered = nil
	return all
}
