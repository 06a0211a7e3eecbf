package keeper

import (
	"context"
	"sync"

	"curfew/broker/deadline"
)

// InProcess are Shadows that live as long as the process: deadlines survive a Keeper that is stopped and started
// again. They grow by the messages taken and shrink as their deadlines pass. The zero value is ready; it is safe for
// concurrent use, by one Keeper at a time.
type InProcess struct {
	mu      sync.Mutex
	minutes map[int64][]Shadow // by Unix minute
	swept   int64
	// Now is the clock of the Keeper; nil keeps shadows until they are loaded.
	Now func() deadline.Instant
}

var _ Shadows = (*InProcess)(nil)

// Put implements Shadows.
func (p *InProcess) Put(shadows []Shadow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.minutes == nil {
		p.minutes = map[int64][]Shadow{}
	}
	for _, s := range shadows {
		m := s.Deadline.Time().Unix() / 60
		p.minutes[m] = append(p.minutes[m], s)
	}
	if p.Now == nil {
		return
	}
	if past := p.Now().Time().Unix()/60 - 1; past > p.swept {
		p.swept = past
		for m := range p.minutes {
			if m < past {
				delete(p.minutes, m)
			}
		}
	}
}

// Load implements Shadows, and forgets what it returns.
func (p *InProcess) Load(context.Context) (all []Shadow, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shadows := range p.minutes {
		all = append(all, shadows...)
	}
	p.minutes = nil
	return all, nil
}

// Lost implements Shadows: nothing is.
func (p *InProcess) Lost() <-chan struct{} { return nil }
