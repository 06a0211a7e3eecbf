package broker_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/queue"
)

// worker is a consumer with a prefetch, which acks what it holds.
type worker struct {
	c     *broker.Consumer
	mu    sync.Mutex
	held  []queue.Seq
	most  int
	acked int
}

func (w *worker) Pull(_ *broker.Consumer, src *broker.Source, most int) (taken int, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var d broker.Delivery
	for ; taken < most; taken++ {
		if len(w.held) == w.most {
			return taken, false
		}
		if !src.Next(&d) {
			break
		}
		w.held = append(w.held, d.Seq)
	}
	return taken, true
}

func (w *worker) Cancelled(*broker.Consumer) {}

func (w *worker) ack(most int) {
	w.mu.Lock()
	n := min(most, len(w.held))
	seqs := w.held[:n:n]
	w.held = w.held[n:]
	w.acked += n
	w.mu.Unlock()
	if n > 0 {
		w.c.Queue().Settle(broker.Ack, seqs, w.c)
	}
}

func (w *worker) done() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// pressed is a broker with publishers that flow slows down.
type pressed struct {
	*testBroker
	ctx     context.Context // of the workers
	working sync.WaitGroup
	waiting atomic.Bool // publishers wait
}

// consume starts a consumer that acks a number of messages at a time, each time after a while.
func (x *pressed) consume(q *broker.Queue, messages int, every time.Duration) *worker {
	w := &worker{most: messages}
	w.c = &broker.Consumer{Tag: "c", Sink: w}
	require.NoError(x.t, q.Messages.Consume(w.c))
	w.c.Wake()
	x.working.Go(func() {
		for x.ctx.Err() == nil {
			time.Sleep(every)
			w.ack(messages)
		}
	})
	return w
}

const (
	floodBody  = 4 << 10
	floodBatch = 9 // messages, each millisecond
	// mostReady is by how many messages a queue grows before its publishers wait, with the last batch.
	mostReady = (2+8)<<20/(floodBody+256) + 2*floodBatch
)

// flood publishes to the queues for so long, waits not counted, and returns how long it waited and
// how deep the first of them has been.
func (x *pressed) flood(r *broker.Rights, d time.Duration, queues ...*broker.Queue) (waited time.Duration, deepest int) {
	p := r.NewPublisher(x.vh)
	never := make(chan struct{})
	for ran := time.Duration(0); ran < d; ran += time.Millisecond {
		time.Sleep(time.Millisecond)
		for i := range floodBatch {
			_, err := p.Add(&broker.Publication{RoutingKey: []byte(queues[i%len(queues)].Name), Properties: []byte{0, 0}, Body: make([]byte, floodBody)})
			require.NoError(x.t, err)
		}
		p.Flush(nil)
		before := time.Now()
		x.waiting.Store(true)
		r.AwaitConsumers(never)
		x.waiting.Store(false)
		waited += time.Since(before)
		ready, _, _ := queues[0].Messages.Counts()
		deepest = max(deepest, ready)
	}
	return waited, deepest
}

func underPressure(t *testing.T, fn func(x *pressed, r *broker.Rights)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		x := &pressed{testBroker: newTestBroker(t, broker.Options{}), ctx: ctx}
		defer x.working.Wait()
		defer stop()
		r := x.b.RightsOf("guest", "/")
		r.Pace(true)
		fn(x, r)
	})
}

// Whether the consumers come to work often, or seldom and then take much, as on a busy machine.
func TestPublishersKeepThePaceOfConsumers(t *testing.T) {
	for _, every := range []time.Duration{1, 10, 100} {
		underPressure(t, func(x *pressed, r *broker.Rights) {
			q := x.queue("q", nil)
			w := x.consume(q, 3*int(every), every*time.Millisecond)
			waited, deepest := x.flood(r, 3*time.Second, q)
			assert.LessOrEqual(t, deepest, mostReady)
			assert.Greater(t, w.done(), 3000*floodBatch-mostReady-w.most)
			assert.Greater(t, waited, 5*time.Second, "consumers need three times as long as publishers")
		})
	}
}

func TestConsumersThatKeepUpDoNotSlowPublishers(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		x.consume(q, floodBatch, time.Millisecond)
		waited, _ := x.flood(r, 3*time.Second, q)
		assert.Zero(t, waited)
	})
}

// Consumers with a small prefetch, to which publishers leave no processor while they run.
func TestPublishersWaitForConsumersThatTheyStarve(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		w := &worker{most: 10}
		w.c = &broker.Consumer{Tag: "c", Sink: w}
		require.NoError(t, q.Messages.Consume(w.c))
		w.c.Wake()
		x.working.Go(func() {
			for x.ctx.Err() == nil {
				if time.Sleep(100 * time.Microsecond); x.waiting.Load() {
					w.ack(w.most)
				}
			}
		})
		_, deepest := x.flood(r, 3*time.Second, q)
		assert.LessOrEqual(t, deepest, mostReady)
		assert.Greater(t, w.done(), 3000*floodBatch-mostReady-w.most)
	})
}

// slowWait is how long publishers that flood for three seconds wait for slow consumers: when the queue
// has grown by 8 MiB, then by twice that, and by four times.
const slowWait = 3 * 500 * time.Millisecond

func TestSlowConsumersHardlySlowPublishers(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		w := x.consume(q, 1, 2*time.Millisecond)
		waited, _ := x.flood(r, 3*time.Second, q)
		assert.Equal(t, slowWait, waited)
		assert.Positive(t, w.done())
	})
}

