package delivery

import (
	"cmp"
	"time"
)

// flow gives the publishers of one queue credit, so that its backlog grows no faster than its
// consumers allow (RabbitMQ: Flow Control). A publisher at full speed keeps its connection's
// reader busy all the time: acks stay unread and deliveries unwritten, although the consumers
// could take more.
//
// Publishers use their credit up when the ready messages grow by flowCredit. Then they do not
// read on until consumers have given half of it back by taking messages. So publishers keep to
// the pace of the consumers. No rate is measured, and a busy machine changes nothing but the pace.
//
// Backlog is what a queue is for. So consumers that are slow themselves, or stuck, hold nobody back
// for long: if they have taken next to nothing in a wait of flowLongest, publishers get new credit,
// twice as much as the last time. When it is used up they wait again. What consumers take while
// publishers run says nothing about them: they may have no processor then. In a wait they have it.
//
// A connection that consumes is never asked to wait, since its acks would not be read (Pacing).
//
// What was in the queue before its consumers came does not count. It is worked off a little at a
// time: publishers get back somewhat less than what consumers take.
type flow struct {
	q   *Queue
	run *flowRun // nil: there are no consumers, or not much has been ready since they came
}

// flowRun is what is known of a queue with consumers, until they or all messages are gone.
type flowRun struct {
	floor  int64         // weight that publishers need not wait for
	credit int64         // by how much the queue may grow above it; more than flowCredit after a wait for nothing
	taken  uint64        // the queue's counter when publishers began to wait
	over   chan struct{} // closed when they may go on; nil: they do not wait
}

const (
	// flowMessage is what a message weighs besides its body: small ones cost time, too.
	flowMessage = 256
	// flowCredit is by how much a queue may grow before its publishers wait: 23,000 messages of
	// 100 octets, 8 of 1 MiB. flowBehind is when consumers are said to fall behind.
	flowCredit, flowBehind = 8 << 20, 2 << 20
	// flowReturn is by how much the floor falls each time that publishers go on.
	flowReturn = flowCredit / 16
	// flowLongest is the longest wait. Consumers that take less than flowFew messages in it, and do
	// not give enough credit back, are slow.
	flowLongest, flowFew = 500 * time.Millisecond, 2048
)

func (f *flow) weightLocked() int64 {
	return f.q.core.Ready.Bytes + int64(f.q.core.Ready.Count)*flowMessage
}

// chargeLocked is called after a publish. It notes in the transition whether consumers fall
// behind, and whether the publisher has to wait.
func (f *flow) chargeLocked(s *Transition) {
	if !s.Paced || f.q.consumers.count == 0 {
		return
	}
	weight := f.weightLocked()
	if f.run == nil {
		if weight > flowBehind {
			f.run = &flowRun{floor: weight, credit: flowCredit}
		}
		return
	}
	r := f.run
	r.floor = min(r.floor, weight)
	s.behind = s.behind || weight > r.floor+flowBehind
	if r.over == nil {
		if weight <= r.floor+r.credit {
			return
		}
		r.floor, r.taken, r.over = weight-flowCredit, f.q.counters.Delivered+f.q.counters.DeliveredNoAck, make(chan struct{})
	}
	s.crowded = append(s.crowded, f.q)
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
		r.floor, r.credit = max(0, r.floor-flowReturn), flowCredit
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
// to take, so each publisher goes on once and then waits again; or they took next to nothing.
func (f *flow) endWait(over chan struct{}) {
	f.q.mu.Lock()
	defer f.q.mu.Unlock()
	r := f.run
	if r == nil || r.over != over {
		return
	}
	if f.q.counters.Delivered+f.q.counters.DeliveredNoAck-r.taken < flowFew {
		r.floor, r.credit = f.weightLocked(), 2*r.credit
	} else {
		r.credit = flowCredit
	}
	r.resume()
}

// Pacing is how a publishing goroutine follows the flow of the queues that it publishes to.
type Pacing struct {
	On      bool     // it can be asked to wait: Transition.Paced of its publishes
	Behind  bool     // consumers of a queue that it last published to fall behind
	Crowded []*Queue // whose consumers it is to wait for
	dying   *Lines   // in which what was published may become letters; nil: in none
}

// After takes over the result of the transition that published.
func (p *Pacing) After(s *Transition) {
	p.Behind = s.behind
	p.Crowded = append(p.Crowded, s.crowded...)
	p.dying = cmp.Or(s.dying, p.dying)
}

// AwaitLetters waits while too many dead letters are on their way in the virtual host, if what was published may become more of
// them: for feedPatience at most, however much that was. No lock and no turn may be held.
func (p *Pacing) AwaitLetters() {
	if l := p.dying; l != nil {
		p.dying = nil
		patiently(func() bool { return l.Waiting.Load() > lettersAhead })
	}
}

// Await waits until there is credit for all crowded queues, for flowLongest at most, or until done
// is closed.
func (p *Pacing) Await(done <-chan struct{}) {
	timer := time.NewTimer(flowLongest)
	defer timer.Stop()
	overs := make([]chan struct{}, len(p.Crowded))
	for i, q := range p.Crowded {
		overs[i] = q.flow.crowded()
	}
	for i, over := range overs {
		if over == nil {
			continue
		}
		select {
		case <-over:
		case <-timer.C:
			for j := i; j < len(overs); j++ { // it has waited for each of them
				p.Crowded[j].flow.endWait(overs[j])
			}
			return
		case <-done:
			return
		}
	}
}
