package broker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// openStore opens the store and puts back what outlived the last run, its clock
// with it unless the broker was given one.
func (b *Broker) openStore(o store.Options, ownClock bool) error {
	o.Relocate = b.relocate
	o.MemoryLimit = b.opts.MemoryLimit
	o.OnFull = func(why error) {
		files := store.NoFiles(why)
		b.gate.set(b.log, &b.gate.files, files)
		b.gate.set(b.log, &b.gate.full, why != nil && !files)
	}
	s, recovery, err := store.Open(o)
	if err != nil {
		return fmt.Errorf("broker: open store: %w", err)
	}
	b.store = s
	if b.durable && ownClock {
		err = b.openTimeline(o.Dir, recovery)
	}
	if err == nil {
		err = b.restore(recovery)
	}
	if err != nil {
		s.Close()
		return fmt.Errorf("broker: recover %s: %w", o.Dir, err)
	}
	return nil
}

// restore puts back what was saved, and saves what a start adds to it.
func (b *Broker) restore(r *store.Recovery) error {
	d, err := readSaved(r.Definitions)
	if err != nil {
		return err
	}
	if len(d.Queues) == 0 && len(r.Queues) > 0 && !d.found {
		return fmt.Errorf("there are messages of %d queues, but the file \"definitions\" that names the queues is missing: put it back, or empty the folder to start anew", len(r.Queues))
	}
	if err := b.restoreVHosts(d); err != nil {
		return err
	}
	b.restoreAccounts(&d.Accounts)
	if err := b.restoreTopology(d, r.Queues); err != nil {
		return err
	}
	if d.old {
		b.store.Define(d.apart()...)
	}
	for i := range r.Queues {
		b.restoreMessages(&r.Queues[i])
	}
	if b.restored > 0 || len(d.Queues) > 0 {
		b.log.Info("recovered", zap.Int("queues", len(d.Queues)), zap.Int("messages", b.restored))
	}
	b.recovered.Store(true)
	for _, vh := range b.VHosts() {
		vh.completeSubqueues(vh.Queues())
	}
	b.forgetDeleted(slices.Collect(maps.Keys(d.deleted))...)
	if vh := b.vhosts["/"]; vh != nil && len(d.VHosts) == 0 {
		b.define(keyOf(vhostKind, vh.name), vh.definition())
	}
	if err := b.seed(); err != nil {
		return err
	}
	err = b.saveDefinitions()
	if errors.Is(err, store.ErrFull) { // the next change saves them
		b.log.Warn("the disk is full: the configured user is not saved", zap.Error(err))
		return nil
	}
	return err
}

// restoreVHosts puts the virtual hosts back; "/" is there already, and goes if it
// was deleted.
func (b *Broker) restoreVHosts(d *saved) error {
	if len(d.VHosts) == 0 && (d.old || !d.found) {
		return nil
	}
	clear(b.vhosts)
	for _, x := range d.VHosts {
		vh := newVHost(b, x.Name)
		vh.about, vh.limits = x.Metadata, x.Limits
		b.vhosts[x.Name] = vh
	}
	return nil
}

// restoreAccounts puts users and permissions back.
func (b *Broker) restoreAccounts(d *accountDefinitions) {
	a := &b.accounts
	a.configured = d.Configured
	for _, u := range d.Users {
		a.users[u.Name] = &u
	}
	for k, p := range d.permissions() {
		if err := p.compile(k); err != nil { // what another version took
			b.log.Warn("saved permissions are not in force and grant nothing; set them anew",
				zap.String("user", k.user), zap.String("vhost", k.vhost), zap.Error(err))
		}
		a.set(k, &p)
	}
}

