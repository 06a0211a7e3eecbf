package delivery

import (
	"time"

	"curfew/broker/deadline"
)

// Pacing is how a publishing goroutine follows the flow of the queues that it publishes to.
type Pacing struct {
	On      bool
	Crowded []*Queue         // whose consumers it is to wait for
	vain    deadline.Instant // when its useless pauses will be made up for
}

const (
	// vainShare is the part, one in vainShare, of its time that a publisher may pause in vain,
	// over all queues. vainBurst is how far it may be ahead of that: about three pauses.
	vainShare = 40
	vainBurst = 3 * vainShare * flowTrial
)

// Before notes in a transition that will publish whether its publisher can be asked to wait.
func (p *Pacing) Before(s *Transition) {
	s.paced = p.On
	s.tries = p.On && p.vain.Sub(s.Env.Clock.Now()) < vainBurst
}

// After takes over the crowded queues from the transition that published.
func (p *Pacing) After(s *Transition) {
	p.Crowded = append(p.Crowded, s.crowded...)
}

// Stop is for a publisher that no longer waits: a pause that only it was waiting for ends.
func (p *Pacing) Stop() {
	p.On = false
	for _, q := range p.Crowded {
		if pause := q.flow.join(); pause != nil {
			q.flow.leave(pause)
		}
	}
	p.Crowded = nil
}

// Await waits for the consumers of the crowded queues.
func (p *Pacing) Await(e *Env, done <-chan struct{}) {
	ticks := time.NewTicker(flowTick)
	defer ticks.Stop()
	until := e.Clock.Now().Add(flowLongest)
	for _, q := range p.Crowded {
		pause := q.flow.join()
		if pause == nil {
			continue
		}
		more := p.wait(q, pause, ticks.C, done, until)
		q.flow.leave(pause)
		if !more {
			return
		}
	}
}

// wait waits for the end of one pause; false when the time is up.
func (p *Pacing) wait(q *Queue, pause *flowPause, ticks <-chan time.Time, done <-chan struct{}, until deadline.Instant) bool {
	now := q.env.Clock.Now
	for began := now(); now() < until; {
		select {
		case <-pause.over:
			if pause.vain {
				p.vain = max(p.vain, now()).Add(vainShare * now().Sub(began))
			}
			return true
		case <-ticks:
			q.flow.check(pause)
		case <-done:
			return false
		}
	}
	return false
}
