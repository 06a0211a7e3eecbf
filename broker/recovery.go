package broker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/message"
	"curfew/broker/policy"
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
		b.Alarm.Store(why != nil && !files, files)
	}
	s, found, err := store.Open(o)
	if err != nil {
		return fmt.Errorf("broker: open store: %w", err)
	}
	b.env.Store = s
	b.catalog.Store = s
	if b.durable && ownClock {
		var keep func(quit <-chan struct{})
		if b.env.Clock, keep, err = deadline.ContinueClock(o.Dir, anyDeadline(found), b.log); err == nil {
			b.ended.Go(func() { keep(b.quit) })
		}
	}
	if err == nil {
		err = b.recovery.restore(found)
	}
	if err != nil {
		s.Close()
		return fmt.Errorf("broker: recover %s: %w", o.Dir, err)
	}
	return nil
}

// anyDeadline reports whether a message that came back has one, or is delayed.
func anyDeadline(r *store.Recovery) bool {
	for i := range r.Queues {
		for j := range r.Queues[i].Entries {
			if r.Queues[i].Entries[j].ExpiresAt != 0 {
				return true
			}
		}
	}
	return false
}

// recovery puts back what outlived the last run, before anybody else works with the broker.
type recovery struct {
	b        *Broker
	restored int  // messages
	fresh    bool // the data folder held no broker data
}

// restore puts back what was saved, and saves what a start adds to it.
func (r *recovery) restore(found *store.Recovery) error {
	d, err := catalog.Read(found.Definitions)
	if err != nil {
		return err
	}
	if len(d.Queues) == 0 && len(found.Queues) > 0 && !d.Found {
		return fmt.Errorf("there are messages of %d queues, but the file \"definitions\" that names the queues is missing: put it back, or empty the folder to start again", len(found.Queues))
	}
	if err := r.restoreVHosts(d); err != nil {
		return err
	}
	catalog.LoadAccounts(r.b.Accounts, &d.Accounts)
	if err := r.restoreTopology(d, found.Queues); err != nil {
		return err
	}
	r.b.env.Store.Define(d.Left...)
	for i := range found.Queues {
		r.restoreMessages(&found.Queues[i])
	}
	for i := range found.Queues {
		r.keepNumbers(&found.Queues[i])
	}
	if r.fresh = found.New; r.fresh {
		r.b.log.Info("new data folder: starting empty. If Curfew has run before, its volume is not mounted, or this is a different folder")
	}
	if r.restored > 0 || len(d.Queues) > 0 {
		r.b.log.Info("recovered", zap.Int("queues", len(d.Queues)), zap.Int("messages", r.restored))
	}
	r.b.registry.Ready.Store(true)
	if r.b.durable {
		r.b.catalog.Saving.Store(true)
	}
	for _, vh := range r.b.VHosts() {
		vh.Queues.CompleteSubqueues(vh.Queues.List())
	}
	r.b.registry.ForgetDeleted(slices.Collect(maps.Keys(d.Deleted))...)
	if vh := r.b.vhosts["/"]; vh != nil && len(d.VHosts) == 0 {
		r.b.catalog.ChangeLocked(catalog.Definition(catalog.Key(catalog.VHostKind, vh.Name()), vh.Definition()))
	}
	if err := catalog.SeedAccounts(r.b.Accounts, r.b.opts.User, r.b.opts.Password, r.b.vhostTable.names()); err != nil {
		return err
	}
	err = r.b.catalog.Sync()
	if errors.Is(err, store.ErrFull) { // the next change saves them
		r.b.log.Warn("the disk is full: the configured user is not saved", zap.Error(err))
		return nil
	}
	return err
}

// restoreVHosts puts the virtual hosts back; "/" exists already, and is removed if it was
// deleted.
func (r *recovery) restoreVHosts(d *catalog.Definitions) error {
	if len(d.VHosts) == 0 && !d.Found {
		return nil
	}
	clear(r.b.vhosts)
	for _, x := range d.VHosts {
		vh := newVHost(r.b, x.Name)
		vh.Restore(&x)
		r.b.vhosts[x.Name] = vh
	}
	return nil
}

// restoreTopology puts back exchanges, queues, bindings and policies, and makes what the
// queues with messages need.
func (r *recovery) restoreTopology(d *catalog.Definitions, found []store.RecoveredQueue) (err error) {
	r.b.globalParameters.add(d.Global)
	for name, own := range d.PerVHost() {
		vh := r.b.vhosts[name]
		own.Queues = slices.DeleteFunc(own.Queues, func(x catalog.Queue) bool {
			if x.Delayed && err == nil {
				_, err = vh.makeDelays(x.ID)
			}
			return x.Delayed
		})
		if err == nil {
			err = vh.Load(own)
		}
		if err != nil {
			return fmt.Errorf("virtual host %q: %w", name, err)
		}
	}
	for i := range found {
		if id := found[i].Queue; r.b.registry.ByID(id) != nil || r.b.delays.find(id) != nil || d.Deleted[id] {
			continue
		}
		if err := r.adopt(&found[i]); err != nil {
			return fmt.Errorf("messages of queue %d, whose definition is missing: %w", found[i].Queue, err)
		}
	}
	return nil
}

