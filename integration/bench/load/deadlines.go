package load

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/amqp"
)

// Deadlines is a workload of messages that nobody consumes: one with a long time to live at
// the head of a queue, many with short ones in random order behind it, and a consumer of
// their dead letters.
type Deadlines struct {
	URL       string        `json:"url"`
	Rate      int           `json:"rate"` // deadlines a second
	Duration  time.Duration `json:"duration"`
	MinTTL    time.Duration `json:"minTTL"` // whole ms, like the other times to live
	MaxTTL    time.Duration `json:"maxTTL"`
	Head      time.Duration `json:"head"` // time to live of the message at the head of the queue; 0: no such message
	Size      int           `json:"size"` // octets of a body, at least 16
	Persist   bool          `json:"persistent,omitempty"`
	QueueType string        `json:"queueType,omitempty"`
	MaxWait   time.Duration `json:"patience"` // how long to wait after the last deadline; 0: 10 s
}

// DeadlinesResult is the result of a Deadlines run. A message's time to live begins when it
// enters the queue. The publisher does not know that instant, only that it is after the
// write and before the confirm. So each deadline has two bounds, and its lateness two
// figures, which differ by a round trip. Early counts messages that came before the first
// bound: it must be zero.
type DeadlinesResult struct {
	Published   int      `json:"published"`
	Rate        float64  `json:"perSecond"` // the rate of publishing
	Refused     int      `json:"refused,omitempty"`
	Arrived     int      `json:"arrived"`
	Early       int      `json:"early"`
	FromWrite   *Summary `json:"fromWrite"`
	FromConfirm *Summary `json:"fromConfirm"`
}

// Missing returns how many messages neither arrived nor were refused.
func (r *DeadlinesResult) Missing() int { return r.Published - r.Refused - r.Arrived }

const (
	// minBody is the size of a message's number and time of sending.
	minBody = 16
	// maxDeadlines bounds the memory of a run: 32 octets per deadline.
	maxDeadlines = 100_000_000
)

// deadlineQueues are the names of the queue that nobody consumes, and of the queue of its
// dead letters.
type deadlineQueues struct{ from, dead string }

func newDeadlineQueues() deadlineQueues {
	name := runName()
	return deadlineQueues{name + "deadlines", name + "dead-letters"}
}

// deadlineRun is a Deadlines in progress. Times are ns since start.
type deadlineRun struct {
	Deadlines
	queues    deadlineQueues
	start     time.Time
	ttl       []int64        // ns, by message
	written   []int64        // time before the write
	confirmed []atomic.Int64 // 0: not yet
	arrived   []int64        // 0: not yet; written only by the consumer
	published atomic.Int64
	took      atomic.Int64 // duration of publishing, ns
	refused   atomic.Int64
	awaited   atomic.Int64  // dead letters and confirms still to come
	all       chan struct{} // closed when there are none
}

// Run publishes for the Duration and waits for the dead letters. It removes what it
// declared.
func (d Deadlines) Run(ctx context.Context) (DeadlinesResult, error) {
	d.Size = max(d.Size, minBody)
	d.MaxWait = cmp.Or(d.MaxWait, 10*time.Second)
	if err := errors.Join(
		oneOf("queue type", d.QueueType, queueTypes), between("rate", d.Rate, 1, maxRate), between("duration", d.Duration, 1, math.MaxInt64),
		between("shortest ttl", d.MinTTL, time.Millisecond, d.MaxTTL), wholeMillis("shortest ttl", d.MinTTL), wholeMillis("longest ttl", d.MaxTTL),
		wholeMillis("head", d.Head), between("size", d.Size, 0, maxSize), between("wait", d.MaxWait, 0, math.MaxInt64),
	); err != nil {
		return DeadlinesResult{}, err
	}
	count := float64(d.Rate) * d.Duration.Seconds()
	if count < 1 || count > maxDeadlines {
		return DeadlinesResult{}, fmt.Errorf("load: rate and duration result in %.0f deadlines; want 1 to %d", count, maxDeadlines)
	}
	total := int(count)
	r := &deadlineRun{
		Deadlines: d, queues: newDeadlineQueues(), ttl: make([]int64, total), written: make([]int64, total),
		confirmed: make([]atomic.Int64, total), arrived: make([]int64, total), all: make(chan struct{}),
	}
	r.awaited.Store(2 * int64(total))
	return r.run(ctx)
}

