package schedule

import (
	"context"
	"sync"

	"curfew/broker/deadline"
	"curfew/monitor"
)

// stepper does, one after the other, what the loops read, ingest, fire and reconcile do side by side (Options.Stepped).
type stepper struct {
	mu     sync.Mutex
	ingest ingest
	firing *firing
	filled bool            // the index has been filled from a snapshot
	ended  context.Context // it has: what asks the primary for events with it gets those that are there
}

// addStepper takes the place of the loops.
func (m *Scheduler) addStepper() {
	ended, end := context.WithCancel(context.Background())
	end()
	m.stepper = &stepper{ingest: ingest{m: m, window: window{span: m.options.WriteWindow}}, firing: &firing{m: m}, ended: ended}
	m.firing = m.AddLoop("fire", func(ctx context.Context, l *monitor.Loop) error {
		l.Idle(true)
		<-ctx.Done()
		return nil
	})
}

// Step reads every event of the primary and fires every deadline that has come, until there is no more of either, and
// reports whether it fired any. nextAt is when to call it again, and firstAt the next deadline, without those of messages
// that consumers hold past theirs; 0: never, none. Only with Options.Stepped. Safe for concurrent use.
func (m *Scheduler) Step(ctx context.Context) (fired bool, nextAt, firstAt deadline.Instant, err error) {
	s := m.stepper
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		n, err := s.read(ctx)
		if err != nil {
			return fired, 0, 0, err
		}
		if nextAt, err = s.firing.round(ctx); err != nil {
			return fired, 0, 0, err
		}
		s.firing.restsAt = 0
		due := nextAt != 0 && nextAt <= m.primary.Now()
		if fired = fired || due; n == 0 && !due {
			return fired, nextAt, m.index.First(), nil
		}
	}
}

// read takes the events that are there and brings the index up to date. It returns how many there were.
func (s *stepper) read(ctx context.Context) (all int, err error) {
	m := s.ingest.m
	for {
		b := <-m.free
		n, lagged, _ := m.primary.Events(s.ended, b.events)
		if b.n = n; n == 0 {
			m.free <- b
		} else if err := s.ingest.batch(ctx, b); err != nil {
			return all, err
		}
		if lagged || !s.filled {
			if err := m.fill(ctx, func() {}); err != nil {
				return all, err
			}
			s.filled = true
		}
		if all += n; n == 0 && !lagged {
			return all, ctx.Err()
		}
	}
}
