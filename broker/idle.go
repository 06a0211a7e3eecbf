package broker

import (
	"container/heap"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// minIdleMillis is the least x-auto-delete-on-idle may be (Service Bus: five
// minutes).
const minIdleMillis = 300_000

// idle reads x-auto-delete-on-idle; 0 is none.
func (p *argParser) idle() int64 {
	n := p.integer("x-auto-delete-on-idle", 0, 1, MaxTTLMillis)
	if n != 0 && n < minIdleMillis {
		p.fail("x-auto-delete-on-idle", fmt.Sprintf("{value_too_small,%d}", n))
	}
	return n
}

// use notes that q was used, for x-expires: it has the full period again, or
// for as long as it has consumers no end at all. It also counts for
// x-auto-delete-on-idle, for which publishing, settling and browsing do, too
// (stir). Called with q.mu held.
func (q *Queue) use() {
	q.idleAt = 0
	if q.deleted || q.consumers.count > 0 {
		return
	}
	stamp := q.vh.b.clock.stampAt()
	q.stir(stamp)
	if expires := q.set().expiresMillis; expires != 0 {
		q.idleAt = stamp + expires
	}
	if at := q.lapsesAt(); at != 0 {
		q.vh.b.idle.add(q, at)
	}
}

// stir notes that something was done with q that does not count for x-expires. The
// timer finds that out when the old time comes. Called with q.mu held.
func (q *Queue) stir(now int64) { q.stirredAt = now }

// lapsesAt is when q is deleted unless it is used before; 0: not for that reason.
// Called with q.mu held.
func (q *Queue) lapsesAt() int64 {
	at := q.idleAt
	if idle := q.set().idleMillis; idle != 0 && q.consumers.count == 0 {
		if lapse := q.stirredAt + idle; at == 0 || lapse < at {
			at = lapse
		}
	}
	return at
}

// notTimed is the index of a queue that does not stand in the idle timer.
const notTimed = -1

// idleTimer deletes queues whose x-expires (RabbitMQ: Queue TTL) or
// x-auto-delete-on-idle (Service Bus: AutoDeleteOnIdle) has run out:
// one goroutine, one timer, each queue in the heap at most once. A queue used
// since it was put there is put back for later when its old time comes.
type idleTimer struct {
	b    *Broker
	mu   sync.Mutex // leaf
	heap idleHeap   // guards Queue.idleIndex too
	wake chan struct{}
}

type idleQueue struct {
	at int64 // Unix ms
	q  *Queue
}

type idleHeap []idleQueue

func (h idleHeap) Len() int           { return len(h) }
func (h idleHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h idleHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].q.idleIndex, h[j].q.idleIndex = i, j
}
func (h *idleHeap) Push(x any) {
	x.(idleQueue).q.idleIndex = len(*h)
	*h = append(*h, x.(idleQueue))
}
func (h *idleHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	last.q.idleIndex = notTimed
	old[len(old)-1] = idleQueue{}
	*h = old[:len(old)-1]
	return last
}

func (t *idleTimer) init(b *Broker) {
	t.b, t.wake = b, make(chan struct{}, 1)
}

// add puts q in, unless it is there with a time that comes first: then q is put
// back when it has.
func (t *idleTimer) add(q *Queue, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := q.idleIndex; i == notTimed {
		heap.Push(&t.heap, idleQueue{at, q})
	} else if at < t.heap[i].at { // a policy made its period shorter
		t.heap[i].at = at
		heap.Fix(&t.heap, i)
	}
	if t.heap[0].q == q {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// drop forgets a deleted queue.
func (t *idleTimer) drop(q *Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.idleIndex != notTimed {
		heap.Remove(&t.heap, q.idleIndex)
	}
}

// run waits for the earliest queue. A minute is the longest it sleeps, so that
// a machine that was suspended is noticed. It ends with the broker.
func (t *idleTimer) run() {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		wait := time.Minute
		for {
			q, until := t.due(t.b.Now())
			if q == nil {
				wait = min(wait, time.Duration(until)*time.Millisecond)
				break
			}
			t.expire(q)
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

// due pops a queue whose time has come, or says in how many ms the next comes.
func (t *idleTimer) due(now int64) (q *Queue, inMillis int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return nil, int64(time.Minute / time.Millisecond)
	}
	if at := t.heap[0].at; at > now {
		return nil, at - now
	}
	return heap.Pop(&t.heap).(idleQueue).q, 0
}

// expire deletes q if it is still unused, or puts it back.
func (t *idleTimer) expire(q *Queue) {
	_, err := q.vh.remove(q, func() error {
		at := q.lapsesAt()
		if at == 0 {
			return errInUse
		}
		if at > t.b.Now() {
			t.add(q, at)
			return errInUse
		}
		return nil
	})
	if err == nil {
		t.b.log.Info("queue expired: unused for its x-expires or x-auto-delete-on-idle", zap.String("vhost", q.vh.name), zap.String("queue", q.name))
	}
}
