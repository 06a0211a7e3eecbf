// Package embedded makes a broker in this process a monitor's primary.
//
// It translates and does nothing else: whatever it promises, the broker promises.
package embedded

import (
	"context"
	"sync"
	"time"

	"curfew/broker"
	"curfew/monitor"
	"curfew/scheduler"
)

// Broker is what of a *broker.Broker is used.
type Broker interface {
	DeadlineEvents(ctx context.Context, buf []broker.DeadlineEvent) (n int, lagged bool, err error)
	TrackDeadlines(refs []broker.MessageRef) []broker.MessageRef
	Expire(refs []broker.MessageRef, path broker.Path, out []broker.ExpireResult) []broker.ExpireResult
	WatchExpiries(fn func([]broker.Expiry))
	Deadlines(ctx context.Context, fn func([]broker.MessageRef) error) error
	QueueName(id uint64) (vhost, name string, ok bool)
	Survey(samples int, fn func(*broker.Survey))
	TimeToLive(ref broker.MessageRef) (ttlMillis int64, ok bool)
	Now() int64
	ClockOffset() time.Duration
}

// Primary is a broker as a monitor sees it. Safe for concurrent use.
type Primary struct {
	broker  Broker
	events  []broker.DeadlineEvent // of Events, which has one caller
	scratch sync.Pool              // *scratch
}

var _ monitor.Primary = (*Primary)(nil)

// scratch is what one call works with.
type scratch struct {
	refs    []broker.MessageRef
	results []broker.ExpireResult
	shadows []scheduler.Shadow
}

// New returns the primary that b is.
func New(b Broker) *Primary {
	return &Primary{broker: b, scratch: sync.Pool{New: func() any { return new(scratch) }}}
}

// Events implements monitor.Primary.
func (p *Primary) Events(ctx context.Context, buf []monitor.Event) (n int, lagged bool, err error) {
	if len(p.events) < len(buf) {
		p.events = make([]broker.DeadlineEvent, len(buf))
	}
	n, lagged, err = p.broker.DeadlineEvents(ctx, p.events[:len(buf)])
	for i := range p.events[:n] {
		e := &p.events[i]
		buf[i] = monitor.Event{
			Shadow: scheduler.Shadow(e.Ref),
			Kind:   eventKind(e.Kind),
		}
	}
	return n, lagged, err
}

// Track implements monitor.Primary.
func (p *Primary) Track(shadows []scheduler.Shadow) []scheduler.Shadow {
	s := p.scratch.Get().(*scratch)
	defer p.scratch.Put(s)
	s.ask(shadows)
	kept := p.broker.TrackDeadlines(s.refs)
	for i, r := range kept {
		shadows[i] = scheduler.Shadow(r)
	}
	return shadows[:len(kept)]
}

// Expire implements monitor.Primary.
func (p *Primary) Expire(shadows []scheduler.Shadow, path monitor.Path, out []monitor.Result) []monitor.Result {
	s := p.scratch.Get().(*scratch)
	defer p.scratch.Put(s)
	s.ask(shadows)
	s.results = p.broker.Expire(s.refs, brokerPath(path), s.results[:0])
	for i := range s.results {
		r := &s.results[i]
		out = append(out, monitor.Result{At: r.At, Outcome: outcome(r.Outcome)})
	}
	return out
}

// Expiries implements monitor.Primary.
func (p *Primary) Expiries(fn func([]monitor.Expiry)) {
	scratch := sync.Pool{New: func() any { return new([]monitor.Expiry) }}
	p.broker.WatchExpiries(func(expired []broker.Expiry) {
		told := scratch.Get().(*[]monitor.Expiry)
		*told = (*told)[:0]
		for i := range expired {
			e := &expired[i]
			*told = append(*told, monitor.Expiry{Shadow: scheduler.Shadow(e.Ref), VHost: e.VHost, Queue: e.Queue, At: e.At, Action: action(e.Action), Path: path(e.Path)})
		}
		fn(*told)
		scratch.Put(told)
	})
}

// Snapshot implements monitor.Primary.
func (p *Primary) Snapshot(ctx context.Context, fn func(page []scheduler.Shadow) error) error {
	s := p.scratch.Get().(*scratch)
	defer p.scratch.Put(s)
	return p.broker.Deadlines(ctx, func(refs []broker.MessageRef) error {
		s.shadows = s.shadows[:0]
		for _, r := range refs {
			s.shadows = append(s.shadows, scheduler.Shadow(r))
		}
		return fn(s.shadows)
	})
}

// QueueName implements monitor.Primary.
func (p *Primary) QueueName(queue uint64) (vhost, name string, ok bool) {
	return p.broker.QueueName(queue)
}

// Now implements monitor.Primary.
func (p *Primary) Now() int64 { return p.broker.Now() }

// ClockOffset implements monitor.Primary.
func (p *Primary) ClockOffset() time.Duration { return p.broker.ClockOffset() }

func (s *scratch) ask(shadows []scheduler.Shadow) {
	s.refs = s.refs[:0]
	for _, shadow := range shadows {
		s.refs = append(s.refs, broker.MessageRef(shadow))
	}
}

func eventKind(k broker.EventKind) monitor.EventKind {
	switch k {
	case broker.DeadlineEnqueued:
		return monitor.Enqueued
	case broker.DeadlineRescheduled:
		return monitor.Rescheduled
	default:
		return monitor.Settled
	}
}

func action(a broker.Action) monitor.Action {
	switch a {
	case broker.DeadLettered, broker.Retained: // it goes there as soon as it is taken
		return monitor.DeadLettered
	case broker.Parked:
		return monitor.Parked
	default:
		return monitor.Dropped
	}
}

// path is the broker's word for who noticed in the monitor's.
func path(p broker.Path) monitor.Path {
	return [...]monitor.Path{
		broker.Lazy: monitor.Lazy, broker.Requeued: monitor.Requeue, broker.Eager: monitor.Eager, broker.Index: monitor.Index,
		broker.Stalled: monitor.Stalled, broker.Manual: monitor.Manual, broker.Scheduled: monitor.Scheduled,
	}[p]
}

// brokerPath is path for those that a monitor asks by.
func brokerPath(p monitor.Path) broker.Path {
	switch p {
	case monitor.Index:
		return broker.Index
	case monitor.Stalled:
		return broker.Stalled
	}
	return broker.Eager
}

func outcome(o broker.ExpireOutcome) monitor.Outcome {
	switch o {
	case broker.Expired:
		return monitor.Expired
	case broker.Gone:
		return monitor.Gone
	case broker.Held:
		return monitor.Held
	case broker.NotDue:
		return monitor.NotDue
	default:
		return monitor.Failed
	}
}