func (r *deadlineRun) run(ctx context.Context) (result DeadlinesResult, err error) {
	admin, err := logIn(r.URL)
	if err != nil {
		return result, err
	}
	defer admin.Close()
	if err := r.declare(admin); err != nil {
		return result, fmt.Errorf("load: declare: %w", err)
	}
	defer func() { err = errors.Join(err, removeQueues(admin, r.queues)) }()
	in, err := logIn(r.URL)
	if err != nil {
		return result, err
	}
	defer in.Close()
	out, err := logIn(r.URL)
	if err != nil {
		return result, err
	}
	defer out.Close()
	if _, err := out.Call(channel, &amqp.ConfirmSelect{}, amqp.ConfirmSelectOkID); err != nil {
		return result, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var reading sync.WaitGroup
	r.start = time.Now()
	reading.Go(func() { cancel(r.collect(in)) })
	reading.Go(func() { cancel(r.confirms(out)) })
	if err := r.publish(ctx, out); err != nil {
		cancel(err)
	}
	r.wait(ctx)
	failed := context.Cause(ctx)
	in.Close()
	out.Close()
	reading.Wait()
	return r.result(), failed
}

// declare declares the queue, and the queue of its dead letters.
func (r *deadlineRun) declare(c *Conn) error {
	return r.queues.declare(c, r.Persist, r.QueueType, true)
}

func (q deadlineQueues) declare(c *Conn, persist bool, queueType string, deadLetter bool) error {
	durable := persist || queueType == "quorum"
	arguments := amqp.Table{}
	for k, v := range queueArguments(queueType) {
		arguments[k] = v
	}
	dead := &amqp.QueueDeclare{Queue: q.dead, Durable: durable, Arguments: arguments}
	if _, err := c.Call(channel, dead, amqp.QueueDeclareOkID); err != nil {
		return err
	}
	from := amqp.Table{}
	if deadLetter {
		from["x-dead-letter-exchange"], from["x-dead-letter-routing-key"] = "", q.dead
	}
	for k, v := range arguments {
		from[k] = v
	}
	_, err := c.Call(channel, &amqp.QueueDeclare{Queue: q.from, Durable: durable, Arguments: from}, amqp.QueueDeclareOkID)
	return err
}

func removeQueues(c *Conn, q deadlineQueues) error {
	for _, name := range []string{q.from, q.dead} {
		if _, err := c.Call(channel, &amqp.QueueDelete{Queue: name}, amqp.QueueDeleteOkID); err != nil {
			return err
		}
	}
	return nil
}

func (r *deadlineRun) now() int64 { return time.Since(r.start).Nanoseconds() + 1 }

// publish sends the head message and then, every millisecond, the messages whose time to be
// sent has come.
func (r *deadlineRun) publish(ctx context.Context, c *Conn) error {
	body := make([]byte, r.Size)
	binary.BigEndian.PutUint64(body[stampSize:], math.MaxUint64) // the head message: its deadline is not part of the run
	frames := appendPublish(nil, r.queues.from, cmp.Or(r.Head, r.MaxTTL), r.Persist, body)
	if r.Head == 0 {
		frames = frames[:0]
	}
	span := int64(r.MaxTTL-r.MinTTL)/int64(time.Millisecond) + 1
	if _, err := c.Write(frames); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for sent := 0; sent < len(r.ttl) && ctx.Err() == nil; <-tick.C {
		due := min(len(r.ttl), int(time.Since(r.start).Seconds()*float64(r.Rate)))
		frames = frames[:0]
		for i := sent; i < due; i++ {
			ttl := r.MinTTL + time.Duration(rand.Int64N(span))*time.Millisecond
			r.ttl[i] = int64(ttl)
			binary.BigEndian.PutUint64(body[stampSize:], uint64(i))
			frames = appendPublish(frames, r.queues.from, ttl, r.Persist, body)
		}
		now := r.now()
		for i := sent; i < due; i++ {
			r.written[i] = now
		}
		if _, err := c.Write(frames); err != nil {
			return err
		}
		sent = due
		r.published.Store(int64(sent))
		r.took.Store(r.now())
	}
	return nil
}

// appendPublish frames a message to a queue through the default exchange. ttl is rounded
// down to ms.
func appendPublish(out []byte, queue string, ttl time.Duration, persist bool, body []byte) []byte {
	properties := amqp.Properties{DeliveryMode: mode(persist), Expiration: expiration(&Spec{TTL: ttl})}
	var raw [64]byte
	out = amqp.AppendMethod(out, channel, &amqp.BasicPublish{RoutingKey: queue})
	return amqp.AppendContent(out, channel, properties.Append(raw[:0]), body, frameMax)
}

// confirms records when each publish was confirmed. Tag 1 is the head message, if there is
// one.
func (r *deadlineRun) confirms(c *Conn) error {
	low, own := uint64(0), uint64(1)
	if r.Head > 0 {
		own = 2
	}
	a := arrivals{onBody: func([]byte) {}, onConfirm: func(tag uint64, multiple, nack bool) {
		now, first := r.now(), tag
		if multiple {
			first, low = low+1, tag
		}
		for t := max(first, own); t <= min(tag, uint64(len(r.confirmed))+own-1); t++ {
			if !r.confirmed[t-own].CompareAndSwap(0, now) {
				continue
			}
			if r.countArrival(); nack {
				r.refused.Add(1)
				r.countArrival() // its dead letter will not come
			}
		}
	}}
	return exceptClosed(c.readEach(a.walk))
}

// collect records when each dead letter arrived.
func (r *deadlineRun) collect(c *Conn) error {
	var now int64
	a := arrivals{onConfirm: func(uint64, bool, bool) {}, onBody: func(body []byte) {
		if len(body) < minBody {
			return
		}
		if i := binary.BigEndian.Uint64(body[stampSize:]); i < uint64(len(r.arrived)) && r.arrived[i] == 0 {
			r.arrived[i] = now
			r.countArrival()
		}
	}}
	c.queueMethod(channel, &amqp.BasicConsume{Queue: r.queues.dead, NoAck: true})
	if err := c.flush(); err != nil {
		return err
	}
	return exceptClosed(c.readEach(func(b []byte) (int, error) {
		now = r.now()
		return a.walk(b)
	}))
}

// countArrival counts a dead letter or a confirm. On a stalled machine either may be read
// first.
func (r *deadlineRun) countArrival() {
	if r.awaited.Add(-1) == 0 {
		close(r.all)
	}
}

// wait returns when everything has arrived and been confirmed, or MaxWait after the last
// deadline.
func (r *deadlineRun) wait(ctx context.Context) {
	limit := time.NewTimer(r.MaxTTL + r.MaxWait)
	defer limit.Stop()
	select {
	case <-r.all:
	case <-limit.C:
	case <-ctx.Done():
	}
}

func (r *deadlineRun) result() DeadlinesResult {
	result := DeadlinesResult{Published: int(r.published.Load()), Refused: int(r.refused.Load())}
	if took := r.took.Load(); took > 0 {
		result.Rate = float64(result.Published) / time.Duration(took).Seconds()
	}
	var fromWrite, fromConfirm Histogram
	for i := range result.Published {
		at := r.arrived[i]
		if at == 0 {
			continue
		}
		result.Arrived++
		late := at - r.written[i] - r.ttl[i]
		if late < 0 {
			result.Early++
		}
		fromWrite.Record(time.Duration(late))
		if confirmed := r.confirmed[i].Load(); confirmed != 0 {
			fromConfirm.Record(time.Duration(at - confirmed - r.ttl[i]))
		}
	}
	result.FromWrite, result.FromConfirm = fromWrite.Summary(), fromConfirm.Summary()
	return result
}
