package node

import (
	"sync"
	"time"
)

// stalled names the parts of this process that do not respond: loops of the monitor, the store (nothing
// is committed), the server (no connection can be made or ended). It waits for their answers, but at most for answerLimit.
func (n *Node) stalled() (hangs []string) {
	if n.monitor != nil {
		for _, loop := range n.monitor.Health().Stalled {
			hangs = append(hangs, "loop "+loop)
		}
	}
	return append(hangs, stalledParts(n.probes)...)
}

// stalledParts are the names of the parts that do not answer.
func stalledParts(probes []*probe) (hangs []string) {
	var asked sync.WaitGroup
	answers := make([]bool, len(probes))
	for i := range probes {
		asked.Go(func() { answers[i] = probes[i].answers() })
	}
	asked.Wait()
	for i, ok := range answers {
		if !ok {
			hangs = append(hangs, probes[i].name)
		}
	}
	return hangs
}

// answerLimit is how long a part may take to answer before it counts as stalled.
const answerLimit = 5 * time.Second

// probe checks that one part responds, with one question at a time.
type probe struct {
	name string
	ask  func(answer func()) // may block; calls answer once

	mu      sync.Mutex
	pending chan struct{} // closed by the answer; nil: nothing has been asked
}

// answers asks, unless an answer is still pending, and waits for the answer.
func (p *probe) answers() bool {
	p.mu.Lock()
	if p.pending == nil {
		pending := make(chan struct{})
		p.pending = pending
		go p.ask(func() { close(pending) })
	}
	pending := p.pending
	p.mu.Unlock()
	limit := time.NewTimer(answerLimit)
	defer limit.Stop()
	select {
	case <-pending:
	case <-limit.C:
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == pending {
		p.pending = nil
	}
	return true
}
