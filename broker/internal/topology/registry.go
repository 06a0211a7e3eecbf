package topology

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/queueargs"
	"curfew/broker/store"
)

// defaultIdleMinimum is the least AutoDeleteOnIdle of Service Bus.
const defaultIdleMinimum = 5 * time.Minute

// RegistryOptions are what a Registry works with. It keeps none of the values: it is made once per broker.
type RegistryOptions struct {
	Env         *delivery.Env
	Catalog     *catalog.Catalog
	Log         *zap.Logger
	Precedence  queueargs.Precedence // of queues that name none
	IdleMinimum time.Duration        // the least x-auto-delete-on-idle, by policy too; 0: defaultIdleMinimum
	Ceilings    Ceilings
	MemoryLimit int64        // of the broker; 0: none
	Go          func(func()) // runs a function in a goroutine that the broker waits for when it stops
}

// Registry is what the virtual hosts of a broker have in common: the queues by their
// incarnations, the bounds of what may be declared, and the notes of what was deleted. Safe for
// concurrent use.
type Registry struct {
	env      *delivery.Env
	catalog  *catalog.Catalog
	log      *zap.Logger
	defaults queueargs.Defaults
	ceilings Ceilings
	run      func(func())
	saver    saver
	settings settingsShared

	Memory Memory // that all virtual hosts take for what is declared

	// Ready is set once all of the last run is there again. Before that, what is declared is
	// counted and not refused.
	Ready   atomic.Bool
	Adopted atomic.Int64 // queues with messages of queues whose definitions were missing

	Declared, Created, Deleted atomic.Uint64 // queues, since the start

	mu   sync.RWMutex // leaf
	byID map[uint64]*Queue
	// retired is what deleted queues have counted.
	retired delivery.QueueStats
}

// Init makes a registry without queues.
func (r *Registry) Init(o RegistryOptions) {
	o.Ceilings.setDefaults()
	if o.IdleMinimum == 0 {
		o.IdleMinimum = defaultIdleMinimum
	}
	r.env, r.catalog, r.log, r.ceilings, r.run = o.Env, o.Catalog, o.Log, o.Ceilings, o.Go
	r.defaults = queueargs.Defaults{Precedence: o.Precedence, IdleMinimumMillis: (o.IdleMinimum + time.Millisecond - 1).Milliseconds()}
	r.byID = map[uint64]*Queue{}
	r.Memory.init(o.MemoryLimit)
}

// restoring reports whether the last run is being put back: then what is declared is counted and not refused.
func (r *Registry) restoring() bool { return !r.Ready.Load() }

// ByID is the queue of an incarnation; nil if there is none, or no more.
func (r *Registry) ByID(id uint64) *Queue {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// add has the queue found by its incarnation.
func (r *Registry) add(q *Queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[q.ID()] = q
}

// drop forgets a deleted queue, but not what it has counted.
func (r *Registry) drop(q *Queue) {
	counts := q.Stats()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[q.ID()] != q {
		return
	}
	delete(r.byID, q.ID())
	r.Deleted.Add(1)
	r.retired.Add(&counts)
}

// Queues are those that were declared, in no order.
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

// Counts sums the queues that are there and those that were.
func (r *Registry) Counts() delivery.QueueStats {
	r.mu.RLock()
	sum := r.retired
	all := r.queuesLocked()
	r.mu.RUnlock()
	for _, q := range all {
		c := q.Stats()
		sum.Add(&c)
	}
	return sum
}

// Loads calls fn with each queue, the messages in it and its totals, in no order, and sums the totals of the queues that are there and those that
// were.
func (r *Registry) Loads(fn func(q *Queue, messages int, c *delivery.QueueStats)) delivery.QueueStats {
	r.mu.RLock()
	sum := r.retired
	all := r.queuesLocked()
	r.mu.RUnlock()
	for _, q := range all {
		messages, c := q.Load()
		sum.Add(&c)
		fn(q, messages, &c)
	}
	return sum
}

// DeletedKey is that of the note that a queue was deleted. It is made when the queue's
// definition goes, so that a start drops the messages which the journal may still have
// then, and keeps those of a queue whose definition is missing for another reason. Dead
// letters that had left the queue before and are not where they go yet are kept, too, once
// the note is gone.
func DeletedKey(id uint64) string {
	return catalog.Key(catalog.DeletedKind, strconv.FormatUint(id, 10))
}

// ForgetDeleted removes the notes once the journal says that the queues' messages have
// gone.
func (r *Registry) ForgetDeleted(ids ...uint64) {
	if !r.catalog.Saving() {
		return
	}
	gone := make([]store.Definition, len(ids))
	for i, id := range ids {
		gone[i].Key = DeletedKey(id)
	}
	r.env.Store.Synced(func(err error) {
		if err == nil {
			r.env.Store.DefineLater(gone...)
		}
	})
}

// saveDeleted returns when it is saved that queues were deleted.
func (r *Registry) saveDeleted() {
	if err := r.catalog.Sync(); err != nil { // they will come back, empty, if no later save succeeds
		r.log.Error("deleted queues are still in the saved definitions", zap.Error(err))
	}
}

// saver saves that queues were deleted, in a goroutine of its own that there is only
// meanwhile: the timers do not wait for the disk.
type saver struct {
	mu            sync.Mutex // leaf
	asked, saving bool
}

func (r *Registry) saveDeletedSoon() {
	w := &r.saver
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = true
	if w.saving {
		return
	}
	w.saving = true
	r.run(func() {
		for w.begin() {
			r.saveDeleted()
		}
	})
}

// begin reports whether there is anything to save; if not, the saving ends.
func (w *saver) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saving, w.asked = w.asked, false
	return w.saving
}
