package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/forward"
	"curfew/broker/internal/topology"
	"curfew/broker/memory"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// Unroutable is what becomes of a dead letter whose dead-letter exchange is
// missing or routes it nowhere.
type Unroutable uint8

const (
	// Park moves it into the virtual host's UndeliverableQueue.
	Park Unroutable = iota
	// Drop loses it, as RabbitMQ's at-most-once dead-lettering does.
	Drop
)

// DefaultMaxMessageBytes is RabbitMQ's max_message_size.
const DefaultMaxMessageBytes = 16 << 20

// Options configure a Broker. The zero value is a memory-only broker with
// RabbitMQ's rules.
type Options struct {
	Store             store.Options     // with Dir "": memory only. Relocate, OnFull and MemoryLimit are the broker's
	Clock             deadline.Clock    // nil: the clock of the last run, or at first the wall clock, carried by elapsed time
	Wall              deadline.Clock    // with Clock: the clock for instants that users give or see; nil: Clock
	Manual            bool              // the clock stands until Broker.Manual moves it; for a broker without a directory, and without Clock
	TTLPrecedence     policy.Precedence // of queues for which neither an argument nor a policy names one
	TTLOff            bool              // no message expires: settings of a time to live are checked and kept, but have no effect
	Unroutable        Unroutable
	IdleMinimum       time.Duration // the least x-auto-delete-on-idle, by policy too; 0: five minutes
	User, Password    string        // applied at the first start and when they have changed; default guest, guest
	Ceilings          Ceilings
	GuestFromAnywhere bool                                          // the user guest may log in from other machines, too
	MaxMessageBytes   int                                           // of one body; 0: DefaultMaxMessageBytes
	MemoryLimit       int64                                         // bytes of memory above which publishers wait; 0: none
	MemoryInUse       func() int64                                  // what is compared with it; nil: resident memory, page cache not counted
	DiskFreeLimit     int64                                         // bytes of free disk below which publishers wait, a sixteenth of the disk at most; 0: none
	DiskSpace         func(dir string) (free, all int64, err error) // in bytes; nil: of the file system dir is in
	// Expiries is the stream on which every expiry is reported (Deadlines.Expiries); nil: the
	// broker makes one. A subscriber that must not miss any expiry subscribes to it
	// before New.
	Expiries *deadline.Stream
	// OnLongHold is called each time that an operation has held the lock of a queue for 10 ms or more.
	// That lock is free by then, but others may be held: it must neither wait nor call the broker.
	// nil: nobody wants to know.
	OnLongHold func(Held)
	Log        *zap.Logger
}

// Broker is an AMQP 0-9-1 broker without sockets: virtual hosts, exchanges,
// queues, consumers, dead-lettering, and the view of its deadlines that a
// monitor works with. Safe for concurrent use.
type Broker struct {
	opts      Options
	env       delivery.Env
	durable   bool // the store has a directory
	log       *zap.Logger
	counters  counters
	forwarder forward.Forwarder
	Accounts  *catalog.Accounts
	Alarm     *memory.Alarm  // memory or disk is low: publishers wait
	Clients   *memory.Budget // for what connections and requests make the broker hold besides messages in queues
	vhostTable
	globalParameters
	delays       delayTable
	delayAnswers delayAnswers
	recovery     recovery
	catalog      catalog.Catalog
	sessions     sessions
	registry     topology.Registry
	turns        turns
	clocks

	// admin is held over a change of users, permissions, virtual hosts or global parameters
	// until it is saved, so that each change sees the result of the one before. Taken before
	// all others.
	admin sync.Mutex

	quit       chan struct{} // closed by Close
	ended      sync.WaitGroup
	background background
}

