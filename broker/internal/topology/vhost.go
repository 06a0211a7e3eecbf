package topology

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// Options are the parts and the name of a VHost.
type Options struct {
	Registry *Registry
	Name     string
	Lines    *delivery.Lines // the lines of letters of all its queues

	// Judge is called when a queue or an exchange (the other is nil) may have been idle for its
	// period. It reports whether delayed messages have to be checked first: then it calls
	// Queue.Judge or Exchange.ExpireIdle later. It is called with no lock held.
	Judge func(*Queue, *Exchange) bool
	// Former is called for a durable queue that clients consumed and that somebody deletes, with each key that led to it exactly. A publisher to
	// patterns, or to whoever is bound, may expect that nobody is. It is called with mu held, and must not block. nil: nobody asks.
	Former func(exchange, key string, q *Queue)
}

// VHost is what is declared in a virtual host: a name space of exchanges and queues. Safe for
// concurrent use.
type VHost struct {
	registry *Registry
	lines    *delivery.Lines
	judge    func(*Queue, *Exchange) bool
	former   func(exchange, key string, q *Queue)

	// version is raised by each change of exchanges, queues or bindings, so
	// that a cached route knows when it is stale.
	version atomic.Uint64

	guard     guard
	Policies  Policies
	Exchanges Exchanges
	Queues    Queues

	// Guarded by mu:
	sweeps sweeps
	about  catalog.VHostMetadata
	limits access.Limits
	memory footprint
}

// New makes a virtual host with the predeclared exchanges.
func New(o Options) *VHost {
	vh := &VHost{
		registry: o.Registry, lines: o.Lines, judge: o.Judge, former: o.Former, memory: footprint{all: o.Registry},
	}
	vh.guard.init(o.Name, o.Registry)
	vh.Policies.vh, vh.Policies.combined = vh, map[ruling]*applied{}
	vh.sweeps.vh = vh
	vh.Exchanges.init(vh)
	vh.Queues = Queues{vh: vh, queues: map[string]*Queue{}, cased: map[string][]*Queue{}, owned: map[Owner]map[*Queue]struct{}{}}
	return vh
}

// Restore gives a new virtual host its saved metadata and limits.
func (vh *VHost) Restore(x *catalog.VHost) {
	vh.guard.lock()
	defer vh.guard.unlock()
	vh.about, vh.limits = x.Metadata, x.Limits
}

// Get returns the queue of that name, or a 404 exception.
func (t *Queues) Get(name string) (*Queue, error) {
	t.vh.guard.mu.RLock()
	defer t.vh.guard.mu.RUnlock()
	if q, ok := t.queues[name]; ok {
		return q, nil
	}
	return nil, delivery.NoQueue(t.vh.guard.name, name)
}

// GetAnyCase returns a queue whose name differs from that one only in upper and lower case: of several the
// first by name. 404 if there is none.
func (t *Queues) GetAnyCase(name string) (*Queue, error) {
	t.vh.guard.mu.RLock()
	defer t.vh.guard.mu.RUnlock()
	lower := strings.ToLower(name)
	if some := t.cased[lower]; len(some) > 0 {
		return slices.MinFunc(some, byName), nil
	}
	if q, ok := t.queues[lower]; ok {
		return q, nil
	}
	return nil, delivery.NoQueue(t.vh.guard.name, name)
}

// Has reports whether there is a queue of that name.
func (t *Queues) Has(name string) bool {
	_, err := t.Get(name)
	return err == nil
}

// GetFor returns the queue of that name if the connection may use it: an
// exclusive queue answers only to its owner (405 RESOURCE_LOCKED).
func (t *Queues) GetFor(owner Owner, name string) (*Queue, error) {
	q, err := t.Get(name)
	if err != nil {
		return nil, err
	}
	return q, q.checkOwner(owner)
}

// changedLocked marks the topology as changed.
func (vh *VHost) changedLocked() { vh.version.Add(1) }

func (t *Queues) queueLabel(name string) string {
	return delivery.QueueLabel(t.vh.guard.name, name)
}

// Metadata is the virtual host's metadata.
func (vh *VHost) Metadata() catalog.VHostMetadata {
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	return vh.about
}

// Limits are the virtual host's limits. The caller must not change them.
func (vh *VHost) Limits() access.Limits {
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	return vh.limits
}

// SetMetadata replaces the metadata, but does not lift the protection from deletion.
func (vh *VHost) SetMetadata(about catalog.VHostMetadata) error {
	return vh.redefine(func(d *catalog.VHost) {
		about.Protected = about.Protected || d.Metadata.Protected
		d.Metadata = about
	})
}

// SetProtected protects the virtual host from deletion, or lifts that.
func (vh *VHost) SetProtected(protected bool) error {
	return vh.redefine(func(d *catalog.VHost) { d.Metadata.Protected = protected })
}

// SetLimits replaces the limits (max-connections, max-queues); what already exceeds
// them stays. Error: access.ErrInvalid.
func (vh *VHost) SetLimits(l access.Limits) error {
	if err := l.CheckVHost(); err != nil {
		return err
	}
	return vh.redefine(func(d *catalog.VHost) { d.Limits = l })
}

