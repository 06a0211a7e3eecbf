package broker

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// QueueDeclare is what queue.declare carries besides the name.
type QueueDeclare struct {
	Durable, Exclusive, AutoDelete bool
	Args                           amqp.Table
}

// Why remove left a queue alone.
var (
	errInUse    = errors.New("in use")
	errNotEmpty = errors.New("not empty")
	errGone     = errors.New("deleted already")
)

// DeclareQueue returns the queue of that name, made if it is not there; an
// empty name makes one up. An existing queue must have been declared alike.
// Declaring counts as use for x-expires. Errors: 403 reserved name, 405
// another's exclusive queue, 406 wrong or inequivalent argument.
func (vh *VHost) DeclareQueue(owner Owner, name string, d QueueDeclare) (*Queue, error) {
	return vh.declareQueue(nil, owner, name, d)
}

// declareQueue is DeclareQueue for a user with rights r, nil for all.
func (vh *VHost) declareQueue(r *Rights, owner Owner, name string, d QueueDeclare) (*Queue, error) {
	d = vh.withDefaultType(name, d)
	if err := checkNamed(name, d.Args); err != nil {
		return nil, err
	}
	serverNamed := name == ""
	if serverNamed {
		name = generatedName()
	}
	if err := r.mayDeclareQueue(name); err != nil {
		return nil, err
	}
	if name != UndeliverableQueue { // which parking declares for each dead letter
		vh.b.counters.queuesDeclared.Add(1)
	}
	if serverNamed {
		// nobody has it
	} else if q, err := vh.QueueFor(owner, name); err == nil {
		if err = q.redeclare(d); err == errGone {
			vh.forget(q) // whoever deletes it is about to
			return vh.declareQueue(r, owner, name, d)
		}
		return q, err
	} else if code(err) != amqp.NotFound {
		return nil, err
	} else if strings.HasPrefix(name, "amq.") {
		return nil, amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' contains reserved prefix 'amq.*'", name)
	}
	if name == UndeliverableQueue && (!d.Durable || d.Exclusive || d.AutoDelete || len(d.Args) > 0) {
		return nil, amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' is kept for parked dead letters; declare it durable, without arguments", name)
	}
	if name == LockQueue {
		return nil, amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' is kept for requests to renew locks", name)
	}
	if err := checkSubqueue(name); err != nil {
		return nil, err
	}
	if err := r.mayMakeQueue(name, &d); err != nil {
		return nil, err
	}
	q, err := vh.makeWithSubqueue(owner, name, d)
	if err == errTaken {
		return vh.declareQueue(r, owner, name, d) // somebody was faster
	}
	return q, err
}

// errTaken is what makeQueue says of a name that has a queue.
var errTaken = errors.New("broker: queue exists")

// makeQueue makes a queue that is not there yet.
func (vh *VHost) makeQueue(id uint64, owner Owner, name string, d QueueDeclare) (*Queue, error) {
	set, err := vh.settingsOf(name, d)
	if err != nil {
		return nil, err
	}
	return vh.enterQueue(id, owner, name, d, set)
}

// settingsOf reads a declaration; what it returns with an error is all that is right.
func (vh *VHost) settingsOf(name string, d QueueDeclare) (settings, error) {
	set, err := vh.parseSettings(vh.queueLabel(name), d.Args)
	wrong := set.kind.checkProperties(vh.queueLabel(name), d)
	if err == nil {
		err = wrong
	}
	if wrong = vh.nameSubqueue(&set, name); err == nil {
		err = wrong
	}
	return set, err
}

// enterQueue puts a queue of these settings among the others.
func (vh *VHost) enterQueue(id uint64, owner Owner, name string, d QueueDeclare, set settings) (*Queue, error) {
	q := vh.newQueue(id, owner, name, d, set)
	if err := vh.addQueue(q); err != nil {
		return nil, err
	}
	q.Touch()
	return q, nil
}

func (vh *VHost) newQueue(id uint64, owner Owner, name string, d QueueDeclare, set settings) *Queue {
	q := &Queue{vh: vh, id: id, name: name, declared: d, asked: set, core: queue.New(set.core), alarmIndex: notTimed}
	q.settings.Store(&q.asked)
	if d.Exclusive {
		q.owner = owner
	}
	return q
}

