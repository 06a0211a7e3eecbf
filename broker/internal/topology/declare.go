package topology

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/internal/delivery"
	"curfew/broker/policy"
)

// LockQueue is the name that requests to renew a lock are published to, by the default
// exchange. It is not a queue.
const LockQueue = "curfew.locks"

// QueueDeclare is what queue.declare carries besides the name.
type QueueDeclare struct {
	Durable, Exclusive, AutoDelete bool
	Args                           amqp.Table
}

// Queues holds the queues of a virtual host, and makes and deletes them. Guarded by the virtual host's mu.
type Queues struct {
	vh     *VHost
	queues map[string]*Queue
	cased  map[string][]*Queue           // those whose names are not in lower case, by what that would be
	owned  map[Owner]map[*Queue]struct{} // exclusive queues, by connection
	coming int                           // queues that are being saved
}

// Declare returns the queue of that name and makes it if it does not exist. For an
// empty name it generates one. An existing queue must have been declared in the same way.
// Declaring counts as use for x-expires. Errors: 403 reserved name, 405 another
// connection's exclusive queue, 406 wrong or inequivalent argument.
func (t *Queues) Declare(owner Owner, name string, d QueueDeclare) (*Queue, error) {
	return t.DeclareFor(func(string, *QueueDeclare) error { return nil }, owner, name, d)
}

// Permit checks the permissions of the user who declares a queue. It is called first without making, so that a refusal reveals
// nothing about the queue, and again before a queue that does not exist is made, with its declaration.
type Permit func(name string, making *QueueDeclare) error

// DeclareFor is Declare for a user who needs permissions.
func (t *Queues) DeclareFor(may Permit, owner Owner, name string, d QueueDeclare) (*Queue, error) {
	d = t.withDefaultType(name, d)
	if err := policy.CheckNamed(name, d.Args); err != nil {
		return nil, err
	}
	serverNamed := name == ""
	if serverNamed {
		name = generatedName()
	}
	if err := may(name, nil); err != nil {
		return nil, err
	}
	if name != policy.UndeliverableQueue { // it is declared for each dead letter that is parked
		t.vh.registry.Declared.Add(1)
	}
	if serverNamed {
		// no queue has this name
	} else if q, err := t.GetFor(owner, name); err == nil {
		if err = q.redeclare(d); err == delivery.ErrGone {
			q.erase() // its deletion is about to do the same
			return t.DeclareFor(may, owner, name, d)
		}
		return q, err
	} else if code(err) != amqp.NotFound {
		return nil, err
	} else if strings.HasPrefix(name, "amq.") {
		return nil, amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' contains reserved prefix 'amq.*'", name)
	}
	if name == policy.UndeliverableQueue && (!d.Durable || d.Exclusive || d.AutoDelete || len(d.Args) > 0) {
		return nil, amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' is reserved for parked dead letters; declare it durable, without arguments", name)
	}
	if name == LockQueue {
		return nil, amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' is reserved for requests to renew locks", name)
	}
	if err := checkSubqueue(name); err != nil {
		return nil, err
	}
	if err := may(name, &d); err != nil {
		return nil, err
	}
	q, err := t.makeWithSubqueue(owner, name, d)
	if err == errTaken {
		return t.DeclareFor(may, owner, name, d) // another declare was faster
	}
	return q, err
}

// errTaken is the error of makeQueue for a name that has a queue.
var errTaken = errors.New("broker: queue exists")

// makeQueue makes a queue that does not exist yet.
func (t *Queues) makeQueue(id uint64, owner Owner, name string, d QueueDeclare) (*Queue, error) {
	set, err := t.settingsOf(name, d)
	if err != nil {
		return nil, err
	}
	q := t.newQueue(id, owner, name, d, set)
	if err := t.addQueue(q); err != nil {
		return nil, err
	}
	q.Messages.Idle.Renew()
	return q, nil
}

// settingsOf reads a declaration. With an error it returns the settings that are valid.
func (t *Queues) settingsOf(name string, d QueueDeclare) (policy.Settings, error) {
	label := t.queueLabel(name)
	set, err := policy.ParseQueue(t.vh.registry.defaults, label, d.Args)
	wrong := set.Type.CheckProperties(label, d.Durable, d.Exclusive, d.AutoDelete)
	if err == nil {
		err = wrong
	}
	if wrong = set.NameSubqueue(label, name); err == nil {
		err = wrong
	}
	return set, err
}

// newQueue makes a queue without adding it.
func (t *Queues) newQueue(id uint64, owner Owner, name string, d QueueDeclare, set policy.Settings) *Queue {
	if len(d.Args) == 0 {
		d.Args = nil
	}
	q, shared := &Queue{vh: t.vh, policies: ungoverned}, t.vh.registry.settings.share(set)
	q.declared.Store(&declaration{d, shared})
	q.Messages.Init(delivery.QueueOptions{
		Env: t.vh.registry.env, Registered: q, Identity: &q.Identity, ID: id, VHost: t.vh.guard.name, Name: name, Lines: t.vh.lines, Durable: d.Durable && !d.Exclusive, AutoDelete: d.AutoDelete,
		Settings: shared,
	})
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
	label, cur := q.Label(), q.Declared()
	if d.Exclusive != cur.Exclusive {
		return q.locked()
	}
	for _, p := range []struct {
		name          string
		received, has bool
	}{{"durable", d.Durable && !d.Exclusive, q.Durable}, {"auto_delete", d.AutoDelete, cur.AutoDelete}} {
		if p.received != p.has {
			return policy.Inequivalent(p.name, label, strconv.FormatBool(p.received), strconv.FormatBool(p.has))
		}
	}
	if err := policy.CheckEqual(label, d.Args, cur.Args, q.Arguments.Type.ComparedArgs()); err != nil {
		return err
	}
	if !q.Messages.Idle.Renew() {
		return delivery.ErrGone
	}
	return nil
}

