package rabbitmq

import (
	"context"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/lease"
	"curfew/monitor/rabbitmq/observe"
)

const (
	leaseEvery   = time.Second
	leaseTimeout = 2 * time.Second
)

// runObserver observes, while this Curfew has the lease of it, until ctx ends.
func (p *Primary) runObserver(ctx context.Context) {
	if p.redis == nil {
		p.observe(ctx)
		return
	}
	select {
	case <-p.joined:
	case <-ctx.Done():
	}
	for ctx.Err() == nil {
		p.observeWith(ctx, p.observerLease())
		sleep(ctx, leaseEvery)
	}
}

// observeWith observes if nobody else does, until ctx ends, somebody else does, or the lease is another one.
func (p *Primary) observeWith(ctx context.Context, l *lease.Lease) {
	if !p.mayObserve(ctx, l, false) {
		return
	}
	inner, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.observe(inner)
	}()
	for sleep(ctx, leaseEvery) && p.observerLease() == l && p.mayObserve(ctx, l, true) {
	}
	stop()
	<-done
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	if err := l.Release(limited); err != nil {
		p.log.Debug("the lease of observing ends by itself", zap.Error(err))
	}
}

// mayObserve takes the lease or renews it. If nobody can be asked, it stays as it was.
func (p *Primary) mayObserve(ctx context.Context, l *lease.Lease, before bool) bool {
	limited, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	holder, held, err := l.Acquire(limited)
	if err != nil {
		return before
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching = holder
	return held
}

// observe runs an observer until ctx ends.
func (p *Primary) observe(ctx context.Context) {
	p.mu.Lock()
	p.observers++
	numbers := p.observers * observedNumbers
	var told []deadline.Expiry
	o := p.newWatch(observe.Options{VHost: p.vhost(), Log: p.log,
		Connect: func(ctx context.Context) (*amqp091.Connection, error) { return p.rabbitmq.Connect(ctx, "observe") },
		Missed:  func(batch []observe.Missed) { told = p.missed(batch, numbers, told[:0]) }})
	p.observer, p.watching = o, p.name
	p.mu.Unlock()
	p.wantLook()   // which is shown to the observer
	_ = o.Run(ctx) // the error is that of ctx
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observer = nil
}

// show hands what there is to the observer, if it runs here.
func (p *Primary) show(ctx context.Context, i *cluster.Inventory) {
	if o, _ := p.observed(); o == nil {
		return
	}
	v := &observe.View{Inventory: i, Observed: map[string]bool{}}
	v.Exchanges, v.Bindings, v.Unknown = p.rabbitmq.Topology(ctx)
	v.Published, _ = p.rabbitmq.Published(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range i.Queues {
		q := &i.Queues[at]
		if rule, watched := p.watch.Rule(p.vhost(), q.VHost, q.Name); watched && rule.Mode != cluster.Off {
			k := p.queues[q.Name]
			v.Observed[q.Name] = k == nil || k.decision.Verdict != cluster.Kept || p.group.letGoFor(q.Name) != ""
		}
	}
	if p.observer != nil {
		p.observer.Show(v)
	}
}

// missed publishes what has missed its deadline and left. What is still there is in the forecast. numbers is added to
// the number of each queue, since another observer begins to count again.
func (p *Primary) missed(batch []observe.Missed, numbers uint64, out []deadline.Expiry) []deadline.Expiry {
	ahead := p.ClockOffset() // the observer goes by the wall clock
	for i := range batch {
		e, left := batch[i].Expiry()
		if !left {
			continue
		}
		rule, _ := p.watch.Rule(p.vhost(), e.VHost, e.Queue)
		e.Intended = rule.ExpiryIntended()
		e.Ref.Queue += numbers
		e.Ref.Deadline, e.Arrived, e.ClockAhead = e.Ref.Deadline.Add(ahead), e.Arrived.Add(ahead), ahead
		out = append(out, e)
	}
	if len(out) > 0 {
		p.stream.Publish(out)
	}
	return out
}

// Survey implements monitor.Surveyor, for observed queues.
func (p *Primary) Survey(samples int, fn func(*deadline.Survey)) {
	o, numbers := p.observed()
	if o == nil {
		return
	}
	ahead := p.ClockOffset()
	o.Survey(samples, func(s *deadline.Survey) {
		if rule, _ := p.watch.Rule(p.vhost(), s.VHost, s.Name); rule.ExpiryIntended() {
			return // nothing is at risk
		}
		s.Queue += numbers
		s.At = s.At.Add(ahead)
		for i := range s.Standings {
			if ref := &s.Standings[i].Ref; ref.Deadline != 0 {
				ref.Queue, ref.Deadline = s.Queue, ref.Deadline.Add(ahead)
			}
		}
		fn(s)
	})
}

// TimeToLive implements monitor.Surveyor.
func (p *Primary) TimeToLive(ref deadline.Ref) (deadline.Millis, bool) {
	o, numbers := p.observed()
	if o == nil || ref.Queue < numbers {
		return 0, false
	}
	return o.TimeToLive(ref.Queue-numbers, ref.Seq)
}

// observed is the present observer, and what is added to the numbers of its queues.
func (p *Primary) observed() (observer, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.observer, p.observers * observedNumbers
}