// redefine changes the definition of the virtual host itself.
func (vh *VHost) redefine(change func(*catalog.VHost)) error {
	key := catalog.Key(catalog.VHostKind, vh.guard.name)
	return vh.guard.claimed(key, func() error {
		was := vh.definitionLocked()
		now := *was
		change(&now)
		if err := vh.guard.saveLocked(key, &now, was); err != nil {
			return err
		}
		vh.about, vh.limits = now.Metadata, now.Limits
		return nil
	})
}

// withDefaultType adds the virtual host's default queue type to the arguments of a queue
// that names no type and can be of that one.
func (t *Queues) withDefaultType(name string, d QueueDeclare) QueueDeclare {
	kind := t.vh.Metadata().DefaultQueueType
	if _, named := d.Args["x-queue-type"]; kind == "" || named || name == policy.UndeliverableQueue {
		return d
	}
	if kind == policy.Quorum.String() && (!d.Durable || d.Exclusive || d.AutoDelete) {
		return d
	}
	args := maps.Clone(d.Args)
	if args == nil {
		args = amqp.Table{}
	}
	args["x-queue-type"] = kind
	d.Args = args
	return d
}

// Ended is what a virtual host had when it ended.
type Ended struct {
	vh        *VHost
	Queues    []*Queue
	exchanges []*Exchange
	claims    []string
}

// End ends the virtual host: nothing more can be declared in it, and with the next start it is gone with everything in it. save is called with
// the changed definitions; it and mayEnd are called with the lock held. What was in it is still to be removed: Undefine, then
// RemoveQueues. Error: mayEnd's, or delivery.ErrGone if it has already ended.
func (vh *VHost) End(mayEnd func(catalog.VHostMetadata) error, save func([]store.Definition)) (*Ended, error) {
	vh.guard.lock()
	defer vh.guard.unlock()
	if vh.guard.deleted {
		return nil, delivery.ErrGone
	}
	if err := mayEnd(vh.about); err != nil {
		return nil, err
	}
	vh.memory.giveAllLocked()
	vh.guard.deleted = true
	vh.guard.unclaimed.Broadcast()
	e := &Ended{vh, slices.Collect(maps.Values(vh.Queues.queues)), slices.Collect(maps.Values(vh.Exchanges.exchanges)), slices.Collect(maps.Keys(vh.guard.claims))}
	for _, d := range vh.sweeps.left {
		if d.exchange != nil {
			e.exchanges = append(e.exchanges, d.exchange)
		}
	}
	vh.sweeps.left = nil
	ended := vh.definitionLocked()
	ended.Ended = true
	save([]store.Definition{catalog.Definition(catalog.Key(catalog.VHostKind, vh.guard.name), ended)})
	return e, nil
}

// undefineStep is how many definitions are removed while the lock is held once.
const undefineStep = 256

// Undefine removes the definitions of all that was in a virtual host, that of the virtual host itself last. Until then there must not be
// another one of its name. It takes a step for each, and no lock is held for long. It returns when they are removed on disk, or
// will be with others.
func (e *Ended) Undefine() error {
	vh := e.vh
	changes, steps := make([]store.Definition, 0, 2*undefineStep), 0
	vh.guard.mu.RLock()
	flush := func() {
		vh.guard.mu.RUnlock()
		vh.guard.catalog.ChangeLocked(changes...)
		if steps++; steps%sweepSync == 0 {
			_ = vh.guard.catalog.Sync() // the last one finds out
		}
		changes = changes[:0]
		runtime.Gosched()
		vh.guard.mu.RLock()
	}
	e.eachKeyLocked(func(key string, q *Queue) {
		changes = append(changes, store.Definition{Key: key})
		if q != nil {
			changes = append(changes, catalog.Definition(DeletedKey(q.ID), true))
		}
		if len(changes) >= undefineStep {
			flush()
		}
	})
	vh.guard.mu.RUnlock()
	vh.guard.catalog.ChangeLocked(append(changes, store.Definition{Key: catalog.Key(catalog.VHostKind, vh.guard.name)})...)
	return vh.guard.catalog.Sync()
}

// RemoveQueues deletes the queues of a virtual host that has ended.
func (e *Ended) RemoveQueues() {
	var ids []uint64
	var left leftovers
	for _, q := range e.Queues {
		_, some, _ := q.drop(nil) // only a second deletion fails
		left = append(left, some...)
	}
	left.settle()
	for _, q := range e.Queues {
		if q.Durable && q.Messages.Letters.Count() == 0 { // otherwise the next start forgets it
			ids = append(ids, q.ID)
		}
	}
	e.vh.registry.ForgetDeleted(ids...)
}

// Name is the virtual host's name, "/" by default.
func (vh *VHost) Name() string { return vh.guard.name }

// Gone reports whether the virtual host has been deleted.
func (vh *VHost) Gone() bool {
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	return vh.guard.deleted
}
