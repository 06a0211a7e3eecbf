package delivery

import "time"

// flow gives the publishers of one queue credit, so that its backlog grows no faster than its
// consumers allow (RabbitMQ: Flow Control). A publisher at full speed keeps its connection's
// reader busy all the time: acks stay unread and deliveries unwritten, although the consumers
// could take more.
//
// Publishers use their credit up when the ready messages grow by flowCredit. Then they do not
// read on until consumers have given half of it back by taking messages. So publishers keep to
// the pace of the consumers. No rate is measured, and a busy machine changes nothing but the pace.
//
// Backlog is what a queue is for. So consumers that are slow themselves (their prefetch is used up,
// they do not read, or each message takes them long) hold nobody back. They are known by what they
// take: less than one message while flowSlow are published, or less than one part in flowSlow of
// the credit during a wait of flowLongest. Then publishers get new credit at once, and this is
// judged again when it is used up. A connection that consumes is never asked to wait, since its
// acks would not be read (Pacing). Nothing depends on the end of a wait.
//
// What was in the queue before its consumers came does not count. It is worked off a little at a
// time: publishers get back somewhat less than what consumers take.
type flow struct {
	q   *Queue
	run *flowRun // nil: there are no consumers, or not much has been ready since they came
}

// flowRun is what is known of a queue with consumers, until they or all messages are gone.
type flowRun struct {
	floor            int64         // weight that publishers need not wait for
	published, taken uint64        // the queue's counters when credit was last used up
	began            int64         // weight when publishers began to wait
	over             chan struct{} // closed when they may go on; nil: they do not wait
}

const (
	// flowMessage is what a message weighs besides its body: small ones cost time, too.
	flowMessage = 256
	// flowCredit is by how much a queue may grow before its publishers wait: 23,000 messages of
	// 100 octets, 8 of 1 MiB. flowBehind is when consumers are said to fall behind.
	flowCredit, flowBehind = 8 << 20, 2 << 20
	// flowReturn is by how much the floor falls each time that publishers go on.
	flowReturn = flowCredit / 16
	// flowSlow is how many times slower than publishers consumers are that hold nobody back.
	flowSlow = 16
	// flowLongest is the longest wait.
	flowLongest = 500 * time.Millisecond
)

func (f *flow) weightLocked() int64 {
	return f.q.core.ReadyBytes() + int64(f.q.core.Ready())*flowMessage
}

// chargeLocked is called after a publish. It notes in the transition whether consumers fall
// behind, and whether the publisher has to wait.
func (f *flow) chargeLocked(s *Transition) {
	if !s.paced || f.q.consumers.count == 0 {
		return
	}
	weight := f.weightLocked()
	if f.run == nil {
		if weight > flowBehind {
			f.run = &flowRun{floor: weight}
		}
		return
	}
	r := f.run
	r.floor = min(r.floor, weight)
	s.behind = s.behind || weight > r.floor+flowBehind
	if r.over == nil {
		if weight <= r.floor+flowCredit {
			return
		}
		if f.slowLocked() {
			f.grantLocked()
			return
		}
		f.markLocked()
		r.over, r.began = make(chan struct{}), weight
	}
	s.crowded = append(s.crowded, f.q)
}

// grantLocked gives publishers new credit.
func (f *flow) grantLocked() {
	f.run.floor = f.weightLocked()
	f.markLocked()
}

func (f *flow) markLocked() {
	f.run.published, f.run.taken = f.q.counters.published, f.q.counters.toConsumers()
}

// slowLocked reports whether consumers have been slow since credit was last used up.
func (f *flow) slowLocked() bool {
	c := &f.q.counters
	return (c.toConsumers()-f.run.taken)*flowSlow < c.published-f.run.published
}

// creditLocked is called after messages have left. Publishers that wait go on once they have
// credit.
func (f *flow) creditLocked() {
	r := f.run
	if r == nil || r.over == nil {
		return
	}
	weight := f.weightLocked()
	if r.floor = min(r.floor, weight); weight <= r.floor+flowCredit/2 {
		r.floor = max(0, r.floor-flowReturn)
		r.resume()
	}
}

// resume lets publishers go on, if any wait.
func (r *flowRun) resume() {
	if r.over != nil {
		close(r.over)
		r.over = nil
	}
}

// endLocked is called when the queue has lost its last consumer, or is empty and unused.
func (f *flow) endLocked() {
	if f.run != nil {
		f.run.resume()
		f.run = nil
	}
}

// crowded returns what is closed at the end of the wait that the queue's publishers are in; nil:
// they do not wait.
func (f *flow) crowded() chan struct{} {
	f.q.mu.Lock()
	defer f.q.mu.Unlock()
	if f.run == nil {
		return nil
	}
	return f.run.over
}

// endWait ends a wait that has lasted for flowLongest. Consumers have taken a part of what they have
// to take, so each publisher goes on once and then waits again; or they were too slow.
func (f *flow) endWait(over chan struct{}) {
	f.q.mu.Lock()
	defer f.q.mu.Unlock()
	if f.run == nil || f.run.over != over {
		return
	}
	if f.weightLocked() > f.run.began-flowCredit/flowSlow {
		f.grantLocked()
	}
	f.run.resume()
}

// Pacing is how a publishing goroutine follows the flow of the queues that it publishes to.
type Pacing struct {
	On      bool     // it can be asked to wait
	Behind  bool     // consumers of a queue that it last published to fall behind
	Crowded []*Queue // whose consumers it is to wait for
}

// Before prepares a transition that will publish.
func (p *Pacing) Before(s *Transition) { s.paced = p.On }

// After takes over the result of the transition that published.
func (p *Pacing) After(s *Transition) {
	p.Behind = s.behind
	p.Crowded = append(p.Crowded, s.crowded...)
}

// Await waits until there is credit for all crowded queues, for flowLongest at most, or until done
// is closed.
func (p *Pacing) Await(done <-chan struct{}) {
	timer := time.NewTimer(flowLongest)
	defer timer.Stop()
	for _, q := range p.Crowded {
		over := q.flow.crowded()
		if over == nil {
			continue
		}
		select {
		case <-over:
		case <-timer.C:
			q.flow.endWait(over)
			return
		case <-done:
			return
		}
	}
}
