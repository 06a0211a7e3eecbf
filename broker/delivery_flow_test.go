package broker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/queue"
)

// processor is what a flooding publisher and consumers share in a test: the publisher
// has it but for its pauses.
type processor struct {
	mu   sync.Mutex
	busy bool
}

func (p *processor) take(busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = busy
}

func (p *processor) free() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.busy
}

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
	ctx       context.Context // of the workers
	working   sync.WaitGroup
	processor processor
}

// consume starts a consumer that acks so many each millisecond, or only while the
// processor is free.
func (x *pressed) consume(q *broker.Queue, perMilli int, starves bool) *worker {
	w := &worker{most: perMilli}
	w.c = &broker.Consumer{Tag: "c", Sink: w}
	require.NoError(x.t, q.Consume(w.c))
	w.c.Wake()
	x.working.Go(func() {
		for x.ctx.Err() == nil {
			time.Sleep(time.Millisecond)
			if !starves || x.processor.free() {
				w.ack(perMilli)
			}
		}
	})
	return w
}

const (
	floodBody  = 4 << 10
	floodBatch = 9 // messages, each millisecond
)

// flood publishes to the queues for so long, pauses not counted, and returns how long it
// paused and how deep the first of them has been.
func (x *pressed) flood(r *broker.Rights, d time.Duration, queues ...*broker.Queue) (paused time.Duration, deepest int) {
	p := r.NewPublisher(x.vh)
	never := make(chan struct{})
	for ran := time.Duration(0); ran < d; ran += time.Millisecond {
		x.processor.take(true)
		time.Sleep(time.Millisecond)
		for i := range floodBatch {
			_, err := p.Add(&broker.Publication{RoutingKey: []byte(queues[i%len(queues)].Name()), Properties: []byte{0, 0}, Body: make([]byte, floodBody)})
			require.NoError(x.t, err)
		}
		p.Flush(nil)
		x.processor.take(false)
		before := time.Now()
		r.AwaitConsumers(never)
		paused += time.Since(before)
		ready, _, _ := queues[0].Counts()
		deepest = max(deepest, ready)
	}
	return paused, deepest
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

// Messages that are ready when publishers begin to wait, and some more.
const mostReady = (16+6)<<20/(floodBody+256) + 100

func TestPublishersWaitForConsumersWithoutProcessorTime(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		w := x.consume(q, 30, true)
		_, deepest := x.flood(r, 3*time.Second, q)
		assert.Less(t, deepest, mostReady)
		assert.Greater(t, w.done(), 3000*floodBatch-mostReady)
	})
}

func TestSlowConsumersDoNotSlowPublishers(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		w := x.consume(q, 1, false)
		paused, _ := x.flood(r, 3*time.Second, q)
		assert.Less(t, paused, 400*time.Millisecond, "some tries")
		assert.Positive(t, w.done())
	})
}

// One that takes nothing: its prefetch is used up, or its client does not read.
func TestStuckConsumersDoNotSlowPublishers(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		var queues []*broker.Queue
		for _, name := range []string{"a", "b", "c"} { // tries are bounded over all queues
			q := x.queue(name, nil)
			newLimitedSink(t, q, false, 1)
			queues = append(queues, q)
		}
		paused, _ := x.flood(r, 5*time.Second, queues...)
		assert.Positive(t, paused)
		assert.Less(t, paused, 600*time.Millisecond)
	})
}

func TestPublishersWithoutConsumersDoNotWait(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		paused, _ := x.flood(r, time.Second, x.queue("q", nil))
		assert.Zero(t, paused)
	})
}

func TestPublishersThatCannotWaitAreNotAskedTo(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		x.consume(q, 30, true)
		r.Pace(false)
		paused, _ := x.flood(r, time.Second, q)
		assert.Zero(t, paused)
	})
}

// A queue that was deep when its consumers came is no reason to wait: publishers keep to
// the pace of the consumers.
func TestDeepQueuesDoNotStopPublishers(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		x.flood(r, 2*time.Second, q)
		deep, _, _ := q.Counts()
		x.consume(q, 30, true)
		paused, _ := x.flood(r, 2*time.Second, q)
		ready, _, _ := q.Counts()
		assert.Less(t, paused, 1500*time.Millisecond)
		assert.Less(t, ready, deep+mostReady)
	})
}

// A flooded queue slows nobody who publishes to another.
func TestPublishersToOtherQueuesDoNotWait(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		flooded, other := x.queue("flooded", nil), x.queue("other", nil)
		x.consume(flooded, 30, true)
		x.consume(other, 30, false)
		neighbour := x.b.RightsOf("guest", "/")
		neighbour.Pace(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			second := &pressed{testBroker: x.testBroker}
			paused, _ := second.flood(neighbour, 2*time.Second, other)
			assert.Zero(t, paused)
		}()
		paused, _ := x.flood(r, 2*time.Second, flooded)
		assert.Positive(t, paused)
		<-done
	})
}

// What ends a wait: consumers that leave, and a publisher that is to go.
func TestWaitsForConsumersEnd(t *testing.T) {
	underPressure(t, func(x *pressed, r *broker.Rights) {
		q := x.queue("q", nil)
		s := newLimitedSink(t, q, false, 1)
		p := r.NewPublisher(x.vh)
		fill := func() {
			for !r.Crowded() {
				_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: []byte{0, 0}, Body: make([]byte, 1<<20)})
				require.NoError(t, err)
				p.Flush(nil)
				time.Sleep(time.Millisecond)
			}
		}
		wait := func(done <-chan struct{}) time.Duration {
			before := time.Now()
			r.AwaitConsumers(done)
			return time.Since(before)
		}
		fill()
		ended := make(chan struct{})
		close(ended)
		assert.Zero(t, wait(ended))
		fill()
		r.Pace(false)
		assert.Zero(t, wait(nil), "it does not wait any more")
		r.Pace(true)
		fill()
		s.c.Cancel()
		assert.LessOrEqual(t, wait(nil), 20*time.Millisecond)
		assert.False(t, r.Crowded())
	})
}