// restoreTopology puts back what is defined, and makes what the queues that were found
// need.
func (b *Broker) restoreTopology(d *saved, found []store.RecoveredQueue) error {
	b.global = d.Global
	for _, x := range d.Exchanges {
		args, err := x.Args.table()
		if err != nil {
			return fmt.Errorf("exchange %q: %w", x.Name, err)
		}
		err = b.vhosts[x.VHost].DeclareExchange(x.Name, ExchangeDeclare{
			Kind: x.Type, Durable: !x.Transient, AutoDelete: x.AutoDelete, Internal: x.Internal, Args: args,
		})
		if err != nil {
			return fmt.Errorf("exchange %q: %w", x.Name, err)
		}
	}
	for i := range d.Queues {
		if err := b.restoreQueue(&d.Queues[i]); err != nil {
			return fmt.Errorf("queue %q: %w", d.Queues[i].Name, err)
		}
	}
	for i := range found {
		if id := found[i].Queue; b.byID[id] != nil || d.deleted[id] {
			continue
		}
		if err := b.adopt(&found[i]); err != nil {
			return fmt.Errorf("messages of queue %d, whose definition is missing: %w", found[i].Queue, err)
		}
	}
	b.restorePolicies(d.Policies)
	for i := range d.Bindings {
		x := &d.Bindings[i]
		args, err := x.Args.table()
		if err == nil {
			err = b.vhosts[x.VHost].Bind(nil, x.binding(args))
		}
		if code(err) == amqp.NotFound { // an end was deleted while the binding was imported
			b.log.Warn("a saved binding has lost an end and is left out", zap.String("vhost", x.VHost), zap.Error(err))
			b.store.Define(store.Definition{Key: x.key()})
		} else if err != nil {
			return fmt.Errorf("binding of %q to %q: %w", x.Destination, x.Source, err)
		}
	}
	return nil
}

func (b *bindingDefinition) binding(args amqp.Table) Binding {
	return Binding{Source: b.Source, Destination: b.Destination, ToExchange: b.ToExchange, RoutingKey: b.RoutingKey, Args: args}
}

// restorePolicies comes after all that they govern.
func (b *Broker) restorePolicies(list []policyDefinition) {
	of := map[string][]*policyDefinition{}
	for i := range list {
		of[list[i].VHost] = append(of[list[i].VHost], &list[i])
	}
	for name, saved := range of {
		b.vhosts[name].restorePolicies(saved)
	}
}

// restoreQueue puts a queue back without its messages. One that was accepted once is
// there again, whatever this version thinks of its arguments: those it would refuse
// mean nothing now.
func (b *Broker) restoreQueue(x *queueDefinition) error {
	vh := b.vhosts[x.VHost]
	if x.Delayed {
		_, err := vh.makeDelayed(x.ID)
		return err
	}
	args, err := x.Args.table()
	if err != nil {
		return err
	}
	d := x.declared(args)
	set, refused := vh.settingsOf(x.Name, d)
	if refused != nil {
		b.log.Warn("a saved queue would be refused now, and is kept without what is wrong; delete it and declare it anew",
			zap.String("vhost", x.VHost), zap.String("queue", x.Name), zap.Error(refused))
	}
	if _, ok := args["x-max-priority"]; ok && set.kind == Quorum {
		lanes := argParser{vh: vh, args: args} // its messages stand in them
		set.core.Priorities = lanes.priorities()
	}
	var owner Owner
	if x.Exclusive {
		owner = otherConnection{}
	}
	q, err := vh.enterQueue(x.ID, owner, x.Name, d, set)
	if err == nil && x.Recovered {
		q.recovered = true
		b.adopted.Add(1)
	}
	return err
}

func (x *queueDefinition) declared(args amqp.Table) QueueDeclare {
	return QueueDeclare{Durable: !x.Transient, Exclusive: x.Exclusive, AutoDelete: x.AutoDelete, Args: args}
}

// otherConnection owns the exclusive queues in a copy of a broker.
type otherConnection struct{}

