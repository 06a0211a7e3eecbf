package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/amqp"
)

// Result is the result of a throughput run. Rates and latencies cover the time after the
// warm-up. The Total counts cover the whole run, for its total cost to the broker.
type Result struct {
	Published      float64  `json:"publishedPerSecond"`
	Consumed       float64  `json:"consumedPerSecond"`
	Seconds        float64  `json:"seconds"`
	TotalPublished int64    `json:"totalPublished"`
	TotalConsumed  int64    `json:"totalConsumed"`
	Nacked         int      `json:"nacked,omitempty"` // publishes that the broker refused
	Latency        *Summary `json:"latency,omitempty"`
	ConfirmLatency *Summary `json:"confirmLatency,omitempty"`
	ClientCPU      float64  `json:"clientCPUus"` // of the load process, in µs per message
}

// run is one workload in progress.
type run struct {
	Spec
	start     time.Time // zero of the times of sending
	paced     time.Time // zero of the rate limit
	backlog   *window
	published atomic.Int64
	confirmed atomic.Int64
	consumed  atomic.Int64
	measuring atomic.Bool
	stopping  atomic.Bool
	over      chan struct{} // closed once stopping
	fail      func(error)

	mu      sync.Mutex
	latency Histogram
	confirm Histogram
	nacked  int
}