// New makes a broker with what the store's directory holds from the last run; at the first
// start that is the virtual host "/" and the configured user. It returns when all of it is
// restored.
func New(o Options) (b *Broker, err error) {
	ownClock := o.Clock == nil
	switch {
	case o.Manual && (o.Store.Dir != "" || !ownClock):
		return nil, errors.New("broker: Options.Manual goes with neither a directory nor a clock")
	case o.Manual:
		b = newManual(o)
	case ownClock:
		b = newBroker(o, deadline.NewClock())
	default:
		b = newBroker(o, deadline.GivenClock(o.Clock, o.Wall))
	}
	if err = b.openStore(b.opts.Store, ownClock); err != nil {
		b.stop()
		return nil, err
	}
	if b.Manual != nil {
		b.ended.Go(func() { b.Manual.run(b.quit) })
	} else {
		b.ended.Go(func() { b.env.Timers.Run(b.quit) })
		b.ended.Go(func() { b.env.DelayedTimers.Run(b.quit) })
	}
	b.ended.Go(func() { b.Alarm.Run(b.quit) })
	b.ended.Go(func() { b.forwarder.Run(b.quit) })
	b.ended.Go(func() { b.delayAnswers.run(b.quit) })
	return b, nil
}

// newBroker makes a broker without a store.
func newBroker(o Options, clock *deadline.KeptClock) *Broker {
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, DefaultMaxMessageBytes)
	if o.User == "" {
		o.User, o.Password = catalog.Guest, catalog.Guest
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	o.Store.Log = cmp.Or(o.Store.Log, o.Log)
	b := &Broker{
		opts: o, durable: o.Store.Dir != "", log: o.Log.Named("broker"),
	}
	b.env.Clock, b.env.Log, b.env.TTLOff = clock, b.log, o.TTLOff
	if b.env.Expiries = o.Expiries; b.env.Expiries == nil {
		b.env.Expiries = new(deadline.Stream)
	}
	b.env.Holds.OnLong = o.OnLongHold
	b.clocks.env, b.background.all = &b.env, &b.ended
	b.background.ended.L = &b.background.mu
	b.env.Init()
	b.registry.Init(topology.RegistryOptions{
		Env: &b.env, Catalog: &b.catalog, Log: b.log, Precedence: o.TTLPrecedence, IdleMinimum: o.IdleMinimum, Ceilings: o.Ceilings,
		MemoryLimit: o.MemoryLimit, Go: b.background.Go,
	})
	b.forwarder.Init(forward.Options{Env: &b.env, Log: b.log, MemoryLow: func() bool { memory, _ := b.Alarm.Low(); return memory }, Drop: o.Unroutable == Drop})
	b.Clients = memory.New(clientsShare(&o))
	b.Alarm, b.quit = memory.NewAlarm(memory.AlarmOptions{
		MemoryLimit: o.MemoryLimit, MemoryInUse: o.MemoryInUse, OnMemory: b.registry.Memory.Low,
		Dir: o.Store.Dir, DiskFreeLimit: o.DiskFreeLimit, DiskSpace: o.DiskSpace, Log: b.log,
	}), make(chan struct{})
	b.env.Quit = b.quit
	b.vhostTable.vhosts, b.vhostTable.ending = map[string]*VHost{}, map[string]chan struct{}{}
	b.recovery.b = b
	b.delayAnswers.wake = make(chan struct{}, 1)
	b.globalParameters.catalog, b.globalParameters.admin, b.globalParameters.values = &b.catalog, &b.admin, map[string]any{}
	b.vhostTable.add(newVHost(b, "/"))
	b.Accounts = catalog.NewAccounts(catalog.AccountsOptions{
		Catalog: &b.catalog, Admin: &b.admin, GuestFromAnywhere: o.GuestFromAnywhere, Log: b.log,
		HasVHost: func(name string) bool { _, ok := b.VHost(name); return ok },
		Deleted: func(user string) {
			b.sessions.end(func(s *Session) bool { return s.user == user }, fmt.Sprintf("user '%s' is deleted", user))
		},
	})
	s := &b.sessions
	s.open, s.ofUser, s.ofVHost, s.channels = map[*Session]struct{}{}, map[string]int{}, map[*VHost]int{}, map[string]int{}
	return b
}

