package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"curfew/broker/amqp"
)

// Result is what a throughput run measured. Rates and latencies are of the time after the warm-up; the Total counts are
// of everything, for what the whole run cost the broker.
type Result struct {
	Published      float64  `json:"publishedPerSecond"`
	Consumed       float64  `json:"consumedPerSecond"`
	Seconds        float64  `json:"seconds"`
	TotalPublished int64    `json:"totalPublished"`
	TotalConsumed  int64    `json:"totalConsumed"`
	Nacked         int      `json:"nacked,omitempty"` // publishes the broker refused
	Latency        *Summary `json:"latency,omitempty"`
	ConfirmLatency *Summary `json:"confirmLatency,omitempty"`
	ClientCPU      float64  `json:"clientCPUus"` // of the load process, in us a message
}

// run is one workload under way.
type run struct {
	Spec
	start     time.Time // of stamps
	paced     time.Time // of the rate
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

// Throughput runs a workload until its duration is over, ctx ends, or something fails. What it declares it removes. With
// an error the result is what was measured until then; a Count that was not reached in time is one.
func Throughput(ctx context.Context, s Spec) (Result, error) {
	s, err := s.settled()
	if err != nil {
		return Result{}, err
	}
	admin, err := Dial(s.URL)
	if err != nil {
		return Result{}, err
	}
	defer admin.Close()
	if !s.Reuse {
		if err := s.declare(admin); err != nil {
			s.removeAnew()
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

// now is the time since the start in ns, never 0.
func (r *run) now() int64 { return time.Since(r.start).Nanoseconds() + 1 }

// party is a connection of a run. work ends soon after stop.
type party interface {
	work(r *run)
	stop()
	close()
}

func (r *run) measure(ctx context.Context) (Result, error) {
	parties, err := r.gather()
	defer func() {
		for _, p := range parties {
			p.close()
		}
	}()
	if err != nil {
		return Result{}, err
	}
	r.measuring.Store(r.Warmup == 0) // then from the first message on
	var working sync.WaitGroup
	var published, consumed int64
	cpu, from := ownCPU(), time.Now()
	r.paced = from
	for _, p := range parties {
		working.Go(func() { p.work(r) })
	}
	if r.Warmup > 0 {
		pause(ctx, r.Warmup)
		r.measuring.Store(true)
		published, consumed, from = r.published.Load(), r.consumed.Load(), time.Now()
	}
	r.last(ctx)
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
	for _, p := range parties {
		p.stop()
	}
	working.Wait()
	result.TotalPublished, result.TotalConsumed = r.published.Load(), r.consumed.Load()
	result.ClientCPU = (ownCPU() - cpu).Seconds() * 1e6 / float64(max(1, result.TotalPublished, result.TotalConsumed))
	result.Latency, result.ConfirmLatency, result.Nacked = r.latency.Summary(), r.confirm.Summary(), r.nacked
	return result, context.Cause(ctx)
}

// last returns when the duration is over or the count reached.
func (r *run) last(ctx context.Context) {
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

// gather connects the consumers, which are to be there first, and the producers.
func (r *run) gather() (parties []party, err error) {
	add := func(p party, failed error) {
		if failed == nil {
			parties = append(parties, p)
		}
		err = errors.Join(err, failed)
	}
	for i := 0; i < r.Consumers && err == nil; i++ {
		if r.Client == "raw" {
			add(newConsumer(&r.Spec, i))
		} else {
			add(newLibraryConsumer(&r.Spec, i))
		}
	}
	for i := 0; i < r.Producers && err == nil; i++ {
		if r.Client == "raw" {
			add(newProducer(&r.Spec, i))
		} else {
			add(newLibraryProducer(&r.Spec, i))
		}
	}
	return parties, err
}

// ended is what a party says when its connection failed, unless it was to end.
func (r *run) ended(err error) {
	if err = untilClosed(err); err != nil && !r.stopping.Load() {
		r.fail(err)
	}
}

// untilClosed is the error of a connection that did not end by our own closing it.
func untilClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// allowed says how many messages the i-th producer may send now at its share of the rate and the count, waiting for the
// next if there is none; 0 at the end.
func (r *run) allowed(i, sent, most int) int {
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

func ownCPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
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
	c, err := Dial(s.URL)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, q := range share(i, s.Producers, s.Queues) {
		keys = append(keys, s.key(q))
	}
	p := &producer{number: i, conn: c, template: newTemplate(s, keys), window: newWindow(s.Window)}
	if s.Window > 0 {
		p.confirms = newConfirms(s.Window)
		_, err = c.Call(channel, &amqp.ConfirmSelect{}, amqp.ConfirmSelectOkID)
	}
	return p, err
}

// work ends with the broker's answer to a close: then it has taken all that was published, and nothing of it comes into
// who uses the queues next.
func (p *producer) work(r *run) {
	if p.confirms != nil {
		p.confirms.measuring = &r.measuring
	}
	var reading sync.WaitGroup
	reading.Go(func() { r.ended(p.read(r)) })
	err := p.write(r)
	if r.ended(err); err == nil {
		<-r.over // all of a count may have been sent before
		p.conn.SetDeadline(time.Now().Add(partingLimit))
		_, err = p.conn.Write(amqp.AppendMethod(nil, 0, &amqp.ConnectionClose{Closing: amqp.Closing{ReplyCode: amqp.ReplySuccess}}))
	}
	if err != nil {
		p.conn.Close()
	}
	reading.Wait()
	if p.confirms != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.confirm.Merge(&p.confirms.late)
		r.nacked += p.confirms.nacked
	}
}

// partingLimit is how long a broker that holds publishers back, or stands still, may keep a run from its end.
const partingLimit = 2 * time.Second

func (p *producer) stop() {
	p.window.close()
	p.conn.SetWriteDeadline(time.Now().Add(partingLimit))
}

func (p *producer) close() { p.conn.Close() }

func (p *producer) write(r *run) error {
	for sent := 0; !r.stopping.Load(); {
		n := r.allowed(p.number, sent, p.template.most())
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

// read takes the confirms.
func (p *producer) read(r *run) error {
	var now int64
	settled := 0
	a := arrivals{onBody: func([]byte) {}, onConfirm: func(tag uint64, multiple, nack bool) {
		n := p.confirms.confirm(tag, multiple, nack, now)
		if settled += n; nack {
			r.backlog.give(n)
		}
	}}
	return p.conn.each(func(b []byte) (int, error) {
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

// each hands what arrives to take, which says how much of it it used, until reading or take fails.
func (c *Conn) each(take func([]byte) (used int, err error)) error {
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
	c, err := Dial(s.URL)
	if err != nil {
		return nil, err
	}
	return &consumer{conn: c}, s.consume(c, i)
}

func (c *consumer) work(r *run) {
	r.ended(c.read(r))
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
	return c.conn.each(func(b []byte) (int, error) {
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

// appendAcks acks the deliveries after one tag up to another.
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