// restoreMessages puts a queue's messages back in their places, with their old
// deadlines. Those of a queue that was deleted are settled.
func (r *recovery) restoreMessages(found *store.RecoveredQueue) {
	q := r.b.registry.ByID(found.Queue)
	if d := r.b.delays.find(found.Queue); d != nil {
		d.Restore(found)
	} else if q != nil {
		q.Messages.Restore(found, q.Recovered, 0)
	} else {
		for _, e := range found.Entries {
			r.b.env.Store.Settled([]store.Settle{{Queue: found.Queue, Seq: e.Seq, Pos: e.Pos, Durable: true}})
		}
		return
	}
	r.restored += len(found.Entries)
}

// keepNumbers has a queue give no number again that a deferred message of it keeps (Service Bus: Message deferral).
func (r *recovery) keepNumbers(found *store.RecoveredQueue) {
	q := r.b.registry.ByID(found.Queue)
	if q == nil {
		return
	}
	name, deferred := strings.CutSuffix(q.Name, policy.DeferredSuffix)
	of, err := q.VHost().Queues.Get(name)
	if !deferred || err != nil {
		return
	}
	last := map[uint8]queue.Seq{} // by priority: each counts by itself
	for _, e := range found.Entries {
		view, _ := amqp.ViewProperties(r.b.env.Store.View(e.Pos).Properties)
		number, _ := amqp.Integer(message.HeadersOf(view.Headers)["x-opt-sequence-number"])
		seq := queue.Seq(number)
		last[seq.Priority()] = max(last[seq.Priority()], seq)
	}
	for _, seq := range last {
		of.Messages.Restore(&store.RecoveredQueue{}, false, seq)
	}
}

// RecoveredPrefix begins the name of a queue that a start makes for messages whose queue has no
// definition and was not deleted: the definitions were lost, or put back from an older copy.
// The name ends with the queue's incarnation. Its messages have no deadlines, since nobody
// knows what was to become of them then.
const RecoveredPrefix = "curfew.recovered."

// adopt makes such a queue. It takes the place of the lost one in the journal.
func (r *recovery) adopt(found *store.RecoveredQueue) error {
	vh := r.b.vhosts["/"]
	for _, other := range r.b.VHosts() {
		if vh == nil {
			vh = other
		}
	}
	if vh == nil {
		vh = newVHost(r.b, "/")
		r.b.vhosts["/"] = vh
		r.b.env.Store.Define(catalog.Definition(catalog.Key(catalog.VHostKind, vh.Name()), vh.Definition()))
	}
	x := catalog.Queue{VHost: vh.Name(), Name: RecoveredPrefix + strconv.FormatUint(found.Queue, 10), ID: found.Queue, Recovered: true}
	for vh.Queues.Has(x.Name) {
		x.Name += "+"
	}
	last := found.Entries[len(found.Entries)-1]
	if most := queue.Seq(last.Seq).Priority(); most > 0 {
		x.Args = catalog.SaveArgs(amqp.Table{"x-max-priority": int32(most)})
	}
	if err := vh.Load(&catalog.Definitions{Queues: []catalog.Queue{x}}); err != nil {
		return err
	}
	r.b.env.Store.Define(catalog.Definition(x.Key(), &x))
	m := r.b.env.Store.View(last.Pos)
	r.b.log.Error("the definition of a queue is missing: its messages are in a queue with another name; find out which queue they belong to, and move them",
		zap.String("queue", x.Name), zap.String("vhost", x.VHost), zap.Int("messages", len(found.Entries)),
		zap.ByteString("last_exchange", m.Exchange), zap.ByteString("last_routing_key", m.RoutingKey))
	return nil
}

// Recovered is the number of messages that outlived the last run.
func (b *Broker) Recovered() int { return b.recovery.restored }

// NewFolder reports whether the data folder held no broker data at this start. It is false without a folder.
func (b *Broker) NewFolder() bool { return b.recovery.fresh }

// relocate notifies a queue that the store wants to move a message, or has moved it.
func (b *Broker) relocate(id, seq uint64, old, moved store.Pos) (store.Terms, bool) {
	if !b.registry.Ready.Load() {
		return store.Terms{}, false
	}
	if q := b.registry.ByID(id); q != nil {
		return q.Messages.Relocate(queue.Seq(seq), old, moved)
	}
	if d := b.delays.find(id); d != nil {
		return d.Relocate(queue.Seq(seq), old, moved)
	}
	return store.Terms{}, false
}