// One that takes nothing: its prefetch is used up, or its client does not read. Whether it has taken
// much before or not.
func TestStuckConsumersHardlySlowPublishers(t *testing.T) {
	for _, taken := range []int{1, 1000} {
		underPressure(t, func(x *pressed, r *broker.Rights) {
			q := x.queue("q", nil)
			newLimitedSink(t, q, false, taken)
			waited, _ := x.flood(r, 3*time.Second, q)
			assert.Equal(t, slowWait, waited)
		})
	}
}

// One wait is enough for several queues at once.
func TestPublishersWaitForSeveralQueuesTogether(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		var queues []*broker.Queue
		for i := range floodBatch {
			queues = append(queues, x.queue("q"+strconv.Itoa(i), nil))
			newLimitedSink(t, queues[i], false, 1)
		}
		waited, _ := x.flood(r, 3*time.Second, queues...)
		assert.Equal(t, 500*time.Millisecond, waited)
	})
}

// Slow consumers that become fast have their pace kept from then on.
func TestSlowConsumersBecomeFast(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		newLimitedSink(t, q, false, 1)
		x.flood(r, time.Second, q)
		ready, _, _ := q.Messages.Counts()
		x.consume(q, floodBatch/2, time.Millisecond)
		waited, deepest := x.flood(r, 3*time.Second, q)
		assert.Less(t, deepest, ready+3*mostReady)
		assert.Greater(t, waited, time.Second)
	})
}

func TestPublishersWithoutConsumersDoNotWait(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		waited, _ := x.flood(r, time.Second, x.queue("q", nil))
		assert.Zero(t, waited)
	})
}

func TestPublishersThatCannotWaitAreNotAskedTo(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		x.consume(q, 3, time.Millisecond)
		r.Pace(false)
		waited, _ := x.flood(r, time.Second, q)
		assert.Zero(t, waited)
	})
}

// A queue that was deep when its consumers came does not stop publishers: they keep somewhat less than
// the pace of the consumers, and it becomes shallower.
func TestDeepQueuesDoNotStopPublishers(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		x.flood(r, time.Second, q)
		deep, _, _ := q.Messages.Counts()
		x.consume(q, 6, time.Millisecond)
		waited, deepest := x.flood(r, 12*time.Second, q)
		ready, _, _ := q.Messages.Counts()
		assert.LessOrEqual(t, deepest, deep+mostReady)
		assert.Less(t, ready, deep-500, "it is worked off")
		assert.Less(t, waited, 8*time.Second, "publishers get most of what consumers give")
	})
}

// Each publisher of a queue gets its part of the credit.
func TestPublishersOfAQueueShareItsCredit(t *testing.T) {
	underPressure(t, func(x *pressed, _ *broker.Rights) {
		q := x.queue("q", nil)
		x.consume(q, 12, time.Millisecond)
		var published [4]int
		var publishing sync.WaitGroup
		ctx, stop := context.WithTimeout(x.ctx, 5*time.Second)
		defer stop()
		for i := range published {
			r := x.b.RightsOf("guest", "/")
			r.Pace(true)
			publishing.Go(func() {
				for ctx.Err() == nil {
					x.flood(r, time.Millisecond, q)
					published[i] += floodBatch
				}
			})
		}
		publishing.Wait()
		assert.Less(t, slices.Max(published[:]), slices.Min(published[:])*11/10, "%v", published)
	})
}

// A flooded queue slows nobody who publishes to another.
func TestPublishersToOtherQueuesDoNotWait(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		flooded, other := x.queue("flooded", nil), x.queue("other", nil)
		x.consume(flooded, 3, time.Millisecond)
		x.consume(other, 30, time.Millisecond)
		neighbour := x.b.RightsOf("guest", "/")
		neighbour.Pace(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			waited, _ := x.flood(neighbour, 2*time.Second, other)
			assert.Zero(t, waited)
		}()
		waited, _ := x.flood(r, 2*time.Second, flooded)
		assert.Positive(t, waited)
		<-done
	})
}

// What ends a wait: consumers that leave, a queue that is deleted or purged, and a publisher that is to go.
func TestWaitsForConsumersEnd(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		var s *sink
		p := r.NewPublisher(x.vh)
		fill := func() { // so that publishers have no credit
			q.Messages.Purge()
			if s != nil {
				s.c.Cancel()
			}
			for s = newLimitedSink(t, q, false, 8); len(r.Pacing.Crowded) == 0; p.Flush(nil) {
				_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: []byte{0, 0}, Body: make([]byte, 1<<20)})
				require.NoError(t, err)
			}
		}
		wait := func(done <-chan struct{}) time.Duration {
			before := time.Now()
			r.AwaitConsumers(done)
			assert.Empty(t, r.Pacing.Crowded)
			return time.Since(before)
		}
		soon := func(what func()) { time.AfterFunc(time.Millisecond, what) }
		ended := make(chan struct{})
		close(ended)
		fill()
		assert.Zero(t, wait(ended))
		fill()
		r.Pace(false)
		assert.Zero(t, wait(nil), "it no longer waits")
		r.Pace(true)
		fill()
		assert.Equal(t, 500*time.Millisecond, wait(nil), "nothing else")
		fill()
		soon(func() { q.Messages.Purge() })
		assert.Equal(t, time.Millisecond, wait(nil))
		fill()
		soon(func() { s.c.Cancel() })
		assert.Equal(t, time.Millisecond, wait(nil))
		fill()
		deleted := make(chan struct{})
		soon(func() {
			defer close(deleted)
			_, err := x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
			assert.NoError(t, err)
		})
		assert.Equal(t, time.Millisecond, wait(nil))
		<-deleted
	})
}
