package broker

import (
	"container/heap"
	"sync"
	"time"
)

// notTimed is the index of a queue that has no alarm.
const notTimed = -1

// alarms wake queues and exchanges at the instants they have something to do though nobody
// asks: x-expires (RabbitMQ: Queue TTL) or x-auto-delete-on-idle (Service Bus:
// AutoDeleteOnIdle) runs out, a lock lapses, a dead letter is tried again. One goroutine,
// one timer, each of them in the heap at most once, at the earliest instant it named; what
// it finds to be later then, it names again.
type alarms struct {
	b    *Broker
	mu   sync.Mutex // leaf
	heap alarmHeap  // guards the alarmIndex of all that is timed, too
	wake chan struct{}
}

// timed is a queue or an exchange.
type timed interface {
	alarmPlace() *int // its index in the heap
	ring()            // has it do what is due
}

func (q *Queue) alarmPlace() *int    { return &q.alarmIndex }
func (x *Exchange) alarmPlace() *int { return &x.alarmIndex }

type alarm struct {
	at int64 // Unix µs
	of timed
}

type alarmHeap []alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].of.alarmPlace(), *h[j].of.alarmPlace() = i, j
}
func (h *alarmHeap) Push(x any) {
	*x.(alarm).of.alarmPlace() = len(*h)
	*h = append(*h, x.(alarm))
}
func (h *alarmHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*last.of.alarmPlace() = notTimed
	old[len(old)-1] = alarm{}
	*h = old[:len(old)-1]
	return last
}

func (t *alarms) init(b *Broker) {
	t.b, t.wake = b, make(chan struct{}, 1)
}

// add puts it in, unless it is there with a time that comes first: then it is put
// back when it has.
func (t *alarms) add(of timed, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := *of.alarmPlace(); i == notTimed {
		heap.Push(&t.heap, alarm{at, of})
	} else if at < t.heap[i].at { // a policy made its period shorter
		t.heap[i].at = at
		heap.Fix(&t.heap, i)
	}
	if t.heap[0].of == of {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// drop forgets what is deleted.
func (t *alarms) drop(of timed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := *of.alarmPlace(); i != notTimed {
		heap.Remove(&t.heap, i)
	}
}

// run waits for the earliest. A minute is the longest it sleeps, so that
// a machine that was suspended is noticed. It ends with the broker.
func (t *alarms) run() {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		wait := time.Minute
		for {
			of, until := t.due(t.b.Now())
			if of == nil {
				wait = min(wait, until)
				break
			}
			of.ring()
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-t.wake:
		case <-t.b.quit:
			return
		}
	}
}

// due pops what is due, or says in how long the next is.
func (t *alarms) due(now int64) (of timed, in time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return nil, time.Minute
	}
	if at := t.heap[0].at; at > now {
		return nil, time.Duration(at-now) * time.Microsecond
	}
	return heap.Pop(&t.heap).(alarm).of, 0
}

// ring has q do what is due.
func (q *Queue) ring() {
	q.heedSubqueue()
	if q.vh.waiting.Load() != nil && q.lapses() {
		q.vh.judge(q, nil)
	} else if q.expireIdle() {
		return
	}
	s := q.vh.b.hurry()
	q.attend(s)
	s.done()
}

// attend does what is due in the queue and names its next alarm.
func (q *Queue) attend(s *step) {
	q.lock(s)
	defer q.mu.Unlock()
	if q.deleted {
		return
	}
	q.lapse(s)
	q.retry(s)
	q.finish(s, Requeued)
	q.choose()
	q.dispatch(s)
	if q.set().limited() {
		q.core.Trim(&s.fx)
	}
	q.finish(s, Lazy)
	if at := q.lapsesAt(); at != 0 {
		q.vh.b.alarms.add(q, at)
	}
	if at := q.retained.retryAt; at != 0 {
		q.vh.b.alarms.add(q, at)
	}
	if k := q.locks.oldest(); k != nil {
		q.vh.b.alarms.add(q, k.until)
	}
}