func code(err error) uint16 {
	var e *amqp.Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// redeclare checks that d describes the queue as it is.
func (q *Queue) redeclare(d QueueDeclare) error {
	label, cur := q.Label(), q.declared
	if d.Exclusive != cur.Exclusive {
		return q.locked()
	}
	for _, p := range []struct {
		name          string
		received, has bool
	}{{"durable", d.Durable && !d.Exclusive, q.durable()}, {"auto_delete", d.AutoDelete, cur.AutoDelete}} {
		if p.received != p.has {
			return inequivalent(p.name, label, boolText(p.received), boolText(p.has))
		}
	}
	if err := equalArgs(label, d.Args, cur.Args, q.asked.kind.comparedArgs()); err != nil {
		return err
	}
	if !q.Touch() {
		return errGone
	}
	return nil
}

// Touch counts as use for x-expires: a passive or repeated declare. False: the
// queue is deleted.
func (q *Queue) Touch() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.use()
	return !q.deleted
}

// addQueue puts the queue among the others once it is saved.
func (vh *VHost) addQueue(q *Queue) error {
	for {
		a, ruled, err := vh.ruleNew(q.governed().Thing)
		if err == nil {
			err = vh.addRuled(q, a, ruled)
		}
		if err != errRuledAnew {
			return err
		}
	}
}

func (vh *VHost) addRuled(q *Queue, a applied, ruled uint64) error {
	saved, claimed := q.definition(), vh.claimed
	if q.name == UndeliverableQueue { // dead letters wait for it
		claimed = vh.claimedNow
	}
	return claimed(saved.key(), func() error {
		if _, taken := vh.queues[q.name]; taken {
			return errTaken
		}
		if err := vh.checkQueueLimit(q.name); err != nil {
			return err
		}
		if err := vh.holds(&a, ruled); err != nil {
			return err
		}
		if err := vh.declare(q.footprint(), vh.queueLabel(q.name), q.name == UndeliverableQueue); err != nil {
			return err
		}
		vh.coming++
		err := vh.saveRuled(q.governed(), &a, ruled, q.durable(), saved.key(), saved)
		vh.coming--
		if err != nil {
			vh.undeclare(q.footprint())
			return err
		}
		vh.placeQueue(q, a)
		return nil
	})
}

// placeQueue is the end of addQueue; called with mu held.
func (vh *VHost) placeQueue(q *Queue, a applied) {
	vh.queues[q.name] = q
	q.govern(a)
	if q.owner != nil {
		if vh.owned[q.owner] == nil {
			vh.owned[q.owner] = map[*Queue]struct{}{}
		}
		vh.owned[q.owner][q] = struct{}{}
	}
	vh.b.addQueueID(q)
	vh.b.counters.queuesCreated.Add(1)
	vh.changed()
}

// DeleteQueue removes the queue with all it holds and returns how many messages
// were ready; one that does not exist is deleted already. What it held is not
// dead-lettered (RabbitMQ: Dead Letter Exchanges). Errors: 405 another's
// exclusive queue, 406 in use or not empty, where that was asked.
func (vh *VHost) DeleteQueue(owner Owner, name string, ifUnused, ifEmpty bool) (messages int, err error) {
	q, err := vh.QueueFor(owner, name)
	if err != nil {
		if code(err) == amqp.NotFound {
			return 0, nil
		}
		return 0, err
	}
	if err := vh.checkGoes(name); err != nil {
		return 0, err
	}
	messages, err = vh.remove(q, func() error {
		if ifUnused && q.consumers.count > 0 {
			return errInUse
		}
		if ifEmpty && q.core.Ready()+len(q.retained.line) > 0 {
			return errNotEmpty
		}
		return nil
	})
	if err != nil && err != errGone {
		return 0, amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s %s", q.Label(), err)
	}
	return messages, nil
}

// remove deletes q unless veto, asked under q's lock, objects; errGone if somebody has
// already. It returns when that is on disk, or cannot be saved, which is logged.
func (vh *VHost) remove(q *Queue, veto func() error) (ready int, err error) {
	if ready, err = vh.drop(q, veto); err == nil {
		vh.b.saveDeleted()
	}
	return ready, err
}

// drop is remove for who does not wait for the disk.
func (vh *VHost) drop(q *Queue, veto func() error) (ready int, err error) {
	s := vh.b.step()
	defer s.done()
	ready, orphans, err := q.empty(s, veto)
	if err != nil {
		return 0, err
	}
	vh.forget(q)
	vh.dropSubqueue(q)
	for _, c := range orphans {
		c.Sink.Cancelled(c)
	}
	return ready, nil
}

