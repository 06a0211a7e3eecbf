package monitor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// fakeRegistry is what several fakeInstances share.
type fakeRegistry struct {
	mu        sync.Mutex
	instances map[string]*fakeInstance
	entries   map[string]scheduler.Peer
	turns     map[string]string
}

// fakeInstance is one instance's Schedule, which is a Registry, too.
type fakeInstance struct {
	*fakeRedis
	shared *fakeRegistry
	name   string
	names  map[uint64]scheduler.QueueName

	nameless int           // shadows written before their queues were named
	naming   chan struct{} // until it is closed no queue is named, if it is there
}

func newFakeRegistry() *fakeRegistry {
	return &fakeRegistry{
		instances: make(map[string]*fakeInstance),
		entries:   make(map[string]scheduler.Peer),
		turns:     make(map[string]string),
	}
}

func (g *fakeRegistry) instance(name string) *fakeInstance {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := &fakeInstance{fakeRedis: newFakeRedis(), shared: g, name: name, names: make(map[uint64]scheduler.QueueName)}
	g.instances[name] = i
	return i
}

// leave is what Close does after a graceful stop.
func (i *fakeInstance) leave() { _ = i.Forget(context.Background(), scheduler.Peer{Name: i.name}) }

func (i *fakeInstance) do(ctx context.Context, fn func()) error {
	return i.Do(ctx, func() error {
		i.shared.mu.Lock()
		defer i.shared.mu.Unlock()
		fn()
		return nil
	})
}

func (i *fakeInstance) Beat(ctx context.Context) error {
	return i.do(ctx, func() {
		i.shared.entries[i.name] = scheduler.Peer{Name: i.name, BeatAt: time.Now().UnixMilli(), Shards: 1}
	})
}

func (i *fakeInstance) Peers(ctx context.Context) (peers []scheduler.Peer, err error) {
	err = i.do(ctx, func() {
		for _, name := range slices.Sorted(maps.Keys(i.shared.entries)) {
			if name != i.name {
				peers = append(peers, i.shared.entries[name])
			}
		}
	})
	return peers, err
}

func (i *fakeInstance) Watch(ctx context.Context, p scheduler.Peer) (mine bool, err error) {
	err = i.do(ctx, func() {
		turn := cmp.Or(i.shared.turns[p.Name], i.name)
		i.shared.turns[p.Name] = turn
		mine = turn == i.name
	})
	return mine, err
}

func (i *fakeInstance) CountOverdue(ctx context.Context, p scheduler.Peer) (m scheduler.Overdue, err error) {
	err = i.do(ctx, func() {
		theirs, now := i.shared.instances[p.Name], deadline.At(time.Now())
		counts := make(map[uint64]int64)
		_ = theirs.mem.Scan(ctx, func(page []deadline.Ref) error {
			for _, s := range page {
				m.Stored++
				if s.Deadline > now {
					continue
				}
				m.Due++
				counts[s.Queue]++
				if at := s.Deadline.UnixMilli(); m.OldestAt == 0 || at < m.OldestAt {
					m.OldestAt, m.LateMillis = at, int64(deadline.RoundUp(now.Sub(s.Deadline)))
				}
			}
			return nil
		})
		for queue, n := range counts {
			name := theirs.names[queue]
			name.Queue = queue
			m.Queues = append(m.Queues, scheduler.QueueCount{QueueName: name, Count: n})
		}
		slices.SortFunc(m.Queues, func(a, b scheduler.QueueCount) int { return cmp.Compare(b.Count, a.Count) })
	})
	return m, err
}

func (i *fakeInstance) Forget(ctx context.Context, p scheduler.Peer) error {
	return i.do(ctx, func() { delete(i.shared.entries, p.Name) })
}

func (i *fakeInstance) Apply(ctx context.Context, add, remove []deadline.Ref) error {
	i.shared.mu.Lock()
	for _, s := range add {
		if _, named := i.names[s.Queue]; !named {
			i.nameless++
		}
	}
	i.shared.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return i.fakeRedis.Apply(ctx, add, remove)
}

func (i *fakeInstance) NameQueues(ctx context.Context, queues []scheduler.QueueName) error {
	i.shared.mu.Lock()
	naming := i.naming
	i.shared.mu.Unlock()
	if naming != nil {
		select {
		case <-naming:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return i.do(ctx, func() {
		for _, q := range queues {
			i.names[q.Queue] = q
		}
	})
}

func (i *fakeInstance) PruneQueues(ctx context.Context, keep func(uint64) bool) (kept []uint64, err error) {
	err = i.do(ctx, func() {
		maps.DeleteFunc(i.names, func(queue uint64, _ scheduler.QueueName) bool { return !keep(queue) })
		kept = slices.Collect(maps.Keys(i.names))
	})
	return kept, err
}

// meddle changes what is named behind the monitor's back.
func (i *fakeInstance) meddle(with func(names map[uint64]scheduler.QueueName)) {
	i.shared.mu.Lock()
	defer i.shared.mu.Unlock()
	with(i.names)
}

// namedCount counts the queues that are named.
func (i *fakeInstance) namedCount() int {
	i.shared.mu.Lock()
	defer i.shared.mu.Unlock()
	return len(i.names)
}

// namelessCount counts the shadows written before their queues were named.
func (i *fakeInstance) namelessCount() int {
	i.shared.mu.Lock()
	defer i.shared.mu.Unlock()
	return i.nameless
}

// named is the name a queue has beside the schedule, "" for none.
func (i *fakeInstance) named(queue uint64) string {
	i.shared.mu.Lock()
	defer i.shared.mu.Unlock()
	return i.names[queue].Name
}

func (i *fakeInstance) registered(name string) bool {
	i.shared.mu.Lock()
	defer i.shared.mu.Unlock()
	_, ok := i.shared.entries[name]
	return ok
}

// pass gives the turn to speak for an instance away.
func (g *fakeRegistry) pass(silent, to string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turns[silent] = to
}