// Throughput runs a workload until its duration is over, ctx ends, or something fails. It
// removes what it declared. With an error it also returns what was measured until then. A
// Count that was not reached in time is an error.
func Throughput(ctx context.Context, s Spec) (Result, error) {
	s, err := s.withDefaults()
	if err != nil {
		return Result{}, err
	}
	admin, err := logIn(s.URL)
	if err != nil {
		return Result{}, err
	}
	defer admin.Close()
	if !s.Reuse {
		if err := s.declare(admin); err != nil {
			s.removeLeftovers()
			return Result{}, fmt.Errorf("load: declare: %w", err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Spec: s, start: time.Now(), backlog: newBacklog(s.Backlog), over: make(chan struct{}), fail: func(err error) { cancel(err) }}
	result, err := r.measure(ctx)
	if err == nil && s.Count > 0 && !r.complete() {
		err = fmt.Errorf("load: not done within %v: %d of %d published, %d confirmed, %d consumed",
			s.Duration, result.TotalPublished, s.Count, r.confirmed.Load(), result.TotalConsumed)
	}
	if s.Keep {
		return result, err
	}
	return result, errors.Join(err, s.remove(admin))
}

// now returns the time since the start in ns, never 0.
func (r *run) now() int64 { return time.Since(r.start).Nanoseconds() + 1 }

// client is a connection of a run. work ends soon after stop.
type client interface {
	work(r *run)
	stop()
	close()
}

func (r *run) measure(ctx context.Context) (Result, error) {
	clients, err := r.connect()
	defer func() {
		for _, p := range clients {
			p.close()
		}
	}()
	if err != nil {
		return Result{}, err
	}
	r.measuring.Store(r.Warmup == 0) // without warm-up from the first message on
	var working sync.WaitGroup
	var published, consumed int64
	cpu, from := ownCPU(), time.Now()
	r.paced = from
	for _, p := range clients {
		working.Go(func() { p.work(r) })
	}
	if r.Warmup > 0 {
		pause(ctx, r.Warmup)
		r.measuring.Store(true)
		published, consumed, from = r.published.Load(), r.consumed.Load(), time.Now()
	}
	r.awaitEnd(ctx)
	r.measuring.Store(false)
	took := time.Since(from).Seconds()
	result := Result{
		Seconds:   took,
		Published: float64(r.published.Load()-published) / took,
		Consumed:  float64(r.consumed.Load()-consumed) / took,
	}
	r.stopping.Store(true)
	close(r.over)
	r.backlog.close()
	for _, p := range clients {
		p.stop()
	}
	working.Wait()
	result.TotalPublished, result.TotalConsumed = r.published.Load(), r.consumed.Load()
	result.ClientCPU = (ownCPU() - cpu).Seconds() * 1e6 / float64(max(1, result.TotalPublished, result.TotalConsumed))
	result.Latency, result.ConfirmLatency, result.Nacked = r.latency.Summary(), r.confirm.Summary(), r.nacked
	return result, context.Cause(ctx)
}

// awaitEnd returns when the duration is over or the count is reached.
func (r *run) awaitEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.Duration)
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for ctx.Err() == nil && (r.Count == 0 || !r.complete()) {
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
}

func (r *run) complete() bool {
	n, copies := int64(r.Count), int64(1)
	if r.Exchange == "fanout" {
		copies = int64(r.Queues)
	}
	return r.published.Load() >= n && (r.Window == 0 || r.confirmed.Load() >= n) && (r.Consumers == 0 || r.consumed.Load() >= n*copies)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// connect connects first the consumers and then the producers.
func (r *run) connect() (clients []client, err error) {
	add := func(p client, failed error) {
		if failed == nil {
			clients = append(clients, p)
		}
		err = errors.Join(err, failed)
	}
	for i := 0; i < r.Consumers && err == nil; i++ {
		switch r.Client {
		case "raw":
			add(newConsumer(&r.Spec, i))
		case "raw10":
			add(newConsumer10(&r.Spec, i))
		default:
			add(newLibraryConsumer(&r.Spec, i))
		}
	}
	for i := 0; i < r.Producers && err == nil; i++ {
		switch r.Client {
		case "raw":
			add(newProducer(&r.Spec, i))
		case "raw10":
			add(newProducer10(&r.Spec, i))
		default:
			add(newLibraryProducer(&r.Spec, i))
		}
	}
	return clients, err
}

// clientEnded fails the run with a connection's error, unless the run is over.
func (r *run) clientEnded(err error) {
	if err = exceptClosed(err); err != nil && !r.stopping.Load() {
		r.fail(err)
	}
}

// exceptClosed returns the error of a connection, unless this process closed it.
func exceptClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// awaitAllowance returns how many messages the i-th producer may send now, by its share of
// the rate and the count. It waits until there is at least one. It returns 0 at the end.
func (r *run) awaitAllowance(i, sent, most int) int {
	if r.Count > 0 {
		quota := r.Count / r.Producers
		if i < r.Count%r.Producers {
			quota++
		}
		most = min(most, quota-sent)
	}
	if r.Rate == 0 {
		return most
	}
	rate := float64(r.Rate) / float64(r.Producers)
	for most > 0 && !r.stopping.Load() {
		due := int(time.Since(r.paced).Seconds()*rate) - sent
		if due > 0 {
			return min(due, most)
		}
		time.Sleep(max(100*time.Microsecond, min(time.Millisecond, time.Duration(float64(time.Second)/rate))))
	}
	return 0
}

// producer publishes on one connection.
type producer struct {
	number   int
	conn     *Conn
	template *template
	window   *window
	confirms *confirms // nil: no confirms
}

func newProducer(s *Spec, i int) (*producer, error) {
	c, err := logIn(s.URL)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, q := range portion(i, s.Producers, s.Queues) {
		keys = append(keys, s.key(q))
	}
	p := &producer{number: i, conn: c, template: newTemplate(s, keys), window: newWindow(s.Window)}
	if s.Window > 0 {
		p.confirms = newConfirms(s.Window)
		_, err = c.Call(channel, &amqp.ConfirmSelect{}, amqp.ConfirmSelectOkID)
	}
	return p, err
}

// work ends with the broker's answer to a close. By then the broker has accepted everything
// that was published, and none of it reaches the next user of the queues.
func (p *producer) work(r *run) {
	if p.confirms != nil {
		p.confirms.measuring = &r.measuring
	}
	var reading sync.WaitGroup
	reading.Go(func() { r.clientEnded(p.read(r)) })
	err := p.write(r)
	if r.clientEnded(err); err == nil {
		<-r.over // the whole Count may have been sent before
		p.conn.SetDeadline(time.Now().Add(closeTimeout))
		_, err = p.conn.Write(amqp.AppendMethod(nil, 0, &amqp.ConnectionClose{Closing: amqp.Closing{ReplyCode: amqp.ReplySuccess}}))
	}
	if err != nil {
		p.conn.Close()
	}
	reading.Wait()
	if p.confirms != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.confirm.Merge(&p.confirms.delays)
		r.nacked += p.confirms.nacked
	}
}

// closeTimeout is how long a broker that blocks publishers, or hangs, may delay the end of
// a run.
const closeTimeout = 2 * time.Second

func (p *producer) stop() {
	p.window.close()
	p.conn.SetWriteDeadline(time.Now().Add(closeTimeout))
}

func (p *producer) close() { p.conn.Close() }

func (p *producer) write(r *run) error {
	for sent := 0; !r.stopping.Load(); {
		n := r.awaitAllowance(p.number, sent, p.template.most())
		if n == 0 {
			break
		}
		for p.confirms != nil && p.confirms.full() && !r.stopping.Load() {
			time.Sleep(time.Millisecond)
		}
		n = p.window.take(n)
		room := r.backlog.take(n)
		if room == 0 {
			break
		}
		if room < n {
			p.window.give(n - room)
		}
		now := r.now()
		if p.confirms != nil {
			p.confirms.add(room, now)
		}
		if _, err := p.conn.Write(p.template.next(room, now)); err != nil {
			return err
		}
		sent += room
		r.published.Add(int64(room))
	}
	return nil
}

// read handles the confirms.
func (p *producer) read(r *run) error {
	var now int64
	settled := 0
	a := arrivals{onBody: func([]byte) {}, onConfirm: func(tag uint64, multiple, nack bool) {
		n := p.confirms.confirm(tag, multiple, nack, now)
		if settled += n; nack {
			r.backlog.give(n)
		}
	}}
	return p.conn.readEach(func(b []byte) (int, error) {
		now = r.now()
		used, err := a.walk(b)
		if settled > 0 {
			r.confirmed.Add(int64(settled))
			p.window.give(settled)
			settled = 0
		}
		return used, err
	})
}

// readEach passes what arrives to take, which returns how much of it was used, until
// reading or take fails.
func (c *Conn) readEach(take func([]byte) (used int, err error)) error {
	c.buf = append(c.buf, make([]byte, max(0, 2*frameMax-len(c.buf)))...)
	for {
		used, err := take(c.buf[c.from:c.to])
		if err != nil {
			return err
		}
		c.from += used
		if err := c.fill(); err != nil {
			return err
		}
	}
}

// consumer consumes on one connection.
type consumer struct {
	conn    *Conn
	latency Histogram
}

func newConsumer(s *Spec, i int) (*consumer, error) {
	c, err := logIn(s.URL)
	if err != nil {
		return nil, err
	}
	return &consumer{conn: c}, s.consume(c, i)
}

func (c *consumer) work(r *run) {
	r.clientEnded(c.read(r))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latency.Merge(&c.latency)
}

func (c *consumer) stop()  { c.conn.Close() }
func (c *consumer) close() { c.conn.Close() }

func (c *consumer) read(r *run) error {
	var now int64
	var out []byte
	measured := r.Size >= stampSize
	a := arrivals{onConfirm: func(uint64, bool, bool) {}, onBody: func(body []byte) {
		if measured && r.measuring.Load() {
			c.latency.Record(time.Duration(now - int64(binary.BigEndian.Uint64(body))))
		}
	}}
	acked := uint64(0)
	return c.conn.readEach(func(b []byte) (int, error) {
		now = r.now()
		a.deliveries = 0
		used, err := a.walk(b)
		if a.deliveries == 0 {
			return used, err
		}
		r.consumed.Add(int64(a.deliveries))
		r.backlog.give(a.deliveries)
		out = appendAcks(out[:0], r.Ack, acked, a.lastTag)
		if acked = a.lastTag; len(out) > 0 && err == nil {
			_, err = c.conn.Write(out)
		}
		return used, err
	})
}

// appendAcks appends acks for the deliveries after one tag and up to another.
func appendAcks(out []byte, how string, after, last uint64) []byte {
	switch how {
	case "multiple":
		return amqp.AppendAck(out, channel, last, true)
	case "each":
		for tag := after + 1; tag <= last; tag++ {
			out = amqp.AppendAck(out, channel, tag, false)
		}
	}
	return out
}