// restoreMessages puts a queue's messages back in their places, with their old
// deadlines. Those of a queue that was deleted are settled.
func (b *Broker) restoreMessages(r *store.RecoveredQueue) {
	q := b.byID[r.Queue]
	if q == nil {
		for _, e := range r.Entries {
			b.store.Settled([]store.Settle{{Queue: r.Queue, Seq: e.Seq, Pos: e.Pos, Durable: true}})
		}
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var amended []store.Amend
	for _, e := range r.Entries {
		flags := queue.Flags(e.Flags)
		if r.WasDelivered(e.Seq) {
			flags |= queue.Redelivered
		}
		if q.recovered {
			e.ExpiresAt = 0
		}
		if b.opts.TTLOff && e.ExpiresAt != 0 && q.delays == nil {
			e.ExpiresAt = 0
			amended = append(amended, store.Amend{Queue: r.Queue, Seq: e.Seq, Pos: e.Pos, Durable: true, Terms: e.Terms})
		}
		q.core.Restore(queue.Seq(e.Seq), queue.Message{
			Pos: uint64(e.Pos), ExpiresAt: e.ExpiresAt, Flags: flags,
			Bytes: uint32(len(b.store.View(e.Pos).Body)),
		}, e.Deliveries)
		if at := r.EnqueuedAt(&e); at != 0 && q.asked.shows&showDeadline != 0 {
			q.enqueued.add(queue.Seq(e.Seq), at)
		}
		if q.delays != nil {
			q.delays.add(q, due{e.ExpiresAt, queue.Seq(e.Seq)}, e.Pos)
		}
	}
	b.store.Amended(amended)
	b.restored += len(r.Entries)
}

// RecoveredPrefix begins the name of a queue that was made at a start for messages whose
// queue has no definition and was not deleted: the definitions were lost, or put back from
// an older copy. It ends with the queue's incarnation. What had a deadline there has none
// in it, as nobody knows what was to become of it then.
const RecoveredPrefix = "curfew.recovered."

// adopt makes that queue. It takes the place of the lost one in the journal.
func (b *Broker) adopt(r *store.RecoveredQueue) error {
	vh := b.vhosts["/"]
	for _, other := range b.VHosts() {
		if vh == nil {
			vh = other
		}
	}
	if vh == nil {
		vh = newVHost(b, "/")
		b.vhosts["/"] = vh
		b.store.Define(definitionOf(keyOf(vhostKind, vh.name), vh.definition()))
	}
	x := queueDefinition{VHost: vh.name, Name: RecoveredPrefix + strconv.FormatUint(r.Queue, 10), ID: r.Queue, Recovered: true}
	for vh.queues[x.Name] != nil {
		x.Name += "+"
	}
	last := r.Entries[len(r.Entries)-1]
	if most := queue.Seq(last.Seq).Priority(); most > 0 {
		x.Args = saveArgs(amqp.Table{"x-max-priority": int32(most)})
	}
	if err := b.restoreQueue(&x); err != nil {
		return err
	}
	b.store.Define(definitionOf(x.key(), &x))
	m := b.store.View(last.Pos)
	b.log.Error("the definition of a queue is missing: its messages are in a queue of another name; see which queue the last was for, and move them",
		zap.String("queue", x.Name), zap.String("vhost", x.VHost), zap.Int("messages", len(r.Entries)),
		zap.ByteString("last_exchange", m.Exchange), zap.ByteString("last_routing_key", m.RoutingKey))
	return nil
}

// Recovered is how many messages outlived the last run.
func (b *Broker) Recovered() int { return b.restored }

// relocate tells a queue that the store wants to move a message, or has.
func (b *Broker) relocate(id, seq uint64, old, moved store.Pos) (store.Terms, bool) {
	q := b.queueByID(id)
	if q == nil || !b.recovered.Load() {
		return store.Terms{}, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.core.Relocate(queue.Seq(seq), uint64(old), uint64(moved)) {
		if terms, ok := q.letters.relocate(queue.Seq(seq), uint64(old), uint64(moved)); ok {
			return terms, true
		}
		return q.retained.relocate(queue.Seq(seq), uint64(old), uint64(moved))
	}
	_, terms, _ := q.terms(queue.Seq(seq))
	return terms, true
}
