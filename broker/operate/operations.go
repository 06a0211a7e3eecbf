package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/definitions"
	"curfew/broker/server"
)

// Delays are the messages that wait in delay queues of RabbitMQ. Errors are an ErrNotFound, or say what to do.
type Delays interface {
	// ListDelays lists up to limit messages, the first to be due first: those that are due before an instant, zero for all, with an id, "" for any.
	ListDelays(queue, id string, before time.Time, limit int) ([]DelayRow, error)
	// CancelDelay ends the wait of a message that is then never delivered.
	CancelDelay(queue, id string) error
	// Reschedule has a message wait for that long from now.
	Reschedule(queue, id string, in time.Duration) error
}

// DelayRow is a message that waits.
type DelayRow struct {
	ID, Key   string // ID "": nothing can be done to it
	To        string // of a queue of retries, the queue that it goes to
	DueMillis int64  // Unix ms; 0: it is not known
	Known     string // how the time is known
}

// Options of Operations. Broker and Server are required, or else Delays.
type Options struct {
	Broker *broker.Broker
	Server *server.Server
	// NodeName is the node's name in lists.
	NodeName string
	// Version is written into exported definitions.
	Version definitions.Version
	// DataDir is where messages are kept; "": in memory only.
	DataDir string
	// Delays of RabbitMQ, for operations without a broker (Op.NoBroker); nil: there is a broker.
	Delays Delays
	// Node is what operations on a node are about (Op.OfNode); nil: it is not known here.
	Node any
	// Recorder of what users change; nil: nothing is recorded.
	Recorder *Recorder
	Log      *zap.Logger
	// Purpose infers what a queue is for, and Wait tells how long messages wait in the queue of that number; nil: that is not known.
	Purpose func(*broker.Queue) deadline.Purpose
	Wait    func(queue uint64) deadline.Wait
	// Now is the clock for rates; nil: time.Now.
	Now func() time.Time
}

// Operations has everything that can be done to one broker: it checks who may do what, waits for commits and records changes. Safe for concurrent use.
type Operations struct {
	Options
	Rates *Rates // of the broker's counts

	log       *zap.Logger
	started   time.Time
	replacing sync.Mutex // held while an operation replaces something (Typed.Replaces)
	seed      maphash.Seed
	runs      runs

	// epoch counts the changes that were made. The lists below are of all virtual hosts.
	epoch            atomic.Uint64
	queues           cachedList[[]Queue]
	consumers        cachedList[[]Consumer]
	deadLetterQueues cachedList[[]deadletters.Queue]
}

