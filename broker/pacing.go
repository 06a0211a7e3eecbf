package broker

import (
	"sync"
	"time"
)

// pacing is what a publishing goroutine has to do with the flow of the queues that it
// publishes to.
type pacing struct {
	on      bool
	crowded []*Queue // that it is to wait for
	vain    int64    // Unix µs by which its pauses in vain are made up for
}

const (
	// vainShare is what part of its time a publisher may pause in vain, over all queues: one
	// in so many. vainBurst is how far, in µs, it may be ahead of that.
	vainShare = 40
	vainBurst = 3 * vainShare * int64(flowPatience/time.Microsecond)
)

// tell has a step know what its publisher does about crowded queues.
func (p *pacing) tell(s *step) {
	s.paced = p.on
	s.tries = p.on && p.vain-s.b.Now() < vainBurst
}

// heed takes over what follows for the publisher from the step that published.
func (p *pacing) heed(s *step) {
	p.crowded = append(p.crowded, s.crowded...)
}

// Pace says whether what is published with these rights is followed by AwaitConsumers from now
// on. It is not at first. One that stops owes no wait, and leaves nobody else in one.
func (r *Rights) Pace(on bool) {
	p := &r.pacing
	if p.on = on; on {
		return
	}
	for _, q := range p.crowded {
		if paused := q.join(); paused != nil {
			q.leave(paused)
		}
	}
	p.crowded = nil
}

// Crowded says whether AwaitConsumers would wait.
func (r *Rights) Crowded() bool { return len(r.pacing.crowded) > 0 }

// AwaitConsumers has the publisher wait while the consumers of what it has published to
// need the processor (flow): for some milliseconds as a rule, for flowLongest at most, or
// until done is closed. No lock may be held.
func (r *Rights) AwaitConsumers(done <-chan struct{}) {
	p := &r.pacing
	if len(p.crowded) > 0 {
		r.await(done)
	}
	p.crowded = nil
}

func (r *Rights) await(done <-chan struct{}) {
	ticks := time.NewTicker(flowTick)
	defer ticks.Stop()
	until := r.b.Now() + flowLongest.Microseconds()
	for _, q := range r.pacing.crowded {
		p := q.join()
		if p == nil {
			continue
		}
		more := r.pacing.wait(q, p, ticks.C, done, until)
		q.leave(p)
		if !more {
			return
		}
	}
}

// wait waits for the end of one pause; false when there is no more time.
func (a *pacing) wait(q *Queue, p *flowPause, ticks <-chan time.Time, done <-chan struct{}, until int64) bool {
	now := q.vh.b.Now
	for began := now(); now() < until; {
		select {
		case <-p.over:
			if p.vain {
				a.vain = max(a.vain, now()) + vainShare*(now()-began)
			}
			return true
		case <-ticks:
			q.recheck(p)
		case <-done:
			return false
		}
	}
	return false
}

// crowds is what queues know of one another's flow: they share the processors.
type crowds struct {
	mu     sync.Mutex // leaf
	pauses int        // queues whose publishers wait
	since  int64      // Unix µs: some have, from then on
	before int64      // µs for which some had until then
}

// enough is by how much a queue may grow.
func (c *crowds) enough() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses > 0 {
		return flowJoin
	}
	return flowHigh
}

// pausedFor is for how many µs publishers of any queue have waited so far.
func (c *crowds) pausedFor(now int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses > 0 {
		return c.before + now - c.since
	}
	return c.before
}

func (c *crowds) begin(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses++; c.pauses == 1 {
		c.since = now
	}
}

func (c *crowds) end(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses--; c.pauses == 0 {
		c.before += now - c.since
	}
}
