package rabbitmq

import (
	"context"
	"maps"
	"sync"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/keeper"
)

// shadowsHere are the shadows of one queue without Redis. They live as long as the process, so a keeper that is stopped and started again
// still knows the deadlines. They grow with the messages taken and shrink as their deadlines pass.
type shadowsHere struct {
	mu      sync.Mutex
	minutes map[int64][]keeper.Shadow // by Unix minute
	swept   int64
	now     func() deadline.Instant // the keeper's clock
	lasting bool                    // only Passed forgets
}

var _ keeper.Shadows = (*shadowsHere)(nil)

// Put implements keeper.Shadows.
func (p *shadowsHere) Put(shadows []keeper.Shadow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.minutes == nil {
		p.minutes = map[int64][]keeper.Shadow{}
	}
	for _, s := range shadows {
		m := s.Deadline.Time().Unix() / 60
		p.minutes[m] = append(p.minutes[m], s)
	}
	if past := p.now().Time().Unix()/60 - 1; past > p.swept && !p.lasting {
		p.swept = past
		for m := range p.minutes {
			if m < past {
				delete(p.minutes, m)
			}
		}
	}
}

// Passed implements delay.Lasting.
func (p *shadowsHere) Passed(before deadline.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.minutes, func(m int64, _ []keeper.Shadow) bool { return m < before.Time().Unix()/60 })
}

// Load implements keeper.Shadows, and forgets what it returns.
func (p *shadowsHere) Load(context.Context) (all []keeper.Shadow, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shadows := range p.minutes {
		all = append(all, shadows...)
	}
	p.minutes = nil
	return all, nil
}

// Lost implements keeper.Shadows: nothing is ever lost.
func (p *shadowsHere) Lost() <-chan struct{} { return nil }
