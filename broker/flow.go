package broker

import (
	"math"
	"time"
)

// flow slows the publishers of one queue down while its consumers lack processor time
// (RabbitMQ: Flow Control). A publisher at full speed keeps its connection's reader runnable
// all the time. With as many of them as there are processors, acks stay unread and deliveries
// unwritten for tens of milliseconds: the consumers could take more, and the queue grows.
//
// When the ready messages have grown by flowHigh, publishers pause before they read on,
// until most of that is gone. Whether that helps is measured: consumers that take clearly more
// during a pause lacked the processor. Consumers that do not are slow by themselves (their
// prefetch is used up, or they do not read). Then publishers run free, but for a try now and then
// that becomes ever more seldom. Two things were tried and are not enough: asking whether
// consumers have credit (the starved have none either, since their acks are not read), and
// yielding the processor, which readers do (sixteen publishers take sixteen turns to the
// consumer's one).
//
// What was in the queue before does not count: publishers keep to the pace of the consumers,
// a little below it, and do not wait until a deep queue is empty. A pause lasts for flowLongest
// at most, so nothing hangs on it.
//
// Guarded by the queue's mu. A queue has one while it has consumers, from the first publish
// that leaves flowJoin ready until it is tidied.
type flow struct {
	floor int64      // weight that publishers need not wait for
	pause *flowPause // nil: publishers run

	// Of the present run or pause, since it began or was judged last:
	since            int64 // Unix µs
	taken, published uint64
	others           int64 // crowds.pausedFor then

	running, waiting pace // of the consumers, while publishers run and while they wait
	entering         pace // of the publishers, while they run
	proven           bool // the last pause helped
	freeUntil        int64
	backoff          int64 // µs
}

const (
	// flowMessage is what a message weighs beside its body: small ones cost time, too.
	flowMessage = 256
	// flowHigh is by how much a queue may grow before its publishers pause, flowJoin the same
	// while those of another do, flowLow down to what: 47,000, 18,000 and 12,000 messages
	// of 100 octets; 16, 6 and 4 of 1 MiB.
	flowHigh, flowJoin, flowLow = 16 << 20, 6 << 20, 4 << 20
	// flowPatience is how long a pause is tried before it is judged, flowLongest how long
	// one that helps lasts at most, and flowTick how often it is looked at.
	flowPatience, flowLongest, flowTick = 60 * time.Millisecond, 500 * time.Millisecond, 20 * time.Millisecond
	// flowGain is by what factor consumers have to be faster during pauses, at least.
	flowGain = 1.25
	// flowBackoffMin and flowBackoffMax, in µs, are how long publishers run free after a
	// pause that did not help.
	flowBackoffMin, flowBackoffMax = 100_000, 4_000_000
	// flowClean is how many times longer than the pauses of other queues a run has to be to
	// show how consumers do while publishers run.
	flowClean = 4
	// flowDecay is the share of what was taken during a pause by which a queue that was deep
	// before becomes shallower.
	flowDecay = 8
)

// flowPause is one wait of a queue's publishers.
type flowPause struct {
	over    chan struct{} // closed at its end
	vain    bool          // it did not help; valid from then on
	since   int64         // Unix µs
	weight  int64         // of the queue then
	waiters int
}

// pace is a number of messages over some time.
type pace struct{ messages, micros float64 }

// paceMemory is how far back a pace looks, in µs.
const paceMemory = 1_000_000

func (p *pace) add(messages uint64, micros int64) {
	p.messages += float64(messages)
	p.micros += float64(micros)
	if p.micros > paceMemory {
		p.messages *= paceMemory / p.micros
		p.micros = paceMemory
	}
}

// perMicro is never 0, so that it can be divided by.
func (p *pace) perMicro() float64 { return math.Max(1e-9, p.messages/math.Max(1, p.micros)) }

// helps says whether consumers take more while publishers wait, and by a factor that is worth
// what these lose: who is slowed a hundredfold for consumers that become twice as fast waits
// for slow consumers.
func (f *flow) helps() bool {
	gain, loss := f.waiting.perMicro()/f.running.perMicro(), f.entering.perMicro()/f.waiting.perMicro()
	return gain >= flowGain && gain*gain >= loss
}

func (q *Queue) weight() int64 {
	return q.core.ReadyBytes() + int64(q.core.Ready())*flowMessage
}