// empty marks the queue as deleted and takes out all it holds.
func (q *Queue) empty(s *step, veto func() error) (ready int, orphans []*Consumer, err error) {
	q.lock(s)
	defer q.mu.Unlock()
	if q.deleted {
		return 0, nil, errGone
	}
	if err := veto(); err != nil {
		return 0, nil, err
	}
	ready, orphans = q.core.Ready(), q.consumers.all()
	q.deleted, q.consumers, q.active, q.locks = true, lineup{}, nil, locks{}
	q.releaseRetained(s)
	q.core.Drain(&s.fx)
	q.finish(s, Lazy)
	return ready, orphans, nil
}

// forget takes a deleted queue, whose messages are settled, out of the names and bindings.
func (vh *VHost) forget(q *Queue) {
	if !vh.erase(q) && q.durable() {
		vh.b.forgetDeleted(q.id)
	}
}

// saveDeleted returns when it is saved that queues were deleted.
func (b *Broker) saveDeleted() {
	if err := b.saveDefinitions(); err != nil { // they will come back, empty, if no later save succeeds
		b.log.Error("deleted queues are still in the saved definitions", zap.Error(err))
	}
}

// saver saves that queues were deleted, in a goroutine of its own that there is only
// meanwhile: the alarms do not wait for the disk.
type saver struct {
	mu            sync.Mutex // leaf
	asked, saving bool
}

func (b *Broker) saveDeletedSoon() {
	w := &b.saver
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = true
	if w.saving {
		return
	}
	w.saving = true
	b.ended.Go(func() {
		for w.begin() {
			b.saveDeleted()
		}
	})
}

// begin says whether there is anything to save, or ends the saving.
func (w *saver) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saving, w.asked = w.asked, false
	return w.saving
}

// erase says whether the virtual host is deleted too.
func (vh *VHost) erase(q *Queue) (all bool) {
	vh.mu.Lock()
	defer vh.unlock()
	if vh.queues[q.name] == q {
		delete(vh.queues, q.name)
		vh.charge(&q.policies, &applied{})
		vh.undeclare(q.footprint())
		if q.durable() {
			vh.undefine(q.definition().key())
			vh.define(deletedKey(q.id), true)
		}
	}
	if q.recovered && vh.b.queueByID(q.id) == q {
		vh.b.adopted.Add(-1)
	}
	delete(vh.owned[q.owner], q)
	vh.unbindEnd(destination{queue: q})
	vh.b.dropQueueID(q)
	vh.b.alarms.drop(q)
	vh.changed()
	return vh.deleted
}

// deletedKey is that of the note that a queue was deleted. It is made when the queue's
// definition goes, so that a start drops the messages which the journal may still have
// then, and keeps those of a queue whose definition is missing for another reason. Dead
// letters that had left the queue before and are not where they go yet are kept, too, once
// the note is gone.
func deletedKey(id uint64) string { return keyOf(deletedKind, strconv.FormatUint(id, 10)) }

// forgetDeleted removes the notes once the journal says that the queues' messages have
// gone.
func (b *Broker) forgetDeleted(ids ...uint64) {
	if !b.saving() {
		return
	}
	gone := make([]store.Definition, len(ids))
	for i, id := range ids {
		gone[i].Key = deletedKey(id)
	}
	b.store.Synced(func(err error) {
		if err == nil {
			b.store.DefineLater(gone...)
		}
	})
}

// Release deletes the exclusive queues of a connection that has gone.
func (vh *VHost) Release(owner Owner) {
	vh.mu.Lock()
	owned := vh.owned[owner]
	delete(vh.owned, owner)
	vh.mu.Unlock()
	for q := range owned {
		vh.remove(q, func() error { return nil })
	}
}

// Purge drops the ready messages and returns how many there were; purged ones
// are not dead-lettered.
func (q *Queue) Purge() int {
	s := q.vh.b.step()
	defer s.done()
	q.lock(s)
	defer q.mu.Unlock()
	q.stir(s.now)
	n := q.core.Purge(&s.fx)
	q.finish(s, Lazy)
	return n
}

// generatedName is a server-named queue's name, as RabbitMQ's look.
func generatedName() string {
	var b [16]byte
	rand.Read(b[:])
	return "amq.gen-" + base64.RawURLEncoding.EncodeToString(b[:])
}

// newIncarnation draws the identity of a declared queue. 63 random bits: among
// a million queues over a broker's life the chance that two agree is below
// 10^-7, and the deadline in every reference makes even that harmless.
func newIncarnation() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:]) | 1 // the store takes no zero
}
