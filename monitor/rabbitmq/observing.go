package rabbitmq

import (
	"context"
	"errors"
	"slices"
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/observe"
)

// watch is the part of a Primary that observes: with one observer at a time, while this Curfew has the lease for it.
type watch struct {
	p *Primary

	// Guarded by p.mu.
	lease    *keeper.Renewal // nil: without Redis, or not known yet
	begun    uint64          // observers so far
	observer observer        // nil: another Curfew observes
}

// byLocked is the Curfew that observes.
func (w *watch) byLocked() string {
	if w.observer != nil {
		return w.p.name
	}
	var s keeper.Status
	if w.lease != nil {
		w.lease.Show(&s)
	}
	return s.Keeper
}

// run observes until ctx ends, whenever this Curfew has the lease for it.
func (w *watch) run(ctx context.Context) {
	p := w.p
	if p.redis == nil {
		w.observe(ctx)
		return
	}
	select {
	case <-p.joined:
	case <-ctx.Done():
		return
	}
	p.mu.Lock()
	l := w.lease
	p.mu.Unlock()
	for {
		if _, ok := l.Await(ctx, func(string) {}); !ok {
			return
		}
		inner, stop := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { l.Watch(inner, stop) })
		w.observe(inner)
		watching.Wait()
		l.Release(ctx)
		stop()
	}
}

// observe runs an observer until ctx ends.
func (w *watch) observe(ctx context.Context) {
	p := w.p
	p.mu.Lock()
	w.begun++
	numbers := w.begun * observedNumbers
	o := p.newWatch(observe.Options{VHost: p.vhost, Log: p.log,
		Connect: func(ctx context.Context) (*amqp091.Connection, error) {
			return p.rabbitmq.Connect(ctx, "observe", false)
		},
		Expired: func(batch []deadline.Expiry) { w.expired(batch, numbers) }})
	w.observer = o
	p.mu.Unlock()
	deadline.Wake(p.looks) // the next inventory is shown to the observer
	_ = o.Run(ctx)         // the error is that of ctx
	p.mu.Lock()
	defer p.mu.Unlock()
	w.observer = nil
}

// topology is what leads to the queues of an inventory.
type topology struct {
	exchanges map[string]cluster.Exchange
	bindings  []cluster.Binding
	unknown   error // why it is not known
}

// topologyFor asks what leads to the queues, if somebody needs to know: the observer, the decision on a queue with a
// time to live, or retries. Nil: nobody does.
func (w *watch) topologyFor(ctx context.Context, i *cluster.Inventory) *topology {
	p := w.p
	observer, _ := w.now()
	needed := observer != nil || slices.ContainsFunc(i.Queues, func(q cluster.Queue) bool {
		rule, watched := p.rule(q.Name)
		_, limited := q.TTLMillis()
		return watched && (rule.Mode == cluster.Keep && limited || rule.Mode == cluster.Retry)
	})
	if !needed {
		return nil
	}
	x := &topology{}
	x.exchanges, x.bindings, x.unknown = p.rabbitmq.Topology(ctx)
	return x
}

// topologyNow is what leads to the queues of the last inventory.
func (w *watch) topologyNow() (map[string]cluster.Exchange, []cluster.Binding, error) {
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.topology == nil {
		return nil, nil, errors.New("it was not asked for")
	}
	return p.topology.exchanges, p.topology.bindings, p.topology.unknown
}

// show hands the present queues and bindings to the observer, if it runs here.
func (w *watch) show(i *cluster.Inventory, x *topology) {
	p := w.p
	if o, _ := w.now(); o == nil || x == nil {
		return
	}
	v := &observe.View{Inventory: i, Observed: map[string]bool{}, Exchanges: x.exchanges, Bindings: x.bindings, Unknown: x.unknown}
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := range i.Queues {
		q := &i.Queues[at]
		if rule, watched := p.rule(q.Name); watched && rule.Mode != cluster.Off {
			k := p.queues[q.Name]
			v.Observed[q.Name] = k == nil || k.decision.Verdict != cluster.Kept || p.group.isPaused()
		}
	}
	if w.observer != nil {
		w.observer.Show(v)
	}
}

// expired publishes messages that have missed their deadlines and left. Those that still wait are in the forecast.
// numbers is added to the number of each queue, since each observer begins to count again.
func (w *watch) expired(batch []deadline.Expiry, numbers uint64) {
	p := w.p
	ahead := p.ClockOffset() // the observer goes by the wall clock
	for i := range batch {
		e := &batch[i]
		rule, _ := p.rule(e.Queue)
		e.Intended = rule.ExpiryIntended()
		e.Ref.Queue += numbers
		e.Ref.Deadline, e.Arrived, e.ClockAhead = e.Ref.Deadline.Add(ahead), e.Arrived.Add(ahead), ahead
	}
	p.stream.Publish(batch)
}

// Survey implements monitor.Source, for observed queues.
func (p *Primary) Survey(samples int, fn func(*deadline.Survey)) {
	o, numbers := p.observing.now()
	if o == nil {
		return
	}
	ahead := p.ClockOffset()
	o.Survey(samples, func(s *deadline.Survey) {
		if rule, _ := p.rule(s.Name); rule.ExpiryIntended() {
			return // nothing is at risk
		}
		s.Queue += numbers
		s.At = s.At.Add(ahead)
		for i := range s.Samples {
			if ref := &s.Samples[i].Ref; ref.Deadline != 0 {
				ref.Queue, ref.Deadline = s.Queue, ref.Deadline.Add(ahead)
			}
		}
		fn(s)
	})
}

// TimeToLive implements monitor.Source.
func (p *Primary) TimeToLive(ref deadline.Ref) (deadline.Millis, bool) {
	o, numbers := p.observing.now()
	if o == nil || ref.Queue < numbers {
		return 0, false
	}
	return o.TimeToLive(ref.Queue-numbers, ref.Seq)
}

// statesLocked returns what the observer knows, by queue.
func (w *watch) statesLocked() map[string]*observe.State {
	all := map[string]*observe.State{}
	if w.observer != nil {
		for _, state := range w.observer.States() {
			all[state.Queue] = &state
		}
	}
	return all
}

// Overdue returns the queues that this Curfew observes and that have messages past their deadlines.
func (p *Primary) Overdue() (list []observe.State) {
	o, _ := p.observing.now()
	if o == nil {
		return nil
	}
	for _, s := range o.States() {
		if s.Overdue > 0 {
			list = append(list, s)
		}
	}
	return list
}

// now returns the present observer, and what to add to the numbers of its queues.
func (w *watch) now() (observer, uint64) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.observer, w.begun * observedNumbers
}