// press is to follow what was published: it says in the step whether the publisher has to
// wait. Called with mu held.
func (q *Queue) press(s *step) {
	weight := q.weight()
	switch {
	case q.consumers.count == 0:
		q.endFlow()
		return
	case q.flow != nil:
	case weight < flowJoin:
		return
	default:
		q.flow = &flow{floor: weight, backoff: flowBackoffMin}
		q.mark(s.now)
	}
	f := q.flow
	f.floor = min(f.floor, weight)
	if f.pause != nil {
		q.judgePause(s.now)
	}
	if !s.paced || !f.proven && !s.tries {
		return
	}
	if f.pause == nil {
		if s.now < f.freeUntil || weight <= f.floor+q.vh.b.crowds.enough() {
			return
		}
		q.beginPause(s.now, weight)
	}
	s.crowded = append(s.crowded, q)
}

// mark begins to measure. Called with mu held.
func (q *Queue) mark(now int64) {
	f := q.flow
	f.since, f.taken, f.published = now, q.tally.takenOut(), q.tally.published
	f.others = q.vh.b.crowds.pausedFor(now)
}

// beginPause is called with mu held.
func (q *Queue) beginPause(now, weight int64) {
	f, crowds := q.flow, &q.vh.b.crowds
	ran := now - f.since
	if f.running.micros == 0 || flowClean*(crowds.pausedFor(now)-f.others) <= ran {
		f.running.add(q.tally.takenOut()-f.taken, ran)
		f.entering.add(q.tally.published-f.published, ran)
	}
	f.pause = &flowPause{over: make(chan struct{}), since: now, weight: weight}
	crowds.begin(now)
	q.mark(now)
}

// judgePause sees whether a pause helps, and ends it if it does not or has lasted for too long.
// Called with mu held, during a pause.
func (q *Queue) judgePause(now int64) {
	f := q.flow
	lasts := now - f.pause.since
	if lasts < flowPatience.Microseconds() {
		return
	}
	f.waiting.add(q.tally.takenOut()-f.taken, now-f.since)
	q.mark(now)
	if !f.helps() || lasts >= flowLongest.Microseconds() {
		q.endPause(now)
	}
}

// relieve ends a pause when consumers have taken enough. Called with mu held.
func (q *Queue) relieve(now int64) {
	if f := q.flow; f.pause != nil && q.weight() <= f.floor+flowLow {
		q.endPause(now)
	}
}

// endPause lets publishers go on. Called with mu held, during a pause.
func (q *Queue) endPause(now int64) {
	f, weight := q.flow, q.weight()
	f.waiting.add(q.tally.takenOut()-f.taken, now-f.since)
	if f.proven = f.helps(); f.proven {
		f.backoff = max(flowBackoffMin, f.backoff/2)
		f.floor = max(0, f.floor-max(0, f.pause.weight-weight)/flowDecay)
	} else {
		f.freeUntil, f.floor = now+f.backoff, weight
		f.backoff = min(flowBackoffMax, 2*f.backoff)
	}
	f.pause.vain = !f.proven
	q.letPublish(now)
}

// letPublish is called with mu held, during a pause.
func (q *Queue) letPublish(now int64) {
	close(q.flow.pause.over)
	q.flow.pause = nil
	q.vh.b.crowds.end(now)
	q.mark(now)
}

// endFlow forgets all of it. Called with mu held.
func (q *Queue) endFlow() {
	if q.flow != nil && q.flow.pause != nil {
		q.letPublish(q.vh.b.Now())
	}
	q.flow = nil
}

// join returns the pause that q's publishers are in, nil if they are in none. Who gets one is
// to leave it.
func (q *Queue) join() *flowPause {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.flow == nil || q.flow.pause == nil {
		return nil
	}
	q.flow.pause.waiters++
	return q.flow.pause
}

// leave ends a pause that nobody waits for any more.
func (q *Queue) leave(p *flowPause) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.waiters--; p.waiters == 0 && q.flow != nil && q.flow.pause == p {
		q.letPublish(q.vh.b.Now())
	}
}

// recheck looks at a pause for one who waits.
func (q *Queue) recheck(p *flowPause) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.flow == nil || q.flow.pause != p:
	case q.deleted || q.consumers.count == 0:
		q.endFlow()
	default:
		q.judgePause(q.vh.b.Now())
	}
}