// drainFor is how long a broker that stops goes on moving letters. Those that are left then
// are in their queues again in the next run.
const drainFor = 5 * time.Second

// Close stops the broker's own goroutines and closes the store. Connections must
// have ended before. It must be called only once. Messages on their way to dead-letter exchanges
// have some seconds to arrive; those that have not are in their queues in the next run.
func (b *Broker) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	if b.Forwarded(ctx) != nil {
		b.log.Warn("dead letters are still on their way; the next start finds them in their queues", zap.Int64("letters", b.env.Waiting.Load()))
	}
	b.stop()
	return b.env.Store.CloseClean(b.delivered())
}

// Forwarded waits until no message that has left a queue is on its way to another. Its
// error is that of ctx.
func (b *Broker) Forwarded(ctx context.Context) error { return b.forwarder.Wait(ctx) }

func (b *Broker) stop() {
	b.env.Shrinker.Stop()
	close(b.quit)
	b.ended.Wait()
}

// delivered lists the messages that consumers have seen and not settled, for the next
// run to mark redelivered. Consumers rely on a message that is not marked never having
// been delivered before. So after a crash, when there is no such list, all are marked,
// as RabbitMQ's classic queues do: to know more, a record of each delivery would have
// to be on the disk before the delivery.
func (b *Broker) delivered() (runs []store.Delivered) {
	for _, q := range b.registry.Queues() {
		if q.Durable {
			runs = q.Messages.AppendDelivered(runs)
		}
	}
	return runs
}

// Failed delivers the error that ended the store, if one ever does: nothing
// durable can be confirmed from then on, and only a new start knows what was written.
func (b *Broker) Failed() <-chan error { return b.env.Store.Failed() }

// Adopted is the number of queues that were made for messages whose own queue has no
// definition (RecoveredPrefix).
func (b *Broker) Adopted() int { return int(b.registry.Adopted.Load()) }

// diskLimit is how long the disk may take to answer before it counts as silent. A disk that is only slow answers sooner.
const diskLimit = 5 * time.Second

// DiskSilent is how long the disk has not answered a write or a sync; 0: it answers, or has not been asked for long enough to tell.
func (b *Broker) DiskSilent() time.Duration {
	if wait := b.env.Store.DiskWait(); wait > diskLimit {
		return wait
	}
	return 0
}

// Unsaved is why the last changes of definitions are not on the disk, nil if they are.
func (b *Broker) Unsaved() error { return b.env.Store.Unsaved() }

// VHostOf is the virtual host that a queue is in. Error: ErrNoVHost, it was deleted.
func (b *Broker) VHostOf(q *Queue) (*VHost, error) {
	vh, ok := b.VHost(q.VHost().Name())
	if !ok || vh.VHost != q.VHost() {
		return nil, ErrNoVHost
	}
	return vh, nil
}

// MaxMessageBytes is the largest body a publish may have.
func (b *Broker) MaxMessageBytes() int { return b.opts.MaxMessageBytes }

// Commit runs fn once all that was published and settled before the call is as durable as the store's
// mode promises; at once when nothing is pending. What left a queue to become a dead letter has done so
// once that has arrived: from are the queues whose dead letters on their way are waited for. fn must not
// block; it is not called if the broker closes before.
func (b *Broker) Commit(fn func(error), from ...*Queue) {
	if len(from) == 0 {
		b.env.Store.Commit(fn)
		return
	}
	from[0].Messages.Letters.After(func() { b.Commit(fn, from[1:]...) })
}

// clientsPart: clients' unfinished work may take one part in clientsPart of the memory limit.
const clientsPart = 16

// clientsShare is the part of the memory limit that clients' unfinished work may take: two
// of the largest messages at least, or nobody could publish one.
func clientsShare(o *Options) int64 {
	if o.MemoryLimit == 0 {
		return 0
	}
	return max(o.MemoryLimit/clientsPart, 2*int64(o.MaxMessageBytes))
}
