package delivery

import (
	"math"
	"sync"
	"time"

	"curfew/broker/deadline"
)

// flow slows the publishers of one queue down while its consumers lack processor time
// (RabbitMQ: Flow Control). A publisher at full speed keeps its connection's reader runnable
// all the time. With as many publishers as there are processors, acks stay unread and deliveries
// unwritten for tens of milliseconds: the consumers could take more, and the queue grows.
//
// When the ready messages have grown by flowHigh, publishers pause before they read on,
// until most of that is gone. Whether that helps is measured: consumers that take clearly more
// during a pause lacked the processor. Others are slow themselves (their prefetch is used up, or
// they do not read). Then publishers run freely. Now and then they pause to try again, less and
// less often. Two things were tried and are not enough: asking whether consumers have credit
// (starved consumers have none either, since their acks are not read), and yielding the
// processor, which readers do (sixteen publishers take sixteen turns to the consumer's one).
//
// What was in the queue before does not count: publishers are held to the pace of the consumers,
// or a little less, and do not wait until a deep queue is empty. A pause lasts flowLongest at
// most, so nothing depends on its end.
type flow struct {
	q   *Queue
	run *flowRun // nil: nothing is being measured
}

// flowRun is what is measured of a queue with consumers, from the first publish that leaves
// flowJoin of ready messages until the queue's memory is released.
type flowRun struct {
	floor int64      // weight that publishers need not wait for
	pause *flowPause // nil: publishers run

	// Of the current run or pause, since it began or was last judged:
	since            deadline.Instant
	taken, published uint64
	others           time.Duration // flowPauses.total at since

	running, waiting pace // of the consumers, while publishers run and while they wait
	entering         pace // of the publishers, while they run
	proven           bool // the last pause helped
	freeUntil        deadline.Instant
	backoff          time.Duration
}

const (
	// flowMessage is what a message weighs besides its body: small ones cost time, too.
	flowMessage = 256
	// flowHigh is how much a queue may grow before its publishers pause, flowJoin the same while
	// publishers of another queue pause, and flowLow how much of it may be left when they go on:
	// 47,000, 18,000 and 12,000 messages of 100 octets; 16, 6 and 4 of 1 MiB.
	flowHigh, flowJoin, flowLow = 16 << 20, 6 << 20, 4 << 20
	// flowTrial is how long a pause is tried before it is judged, flowLongest the longest that
	// one that helps lasts, and flowTick how often it is checked.
	flowTrial, flowLongest, flowTick = 60 * time.Millisecond, 500 * time.Millisecond, 20 * time.Millisecond
	// flowGain is the least factor by which consumers have to be faster during pauses.
	flowGain = 1.25
	// flowBackoffMin and flowBackoffMax bound how long publishers run freely after a pause that
	// did not help.
	flowBackoffMin, flowBackoffMax = 100 * time.Millisecond, 4 * time.Second
	// flowClean is how many times longer than the pauses of other queues a run has to be to
	// show how fast consumers are while publishers run.
	flowClean = 4
	// flowDecay is the part, one in flowDecay, of what was taken during a pause by which the
	// floor of a queue falls: so a queue that was deep before becomes shallower.
	flowDecay = 8
)

// flowPause is one wait of a queue's publishers.
type flowPause struct {
	over    chan struct{} // closed at its end
	vain    bool          // it did not help; valid once over is closed
	since   deadline.Instant
	weight  int64 // of the queue at since
	waiters int
}

// pace is a rate: a number of messages in some time.
type pace struct{ messages, micros float64 }

// paceMemory is how far back a pace looks, in µs.
const paceMemory = 1e6

func (p *pace) add(messages uint64, in time.Duration) {
	p.messages += float64(messages)
	p.micros += float64(in.Microseconds())
	if p.micros > paceMemory {
		p.messages *= paceMemory / p.micros
		p.micros = paceMemory
	}
}

// perMicro is never 0, so that one can divide by it.
func (p *pace) perMicro() float64 { return math.Max(1e-9, p.messages/math.Max(1, p.micros)) }

// helps reports whether consumers take more while publishers wait, and by a factor that is
// worth what the publishers lose. A publisher that is slowed a hundredfold for consumers that
// become twice as fast only waits for slow consumers.
func (r *flowRun) helps() bool {
	gain, loss := r.waiting.perMicro()/r.running.perMicro(), r.entering.perMicro()/r.waiting.perMicro()
	return gain >= flowGain && gain*gain >= loss
}

func (f *flow) weightLocked() int64 {
	return f.q.core.ReadyBytes() + int64(f.q.core.Ready())*flowMessage
}

// checkLocked is called after a publish. It notes in the transition whether the publisher has to
// wait.
func (f *flow) checkLocked(s *Transition) {
	weight := f.weightLocked()
	switch {
	case f.q.consumers.count == 0:
		f.endLocked()
		return
	case f.run != nil:
	case weight < flowJoin:
		return
	default:
		f.run = &flowRun{floor: weight, backoff: flowBackoffMin}
		f.measureLocked(s.Now)
	}
	r := f.run
	r.floor = min(r.floor, weight)
	if r.pause != nil {
		f.judgePauseLocked(s.Now)
	}
	if !s.paced || !r.proven && !s.tries {
		return
	}
	if r.pause == nil {
		if s.Now < r.freeUntil || weight <= r.floor+f.q.env.pauses.enough() {
			return
		}
		f.beginPauseLocked(s.Now, weight)
	}
	s.crowded = append(s.crowded, f.q)
}