// addQueue saves the queue and then adds it to the table.
func (t *Queues) addQueue(q *Queue) error {
	saved, claimed := q.definition(), t.vh.guard.claimed
	if q.Name == policy.UndeliverableQueue { // dead letters wait for it
		claimed = t.vh.guard.claimedNow
	}
	return claimed(saved.Key(), func() error {
		if _, taken := t.queues[q.Name]; taken {
			return errTaken
		}
		if err := t.checkQueueLimitLocked(q.Name); err != nil {
			return err
		}
		if err := t.vh.memory.takeLocked(q.footprint(), t.queueLabel(q.Name), q.Name == policy.UndeliverableQueue); err != nil {
			return err
		}
		t.coming++
		a, err := t.vh.Policies.saveNewLocked(governed{queue: q}, q.Durable, saved.Key(), saved)
		t.coming--
		if err != nil {
			t.vh.memory.giveLocked(q.footprint())
			return err
		}
		t.placeQueueLocked(q, a)
		return nil
	})
}

// placeQueueLocked is the end of addQueue.
func (t *Queues) placeQueueLocked(q *Queue, a *applied) {
	t.queues[q.Name] = q
	if lower := strings.ToLower(q.Name); lower != q.Name {
		t.cased[lower] = append(t.cased[lower], q)
	}
	q.policies = a
	q.applySettings()
	if q.owner != nil {
		if t.owned[q.owner] == nil {
			t.owned[q.owner] = map[*Queue]struct{}{}
		}
		t.owned[q.owner][q] = struct{}{}
	}
	t.vh.registry.add(q)
	t.vh.registry.Created.Add(1)
	t.vh.changedLocked()
}

// QueueDeletion holds the conditions for deleting a queue.
type QueueDeletion struct {
	IfUnused, IfEmpty bool   // empty: it also has no dead letters that would be deleted with it
	QueueID           uint64 // if the queue is another incarnation, nothing is deleted; 0: any
	AtMost            *int   // how many messages, ready and unacked, and dead letters may be deleted with it; nil: any number
}

// Delete deletes the queue with its messages and returns how many were ready. A queue
// that does not exist is not an error. The messages are not dead-lettered (RabbitMQ: Dead
// Letter Exchanges). Conditions are checked at the moment of deletion; messages in its dead-letter
// sub-queue are counted just before. Errors: 405 another connection's exclusive queue, 406 in use,
// not empty, or with more messages than AtMost, where that was asked.
func (t *Queues) Delete(owner Owner, name string, d QueueDeletion) (messages int, err error) {
	q, err := t.GetFor(owner, name)
	if err == nil && d.QueueID != 0 && d.QueueID != q.ID {
		err = delivery.NoQueue(t.vh.guard.name, name)
	}
	if err != nil {
		if code(err) == amqp.NotFound {
			return 0, nil
		}
		return 0, err
	}
	if err := t.checkQueueDeletable(name); err != nil {
		return 0, err
	}
	own := q.inSubqueue() // its lock and that of q are never held together
	messages, err = q.remove(func(held delivery.Holding) error {
		if d.IfUnused && held.Consumers > 0 {
			return delivery.ErrInUse
		}
		if d.IfEmpty && held.Messages-held.Unacked+held.Retained+own > 0 {
			return delivery.ErrNotEmpty
		}
		if n := held.Messages + held.Retained + own; d.AtMost != nil && n > *d.AtMost {
			return fmt.Errorf("has %d messages and dead letters, more than the %d that may be deleted", n, *d.AtMost)
		}
		if q.Durable && !q.Declared().AutoDelete && q.Consumed() {
			q.marks.Or(missed)
		}
		return nil
	})
	if err != nil && err != delivery.ErrGone {
		return 0, amqp.NewException(amqp.PreconditionFailed, 0, 0, "%s %s", q.Label(), err)
	}
	return messages, nil
}

// Release deletes the exclusive queues of a connection that has gone.
func (t *Queues) Release(owner Owner) {
	t.vh.guard.lock()
	owned := t.owned[owner]
	delete(t.owned, owner)
	t.vh.guard.unlock()
	for q := range owned {
		_, _ = q.remove(nil) // only a second deletion fails
	}
}

// generatedName is the name of a server-named queue, in RabbitMQ's form.
func generatedName() string {
	var b [16]byte
	rand.Read(b[:])
	return "amq.gen-" + base64.RawURLEncoding.EncodeToString(b[:])
}

// NewIncarnation draws the identity of a declared queue. 63 random bits: among
// a million queues over a broker's life the chance that two are equal is below
// 10^-7, and the deadline in every reference makes even that harmless.
func NewIncarnation() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:]) | 1 // the store takes no zero
}
