package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/scheduler"
)

const (
	// feedBatch is how many events are read from the primary at a time, at most.
	feedBatch = 1024
	// feedBuffers is how many such batches there are: one is read into while
	// another is worked on.
	feedBuffers = 2
)

// feedEvents is one batch on its way from read to ingest and back.
type feedEvents struct {
	events []deadline.Event
	n      int
}

// read takes batches off the primary's feed. It waits there while nothing happens, which is
// why it is a loop of its own.
func (m *Scheduler) read(ctx context.Context, l *monitor.Loop) error {
	for ctx.Err() == nil {
		l.Tick()
		if err := m.readBatch(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (m *Scheduler) readBatch(ctx context.Context, l *monitor.Loop) error {
	var b *feedEvents
	l.Idle(true)
	select {
	case b = <-m.free:
	case <-ctx.Done():
		return nil
	}
	handedOn := false
	defer func() {
		if !handedOn {
			m.free <- b
		}
	}()
	n, lagged, err := m.primary.Events(ctx, b.events)
	l.Idle(false)
	if lagged {
		m.metrics.lagged.Inc()
		m.requestReconcile()
	}
	if err != nil {
		return fmt.Errorf("schedule: read the feed: %w", err)
	}
	if n > 0 {
		b.n, handedOn = n, true
		m.arrived <- b // there is room for every buffer
	}
	return nil
}

// ingest keeps the index and the schedule in step with the primary.
type ingest struct {
	m      *Scheduler
	window window
	urgent []deadline.Ref // of one batch: cannot wait
	gone   []deadline.Ref // of one batch: have left their queue or lost that deadline
	again  []deadline.Ref // of one batch: have another deadline
}

func (m *Scheduler) ingest(ctx context.Context, l *monitor.Loop) error {
	in := &ingest{
		m:      m,
		window: window{span: m.options.WriteWindow},
	}
	timer := time.NewTimer(monitor.Heartbeat)
	defer timer.Stop()
	for {
		l.Tick()
		select {
		case b := <-m.arrived:
			if err := in.batch(ctx, b); err != nil {
				return err
			}
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		wait, err := in.open(ctx)
		if err != nil {
			return err
		}
		timer.Reset(wait)
	}
}

// batch works through b and gives it back.
func (in *ingest) batch(ctx context.Context, b *feedEvents) error {
	defer func() { in.m.free <- b }()
	in.urgent, in.gone, in.again = in.urgent[:0], in.gone[:0], in.again[:0]
	nowAt := in.m.primary.Now()
	for i := range b.events[:b.n] {
		e := &b.events[i]
		switch {
		case e.Kind == deadline.Enqueued && in.window.takes(e.Ref.Deadline, nowAt):
			in.window.push(e.Ref, nowAt)
		case e.Kind == deadline.Enqueued:
			in.urgent = append(in.urgent, e.Ref)
		case e.Kind == deadline.Changed:
			in.again = append(in.again, e.Ref)
		default:
			in.gone = append(in.gone, e.Ref)
		}
	}
	if err := in.m.admit(ctx, in.urgent, false); err != nil {
		return err
	}
	// After admit: a removal is final, except for messages that got an old deadline back.
	if err := in.m.forget(ctx, in.gone); err != nil {
		return err
	}
	return in.m.admit(ctx, in.again, true)
}

// open admits the shadows that have waited long enough, and returns how long the next one
// still has to.
func (in *ingest) open(ctx context.Context) (time.Duration, error) {
	nowAt := in.m.primary.Now()
	for {
		waited := in.window.pop(nowAt)
		if len(waited) == 0 {
			break
		}
		if err := in.m.admit(ctx, waited, false); err != nil {
			return 0, err
		}
		if in.m.redis == nil { // which writes them later
			in.window.reuse(waited)
		}
	}
	in.m.index.window.Store(int64(in.window.length))
	nextAt := in.window.nextAt()
	if nextAt == 0 {
		return deadline.UntilSecond(time.Now()), nil
	}
	return max(nextAt.Sub(nowAt), time.Microsecond), nil
}

// admit adds those shadows whose messages are still queued with that deadline. It uses
// shadows as scratch space. again is true if they may have existed before and been removed.
func (m *Scheduler) admit(ctx context.Context, shadows []deadline.Ref, again bool) error {
	if shadows = valid(shadows); len(shadows) == 0 {
		return nil
	}
	var fed []deadline.Ref
	if m.redis != nil && m.redis.every && !again {
		fed = slices.Clone(shadows)
	}
	kept := m.primary.Track(shadows)
	m.redis.record(fed, kept)
	m.metrics.spared.Add(float64(len(shadows) - len(kept)))
	if len(kept) == 0 {
		return nil
	}
	if m.redis != nil {
		if err := m.redis.add(ctx, kept, again); err != nil {
			return err
		}
	}
	if err := m.index.Apply(ctx, kept, nil); err != nil {
		return fmt.Errorf("schedule: index: %w", err)
	}
	m.wakeFire.wakeFor(earliest(kept))
	return nil
}

// forget drops shadows whose message has left its queue.
// It uses shadows as scratch space.
func (m *Scheduler) forget(ctx context.Context, shadows []deadline.Ref) error {
	if shadows = valid(shadows); len(shadows) == 0 {
		return nil
	}
	if m.redis != nil {
		if err := m.redis.remove(ctx, shadows); err != nil {
			return err
		}
	}
	if err := m.index.Apply(ctx, nil, shadows); err != nil {
		return fmt.Errorf("schedule: index: %w", err)
	}
	return nil
}

// earliest is the first deadline of a batch, 0 if there is none.
func earliest(shadows []deadline.Ref) (at deadline.Instant) {
	for i := range shadows {
		at = earlier(at, shadows[i].Deadline)
	}
	return at
}

// valid keeps, in place, the deadlines a schedule can hold. The others are more than
// two centuries away; the primary itself will find them.
func valid(shadows []deadline.Ref) []deadline.Ref {
	return slices.DeleteFunc(shadows, func(s deadline.Ref) bool {
		return s.Deadline < 1 || s.Deadline > scheduler.MaxDeadline
	})
}