// measureLocked starts a measurement.
func (f *flow) measureLocked(now deadline.Instant) {
	r := f.run
	r.since, r.taken, r.published = now, f.q.counters.toConsumers(), f.q.counters.published
	r.others = f.q.env.pauses.total(now)
}

func (f *flow) beginPauseLocked(now deadline.Instant, weight int64) {
	r, pauses := f.run, &f.q.env.pauses
	ran := now.Sub(r.since)
	if r.running.micros == 0 || flowClean*(pauses.total(now)-r.others) <= ran {
		r.running.add(f.q.counters.toConsumers()-r.taken, ran)
		r.entering.add(f.q.counters.published-r.published, ran)
	}
	r.pause = &flowPause{over: make(chan struct{}), since: now, weight: weight}
	pauses.begin(now)
	f.measureLocked(now)
}

// judgePauseLocked finds out whether a pause helps, and ends it if it does not or has lasted too
// long.
func (f *flow) judgePauseLocked(now deadline.Instant) {
	r := f.run
	lasts := now.Sub(r.pause.since)
	if lasts < flowTrial {
		return
	}
	r.waiting.add(f.q.counters.toConsumers()-r.taken, now.Sub(r.since))
	f.measureLocked(now)
	if !r.helps() || lasts >= flowLongest {
		f.endPauseLocked(now)
	}
}

// relieveLocked is called after messages have left. It ends a pause when consumers have taken
// enough.
func (f *flow) relieveLocked(now deadline.Instant) {
	if r := f.run; r != nil && r.pause != nil && f.weightLocked() <= r.floor+flowLow {
		f.endPauseLocked(now)
	}
}

// endPauseLocked judges a pause and lets publishers go on.
func (f *flow) endPauseLocked(now deadline.Instant) {
	r, weight := f.run, f.weightLocked()
	r.waiting.add(f.q.counters.toConsumers()-r.taken, now.Sub(r.since))
	if r.proven = r.helps(); r.proven {
		r.backoff = max(flowBackoffMin, r.backoff/2)
		r.floor = max(0, r.floor-max(0, r.pause.weight-weight)/flowDecay)
	} else {
		r.freeUntil, r.floor = now.Add(r.backoff), weight
		r.backoff = min(flowBackoffMax, 2*r.backoff)
	}
	r.pause.vain = !r.proven
	f.resumeLocked(now)
}

// resumeLocked lets publishers go on after a pause.
func (f *flow) resumeLocked(now deadline.Instant) {
	close(f.run.pause.over)
	f.run.pause = nil
	f.q.env.pauses.end(now)
	f.measureLocked(now)
}

// endLocked forgets what was measured, and ends a pause.
func (f *flow) endLocked() {
	if f.run != nil && f.run.pause != nil {
		f.resumeLocked(f.q.env.Clock.Now())
	}
	f.run = nil
}

// join returns the pause that the queue's publishers are in, nil if there is none. A caller that
// gets one has to leave it.
func (f *flow) join() *flowPause {
	f.q.mu.Lock()
	defer f.q.mu.Unlock()
	if f.run == nil || f.run.pause == nil {
		return nil
	}
	f.run.pause.waiters++
	return f.run.pause
}

// leave gives up waiting for a pause, and ends it if nobody else waits.
func (f *flow) leave(p *flowPause) {
	f.q.mu.Lock()
	defer f.q.mu.Unlock()
	if p.waiters--; p.waiters == 0 && f.run != nil && f.run.pause == p {
		f.resumeLocked(f.q.env.Clock.Now())
	}
}

// check is called now and then by a publisher that waits for the end of a pause.
func (f *flow) check(p *flowPause) {
	f.q.mu.Lock()
	defer f.q.mu.Unlock()
	switch {
	case f.run == nil || f.run.pause != p:
	case f.q.deleted || f.q.consumers.count == 0:
		f.endLocked()
	default:
		f.judgePauseLocked(f.q.env.Clock.Now())
	}
}

// flowPauses sums up the pauses of all queues, which share the processors.
type flowPauses struct {
	mu     sync.Mutex       // leaf
	queues int              // whose publishers wait
	since  deadline.Instant // when the first of them began to wait
	before time.Duration    // how long any waited before that
}

// enough is how much a queue may grow before its publishers pause.
func (p *flowPauses) enough() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues > 0 {
		return flowJoin
	}
	return flowHigh
}

// total is how long publishers of any queue have waited so far.
func (p *flowPauses) total(now deadline.Instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues > 0 {
		return p.before + now.Sub(p.since)
	}
	return p.before
}

func (p *flowPauses) begin(now deadline.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues++; p.queues == 1 {
		p.since = now
	}
}

func (p *flowPauses) end(now deadline.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues--; p.queues == 0 {
		p.before += now.Sub(p.since)
	}
}
