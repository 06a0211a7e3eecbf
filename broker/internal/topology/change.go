package topology

import (
	"maps"
	"slices"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/policy"
)

// changeable are the arguments of queues and exchanges that can be changed. The last one is not the broker's: clients note in
// it when they have changed something.
var changeable = []string{"x-message-ttl", "x-auto-delete-on-idle", "x-lock-duration", "x-max-delivery-count", policy.DeadLetterExpiredArg, "x-updated-at"}

// changed are arguments with changes, of which nil removes one. Error: 406 for one that cannot be changed.
func changed(label string, args, changes amqp.Table) (amqp.Table, error) {
	now := amqp.Table{}
	maps.Copy(now, args)
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		v := changes[name]
		if !slices.Contains(changeable, name) {
			return nil, amqp.NewException(amqp.PreconditionFailed, 0, 0, "the argument '%s' of %s cannot be changed", name, label)
		}
		if now[name] = v; v == nil {
			delete(now, name)
		}
	}
	return now, nil
}

// change replaces the definition of a queue or an exchange once the new one is on disk, and then calls apply. made is called
// with mu held, and so are exists, which returns an error for what is gone, and apply. The policies do not change meanwhile.
func (vh *VHost) change(key string, exists func() error, made func() (now, was any, grows int64, err error), apply func()) error {
	vh.guard.importing.RLock()
	defer vh.guard.importing.RUnlock()
	vh.Policies.governing.Lock()
	defer vh.Policies.governing.Unlock()
	return vh.guard.claimedNow(key, func() error {
		if err := exists(); err != nil {
			return err
		}
		now, was, grows, err := made()
		if err == nil {
			err = vh.memory.takeLocked(grows, "more arguments", grows <= 0)
		}
		if err != nil {
			return err
		}
		err = vh.guard.saveLocked(key, now, was)
		if gone := exists(); gone != nil { // it was deleted while mu was free, with its definition
			vh.guard.noteLocked(key, nil)
			err = gone
		}
		if err != nil {
			vh.memory.giveLocked(grows)
			return err
		}
		apply()
		return nil
	})
}

// Change changes arguments of a queue; nil removes one. They apply as those of a policy do: a time to live to messages
// published afterwards, the others at once. Its deferred messages and dead letters are settled as it says then, also if nothing else changes.
// Errors: 404; 405 another connection's exclusive queue; 406 for a queue that keeps what others could lose, and for an argument
// that is invalid or cannot be changed; ErrNotSaved. Then nothing has changed, unless it is the turn of those.
func (t *Queues) Change(owner Owner, name string, changes amqp.Table) error {
	q, err := t.GetFor(owner, name)
	switch {
	case err != nil:
	case q.Arguments.Keeps || name == policy.UndeliverableQueue || strings.HasSuffix(name, policy.DeferredSuffix):
		err = amqp.NewException(amqp.PreconditionFailed, 0, 0, "the arguments of %s cannot be changed", q.Label())
	case len(changes) > 0:
		err = t.change(q, func() amqp.Table { return changes })
	}
	if err != nil {
		return err
	}
	dead := companion(q, policy.SubqueueSuffix)
	if dead != nil && dead.Settings().SubqueueArgs() != nil && q.Declared().Args["x-lock-duration"] != nil { // one of an earlier version has no locks
		err = t.change(dead, func() amqp.Table { return amqp.Table{"x-lock-duration": q.Declared().Args["x-lock-duration"]} })
	}
	for _, of := range [...]*Queue{dead, q} {
		if of == nil || err != nil {
			continue
		}
		if aside := companion(of, policy.DeferredSuffix); aside != nil {
			err = t.change(aside, func() amqp.Table { return of.Settings().DeferredArgs() })
		}
	}
	return err
}

// change asks for the changes when nobody else changes anything: of two changes of a queue, its deferred messages have the later.
func (t *Queues) change(q *Queue, changes func() amqp.Table) error {
	name := q.Name
	var d declaration
	return t.vh.change(q.definition().Key(), func() error {
		if t.queues[name] != q {
			return delivery.NoQueue(t.vh.guard.name, name)
		}
		return nil
	}, func() (now, was any, grows int64, err error) {
		d.QueueDeclare = q.Declared()
		args := d.Args
		if d.Args, err = changed(q.Label(), args, changes()); err == nil {
			var set policy.Settings
			set, err = t.settingsOf(name, d.QueueDeclare)
			d.settings = t.vh.registry.settings.share(set)
		}
		if grows = d.Args.Footprint() - args.Footprint(); q.Durable {
			after := q.definition()
			after.Args = catalog.SaveArgs(d.Args)
			now, was = after, q.definition()
		}
		return now, was, grows, err
	}, func() {
		q.declared.Store(&d)
		q.applySettings()
	})
}

// Change is Queues.Change for an exchange. Error: 403 for one that every virtual host has.
func (t *Exchanges) Change(name string, changes amqp.Table) error {
	if err := t.Check(name); err != nil || name == "" {
		return noExchange(t.vh.guard.name, name)
	}
	if err := t.checkSystem(name, "change"); err != nil {
		return err
	}
	var x *Exchange
	var args amqp.Table
	return t.vh.change(catalog.Key(catalog.ExchangeKind, t.vh.guard.name, name), func() error {
		if x == nil {
			x = t.exchanges[name]
		}
		if x == nil || t.exchanges[name] != x {
			return noExchange(t.vh.guard.name, name)
		}
		return nil
	}, func() (now, was any, grows int64, err error) {
		label := exchangeLabel(t.vh.guard.name, name)
		if args, err = changed(label, x.declared.Args, changes); err == nil {
			err = policy.CheckExchange(t.vh.registry.defaults, label, args)
		}
		if grows = args.Footprint() - x.declared.Args.Footprint(); x.declared.Durable {
			after := x.definition()
			after.Args = catalog.SaveArgs(args)
			now, was = after, x.definition()
		}
		return now, was, grows, err
	}, func() {
		x.declared.Args = args
		x.governLocked(x.policies)
		x.useLocked()
		t.vh.changedLocked()
	})
}
