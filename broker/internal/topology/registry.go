package topology

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/policy"
)

// defaultIdleMinimum is the least AutoDeleteOnIdle of Service Bus.
const defaultIdleMinimum = 5 * time.Minute

// RegistryOptions are the parts and settings of a Registry.
type RegistryOptions struct {
	Env         *delivery.Env
	Catalog     *catalog.Catalog
	Log         *zap.Logger
	Precedence  policy.Precedence // of queues that name none
	IdleMinimum time.Duration     // the least x-auto-delete-on-idle, also by policy; 0: defaultIdleMinimum
	Ceilings    Ceilings
	MemoryLimit int64        // of the broker; 0: none
	Go          func(func()) // runs a function in a goroutine; the broker waits for it when it stops
}

// Registry is what the virtual hosts of a broker have in common: the queues by their
// incarnations, the limits on what may be declared, and the notes on deleted queues. Safe for
// concurrent use.
type Registry struct {
	env      *delivery.Env
	catalog  *catalog.Catalog
	log      *zap.Logger
	defaults policy.Defaults
	ceilings Ceilings
	run      func(func())
	unsaved  atomic.Int64 // deletions of queues that a goroutine saves, saveDeletedSoon
	settings sharedSettings

	Memory Memory // taken by what is declared in all virtual hosts

	// Ready is set once the state of the last run is restored.
	Ready   atomic.Bool
	Adopted atomic.Int64 // queues that were made for messages whose queues' definitions were not found

	Declared, Created, Deleted atomic.Uint64 // queues, since the start

	mu   sync.RWMutex // leaf
	byID map[uint64]*Queue
	// retired is the sum of the statistics of deleted queues.
	retired delivery.QueueStats
}

// Init makes a registry without queues.
func (r *Registry) Init(o RegistryOptions) {
	o.Ceilings.setDefaults()
	o.IdleMinimum = cmp.Or(o.IdleMinimum, defaultIdleMinimum)
	r.env, r.catalog, r.log, r.ceilings, r.run = o.Env, o.Catalog, o.Log, o.Ceilings, o.Go
	r.defaults = policy.Defaults{Precedence: o.Precedence, IdleMinimumMillis: (o.IdleMinimum + time.Millisecond - 1).Milliseconds()}
	r.byID = map[uint64]*Queue{}
	r.Memory.init(o.MemoryLimit)
}

// restoring reports whether the state of the last run is being restored.
func (r *Registry) restoring() bool { return !r.Ready.Load() }

// ByID is the queue of an incarnation; nil if it does not exist or has been deleted.
func (r *Registry) ByID(id uint64) *Queue {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// add makes ByID find the queue.
func (r *Registry) add(q *Queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[q.ID] = q
}

// drop removes a deleted queue and keeps its statistics.
func (r *Registry) drop(q *Queue) {
	_, _, stats := q.Messages.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[q.ID] != q {
		return
	}
	delete(r.byID, q.ID)
	r.Deleted.Add(1)
	r.retired.Add(&stats)
}

// Queues are all queues, in no order.
func (r *Registry) Queues() []*Queue {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.queuesLocked()
}

func (r *Registry) queuesLocked() []*Queue {
	all := make([]*Queue, 0, len(r.byID))
	for _, q := range r.byID {
		all = append(all, q)
	}
	return all
}

// trimPatience is how long a change of limits waits for what it has dropped: a queue of millions takes
// longer than its client, or a start, would wait.
const trimPatience = time.Second

// Trim drops the messages above limits that may have become lower. What takes longer than a second is
// done in the background.
func (r *Registry) Trim(queues []*Queue) {
	var limited []*Queue
	for _, q := range queues {
		if q.Settings().Limited() {
			limited = append(limited, q)
		}
	}
	done := make(chan struct{})
	r.run(func() {
		defer close(done)
		for _, q := range limited {
			q.Messages.Trim()
		}
	})
	select {
	case <-done:
	case <-time.After(trimPatience):
	}
}

// Loads calls fn, if it is not nil, with each queue, the number of messages in it, that of its consumers and its statistics, in no order. It
// returns the sum of the statistics, including those of deleted queues.
func (r *Registry) Loads(fn func(q *Queue, messages, consumers int, c *delivery.QueueStats)) delivery.QueueStats {
	r.mu.RLock()
	sum := r.retired
	all := r.queuesLocked()
	r.mu.RUnlock()
	for _, q := range all {
		messages, consumers, c := q.Messages.Load()
		sum.Add(&c)
		if fn != nil {
			fn(q, messages, consumers, &c)
		}
	}
	return sum
}

// DeletedKey is the key of the note that a queue was deleted. The note is written when the
// queue's definition is removed. With it a start drops messages of the queue that are still in
// the journal, and keeps those of a queue whose definition is missing for another reason. Once
// the note is gone, dead letters are kept that had left the queue before and have not arrived.
func DeletedKey(id uint64) string {
	return catalog.Key(catalog.DeletedKind, strconv.FormatUint(id, 10))
}

// ForgetDeleted removes the notes once it is in the journal that the queues' messages have been
// removed.
func (r *Registry) ForgetDeleted(ids ...uint64) {
	if !r.catalog.Saving.Load() {
		return
	}
	for some := range slices.Chunk(ids, undefineStep) {
		var gone []string
		for _, id := range some {
			gone = append(gone, DeletedKey(id))
		}
		r.env.Store.Synced(func(err error) {
			if err == nil {
				r.env.Store.Undefine(catalog.Removals(gone...)...)
			}
		})
	}
}

// saveDeleted returns when the deletion of queues is saved, or logs that it is not.
func (r *Registry) saveDeleted() {
	if err := r.catalog.Sync(); err != nil { // they come back, empty, if no later save succeeds
		r.log.Error("deleted queues are still in the saved definitions", zap.Error(err))
	}
}

// saveDeletedSoon has the deletion of queues saved in a goroutine, which exists only while it does: the
// timers do not wait for the disk.
func (r *Registry) saveDeletedSoon() {
	if r.unsaved.Add(1) > 1 {
		return
	}
	r.run(func() {
		for n := r.unsaved.Load(); n > 0; n = r.unsaved.Add(-n) {
			r.saveDeleted()
		}
	})
}