// New makes the operations of a broker.
func New(o Options) *Operations {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Recorder == nil {
		o.Recorder = NewRecorder(RecorderOptions{})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Purpose == nil {
		o.Purpose = func(q *broker.Queue) deadline.Purpose { return q.Settings().Purpose }
	}
	if o.Wait == nil {
		o.Wait = func(uint64) deadline.Wait { return deadline.Wait{} }
	}
	all := &Operations{Options: o, started: time.Now(), log: o.Log.Named("operate"), seed: maphash.MakeSeed()}
	all.runs.access = all
	all.Rates = &Rates{all: all.countAll, now: o.Now, courses: map[any]*course{}}
	return all
}

// QueueName names a queue. It may be the short name of a sub-queue.
type QueueName struct{ VHost, Name string }

// Permit checks an operation's role and, in the virtual host that is among the names of the request's path, access to it. Faces call it before they
// read a long request; each method checks again. A change that is refused is recorded with these names, as one that is done is.
func (o *Operations) Permit(a Actor, op Operation, names map[string]string) error {
	err := o.permit(&a, op, names["vhost"])
	if err == nil || Rules[op].Looks {
		return err
	}
	var more []zap.Field
	for name, value := range names {
		defined, key := Defined[op], name
		if defined != nil && defined.Field(name) != nil {
			key = defined.Field(name).Log
		}
		if name != "vhost" && name != "queue" && key != "" {
			more = append(more, zap.String(key, value))
		}
	}
	o.Record(a, op, QueueName{VHost: names["vhost"], Name: names["queue"]}, err, more...)
	return err
}

func (o *Operations) permit(a *Actor, op Operation, vhost string) error {
	r, known := Rules[op]
	if !known {
		panic("operate: no rule for " + string(op))
	}
	return o.Enter(*a, r.Role, vhost, r.Looks)
}

// Enter checks a role and, in a virtual host ("" none), access to it: some permission there, or the role Monitor for a request that only
// reads (looks). It is for requests that are not an operation of this package.
func (o *Operations) Enter(a Actor, role Role, vhost string, looks bool) error {
	if err := a.Require(role); err != nil {
		return err
	}
	if vhost == "" || role == Administrator || o.Broker == nil {
		return nil
	}
	if _, ok := o.Broker.VHost(vhost); !ok {
		return ErrNoVHost
	}
	if looks && a.Has(Monitor) || o.Broker.Accounts.HasPermissions(a.Name, vhost) {
		return nil
	}
	return ErrNoEntry
}

// VHosts returns the virtual hosts that the actor may look into: all for the role Monitor, otherwise those where the user has permissions.
func (o *Operations) VHosts(a Actor) (list []*broker.VHost) {
	for _, vh := range o.Broker.VHosts() {
		if a.Has(Monitor) || o.Broker.Accounts.HasPermissions(a.Name, vh.Name()) {
			list = append(list, vh)
		}
	}
	return list
}

// Nowhere says to a user who may look into no virtual host why every list is empty, and what to do about it; "" to all others. Every answer of the API
// has it, and commands print it.
func (o *Operations) Nowhere(a Actor) string {
	if o.Broker == nil || a.Has(Monitor) || len(o.VHosts(a)) > 0 {
		return ""
	}
	return "you have no permission in any virtual host; an administrator gives it with: curfew user permissions set " + deadline.Shell(a.Name) + " '.*' '.*' '.*'"
}

// VHostNames returns the names of VHosts.
func (o *Operations) VHostNames(a Actor) (names []string) {
	for _, vh := range o.VHosts(a) {
		names = append(names, vh.Name())
	}
	return names
}

// vhost finds a virtual host that an operation is permitted in.
func (o *Operations) vhost(a *Actor, op Operation, name string) (*broker.VHost, error) {
	if err := o.permit(a, op, name); err != nil {
		return nil, err
	}
	vh, ok := o.Broker.VHost(name)
	if !ok {
		return nil, ErrNoVHost
	}
	return vh, nil
}

// queue finds a queue that an operation is permitted on.
func (o *Operations) queue(a *Actor, op Operation, at QueueName) (*broker.Queue, error) {
	vh, err := o.vhost(a, op, at.VHost)
	if err != nil {
		return nil, err
	}
	name := vh.Queues.NameOf(at.Name)
	if err := o.MayOn(a, op, vh, name); err != nil {
		return nil, err
	}
	q, err := vh.Queues.Get(name)
	if err != nil {
		return nil, ErrNotFound
	}
	return q, nil
}

// MayOn checks the permissions on a queue that an operation requires.
func (o *Operations) MayOn(a *Actor, op Operation, vh *broker.VHost, name string) error {
	r, rights := Rules[op], o.Broker.RightsOf(a.Name, vh.Name())
	if r.Read == Always || r.Read == UnlessMonitor && !a.Has(Monitor) {
		if err := rights.Queue(access.Read, name); err != nil {
			return err
		}
	}
	if r.Write == Always {
		return rights.Queue(access.Write, name)
	}
	return nil
}

// version returns a text that changes with the values. It means nothing after a restart.
func (o *Operations) version(values ...any) string {
	text, _ := json.Marshal(values) // it never fails for the types of operations
	return strconv.FormatUint(maphash.Bytes(o.seed, text), 36)
}

// Commit waits until the changes are as durable as the store makes them; it is broker.Broker.Commit.
func (o *Operations) Commit(ctx context.Context, from ...*broker.Queue) error {
	done := make(chan error, 1)
	o.Broker.Commit(func(err error) { done <- err }, from...)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Record records a change that a user made, or tried to make.
func (o *Operations) Record(a Actor, op Operation, at QueueName, err error, more ...zap.Field) {
	if err == nil {
		o.epoch.Add(1)
	}
	o.Recorder.Record(a, op, at, err, more...)
}

// May reports whether the actor may do an operation on a queue, for faces that show a form only to users who can use it.
func (o *Operations) May(a Actor, op Operation, at QueueName) bool {
	vh, err := o.vhost(&a, op, at.VHost)
	return err == nil && o.MayOn(&a, op, vh, vh.Queues.NameOf(at.Name)) == nil
}

// MayChange reports whether a user may change something in a virtual host, or for "" in any of them. What it then takes of a queue or an exchange
// is not asked.
func MayChange(o *Operations, a Actor, vhost string) bool {
	if vhost == "" {
		return slices.ContainsFunc(o.VHostNames(a), func(name string) bool { return MayChange(o, a, name) })
	}
	return o.Enter(a, Management, vhost, false) == nil
}

// MayExchange reports whether a user may do something with the exchange of that name.
func MayExchange(o *Operations, a Actor, do access.Operation, vhost, name string) bool {
	return MayChange(o, a, vhost) && o.Broker.RightsOf(a.Name, vhost).Exchange(do, name) == nil
}

// MayQueue reports whether a user may do something with the queue of that name.
func MayQueue(o *Operations, a Actor, do access.Operation, vhost, name string) bool {
	return MayChange(o, a, vhost) && o.Broker.RightsOf(a.Name, vhost).Queue(do, name) == nil
}

// ExchangeName names an exchange; "" is the default one.
type ExchangeName struct{ VHost, Name string }

// DefaultExchange is how paths and lists name the default exchange.
const DefaultExchange = "amq.default"

// ExchangeNamed is the name of an exchange that a path names.
func ExchangeNamed(path string) string {
	if path == DefaultExchange {
		return ""
	}
	return path
}
