package topology

import (
	"maps"
	"slices"
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
}

// VHost is what is declared in a virtual host: a name space of exchanges and queues. Safe for
// concurrent use.
type VHost struct {
	registry *Registry
	lines    *delivery.Lines
	judge    func(*Queue, *Exchange) bool

	// version is raised by each change of exchanges, queues or bindings, so
	// that a cached route knows when it is stale.
	version atomic.Uint64

	guard
	policyTable
	exchangeTable
	queueTable

	// Guarded by mu:
	sweeps sweeps
	about  catalog.VHostMetadata
	limits access.Limits
	memory footprint
}

// New makes a virtual host with the predeclared exchanges.
func New(o Options) *VHost {
	vh := &VHost{
		registry: o.Registry, lines: o.Lines, judge: o.Judge, memory: footprint{all: o.Registry},
	}
	vh.guard.init(o.Name, o.Registry)
	vh.policyTable.init(vh)
	vh.sweeps.vh = vh
	vh.exchangeTable.init(vh)
	vh.queueTable.init(vh)
	return vh
}

// Restore gives a new virtual host its saved metadata and limits.
func (vh *VHost) Restore(x *catalog.VHost) {
	vh.lock()
	defer vh.unlock()
	vh.about, vh.limits = x.Metadata, x.Limits
}

// Queue returns the queue of that name, or a 404 exception.
func (t *queueTable) Queue(name string) (*Queue, error) {
	t.vh.mu.RLock()
	defer t.vh.mu.RUnlock()
	if q, ok := t.queues[name]; ok {
		return q, nil
	}
	return nil, NoQueue(t.vh.name, name)
}

// HasQueue reports whether there is a queue of that name.
func (t *queueTable) HasQueue(name string) bool {
	_, err := t.Queue(name)
	return err == nil
}

// QueueFor returns the queue of that name if the connection may use it: an
// exclusive queue answers only to its owner (405 RESOURCE_LOCKED).
func (t *queueTable) QueueFor(owner Owner, name string) (*Queue, error) {
	q, err := t.Queue(name)
	if err != nil {
		return nil, err
	}
	return q, q.checkOwner(owner)
}

// changedLocked marks the topology as changed.
func (vh *VHost) changedLocked() { vh.version.Add(1) }

// NoQueue is the error for a queue that does not exist.
func NoQueue(vhost, name string) error {
	return amqp.NewException(amqp.NotFound, 0, 0, "no %s", delivery.QueueLabel(vhost, name))
}

func (t *queueTable) queueLabel(name string) string { return delivery.QueueLabel(t.vh.name, name) }

// Metadata is the virtual host's metadata.
func (vh *VHost) Metadata() catalog.VHostMetadata {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	return vh.about
}

// Limits are the virtual host's limits. The caller must not change them.
func (vh *VHost) Limits() access.Limits {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
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
	key := catalog.Key(catalog.VhostKind, vh.name)
	return vh.claimed(key, func() error {
		was := vh.definitionLocked()
		now := *was
		change(&now)
		if err := vh.saveLocked(key, &now, was); err != nil {
			return err
		}
		vh.about, vh.limits = now.Metadata, now.Limits
		return nil
	})
}

// withDefaultType adds the virtual host's default queue type to the arguments of a queue
// that names no type and can be of that one.
func (t *queueTable) withDefaultType(name string, d QueueDeclare) QueueDeclare {
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

// End removes the virtual host, with everything in it, from the definitions. Nothing more can be
// declared in it. It returns the queues to remove. save is called with the changed definitions; it
// and mayEnd are called with the lock held. Error: mayEnd's, or delivery.ErrGone if it has already
// ended.
func (vh *VHost) End(mayEnd func(catalog.VHostMetadata) error, save func([]store.Definition)) ([]*Queue, error) {
	vh.lock()
	defer vh.unlock()
	if vh.deleted {
		return nil, delivery.ErrGone
	}
	if err := mayEnd(vh.about); err != nil {
		return nil, err
	}
	vh.memory.giveAllLocked()
	vh.deleted = true
	vh.unclaimed.Broadcast()
	keys, queues := vh.definitionKeysLocked(), slices.Collect(maps.Values(vh.queues))
	var changes []store.Definition
	for _, key := range keys {
		changes = append(changes, store.Definition{Key: key})
	}
	for _, q := range queues {
		if q.durable() {
			changes = append(changes, catalog.Definition(DeletedKey(q.ID()), true))
		}
	}
	save(changes)
	return queues, nil
}

// RemoveQueues deletes the queues of a virtual host that has ended.
func (vh *VHost) RemoveQueues(queues []*Queue) {
	var ids []uint64
	var left leftovers
	for _, q := range queues {
		_, some, _ := q.drop(func() error { return nil }) // only a second deletion fails
		left = append(left, some...)
	}
	left.settle()
	for _, q := range queues {
		if q.durable() && q.Letters.Count() == 0 { // otherwise the next start forgets it
			ids = append(ids, q.ID())
		}
	}
	vh.registry.ForgetDeleted(ids...)
}
