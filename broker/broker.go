package broker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/memory"
	"curfew/broker/store"
)

// Precedence says which time to live counts where queue and message both set one.
type Precedence uint8

const (
	// Lower takes the lower of the two (RabbitMQ: Time-To-Live).
	Lower Precedence = iota
	// MessageFirst lets the message's own win, as OtterMQ does.
	MessageFirst
)

// ParsePrecedence reads the name of a precedence as in x-ttl-precedence: min or message.
func ParsePrecedence(name string) (p Precedence, ok bool) {
	switch name {
	case "min":
		return Lower, true
	case "message":
		return MessageFirst, true
	}
	return Lower, false
}

// Unroutable says what becomes of a dead letter whose dead-letter exchange is
// missing or routes it nowhere.
type Unroutable uint8

const (
	// Park moves it into the virtual host's UndeliverableQueue.
	Park Unroutable = iota
	// Drop loses it, as RabbitMQ's at-most-once dead-lettering does.
	Drop
)

// UndeliverableQueue is the queue in which dead letters without a destination
// are parked; made in a virtual host when first needed.
const UndeliverableQueue = "curfew.undeliverable"

// DefaultMaxMessageBytes is RabbitMQ's max_message_size.
const DefaultMaxMessageBytes = 16 << 20

// Options configure a Broker. The zero value is a memory-only broker with
// RabbitMQ's rules.
type Options struct {
	Store             store.Options // with Dir "": memory only. Relocate, OnFull and MemoryLimit are the broker's
	Clock             Clock         // nil: the clock of the last run, or at first the wall clock, carried by elapsed time
	Wall              Clock         // with Clock: what the instants that users give and are shown are of; nil: Clock
	TTLPrecedence     Precedence    // of queues for which neither an argument nor a policy names one
	TTLOff            bool          // no message expires: what says so otherwise is checked and kept, and not in force
	Unroutable        Unroutable
	IdleMinimum       time.Duration // the least x-auto-delete-on-idle, by policy too; 0: DefaultIdleMinimum
	User, Password    string        // applied at the first start and when they are others than before; default guest, guest
	Ceilings          Ceilings
	GuestFromAnywhere bool                                          // the user guest may log in from other machines too
	MaxMessageBytes   int                                           // of one body; 0: DefaultMaxMessageBytes
	MemoryLimit       int64                                         // bytes of memory above which publishers wait; 0: none
	MemoryInUse       func() int64                                  // what is held against it; nil: resident memory, page cache not counted
	DiskFreeLimit     int64                                         // bytes of free disk below which publishers wait, a sixteenth of the disk at most; 0: none
	DiskSpace         func(dir string) (free, all int64, err error) // in bytes; nil: of the file system dir is in
	// OnExpired, if not nil, is told of every message that expired, in batches, when it is
	// where it goes; what it is given is valid during the call. It is called from any
	// goroutine, with no lock held, and must not block.
	OnExpired    func([]Expiry)
	TraceExpired bool // what OnExpired is told has the trace context of the message
	Log          *zap.Logger
}

// Broker is an AMQP 0-9-1 broker without sockets: virtual hosts, exchanges,
// queues, consumers, dead-lettering, and the view of its deadlines that a
// monitor works with. Safe for concurrent use.
type Broker struct {
	opts      Options
	store     *store.Store
	durable   bool // the store has a directory
	clock     Clock
	log       *zap.Logger
	feed      feed
	counters  counters
	watcher   atomic.Pointer[func([]Expiry)]
	alarms    alarms
	tidier    tidier
	delayed   delayTimer
	forwarder forwarder
	saver     saver
	accounts  accounts
	guesses   guesses
	sessions  sessions
	gate      gate
	declared  declared
	clients   *memory.Budget
	crowds    crowds

	// admin is held over a change of users, permissions, virtual hosts or global parameters
	// until it is saved, so that each finds the one before as it came out. Taken before all
	// others.
	admin       sync.Mutex
	aheadOfWall func() int64 // how far the clock was ahead of the wall clock when it was read last, ns

	quit  chan struct{} // closed by Close
	ended sync.WaitGroup

	recovered atomic.Bool  // the queues of the last run are back
	restored  int          // their messages
	adopted   atomic.Int64 // queues with messages of queues whose definitions were missing

	mu     sync.RWMutex
	vhosts map[string]*VHost
	byID   map[uint64]*Queue // every live queue by its incarnation
	global map[string]any    // global parameters: JSON values, not changed in place
	// retired is what deleted queues have counted.
	retired QueueCounts
}

// New makes a broker with what the store's directory holds of the last run; at
// first that is the virtual host "/" and the configured user. It returns when all of that is back.
func New(o Options) (*Broker, error) {
	ownClock, aheadOfWall := o.Clock == nil, o.Clock.aheadOf(o.Wall)
	if ownClock {
		o.Clock, aheadOfWall = carried(newOffset())
	}
	b := newBroker(o, aheadOfWall)
	if err := b.openStore(b.opts.Store, ownClock); err != nil {
		b.stop()
		return nil, err
	}
	b.ended.Go(b.alarms.run)
	b.ended.Go(b.watchLevels)
	b.ended.Go(b.delayed.run)
	b.ended.Go(b.forwarder.run)
	return b, nil
}

// newBroker makes a broker without a store.
func newBroker(o Options, aheadOfWall func() int64) *Broker {
	o.Ceilings.setDefaults()
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if o.IdleMinimum == 0 {
		o.IdleMinimum = DefaultIdleMinimum
	}
	if o.User == "" {
		o.User, o.Password = guest, guest
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.MemoryInUse == nil {
		o.MemoryInUse = memoryInUse
	}
	if o.DiskSpace == nil {
		o.DiskSpace = diskSpace
	}
	if o.Store.Log == nil {
		o.Store.Log = o.Log
	}
	b := &Broker{
		opts: o, durable: o.Store.Dir != "", clock: o.Clock, aheadOfWall: aheadOfWall, log: o.Log.Named("broker"),
		vhosts: map[string]*VHost{}, byID: map[uint64]*Queue{},
	}
	b.declared.init(o.MemoryLimit)
	b.clients = memory.New(clientsShare(&o))
	b.feed.init()
	b.gate.changed, b.gate.poke, b.quit = make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	b.vhosts["/"] = newVHost(b, "/")
	b.accounts.init()
	b.sessions.init()
	b.alarms.init(b)
	b.delayed.init(b)
	b.forwarder.init(b)
	return b
}

// Close stops the broker's own goroutines and closes the store. Connections must
// have ended before. To be called once. Messages on their way to dead-letter exchanges
// have some seconds to arrive; those that have not are in their queues in the next run.
func (b *Broker) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	if b.Forwarded(ctx) != nil {
		b.log.Warn("dead letters are still on their way; the next start finds them in their queues", zap.Int64("letters", b.forwarder.waiting.Load()))
	}
	b.stop()
	return b.store.CloseClean(b.delivered())
}

func (b *Broker) stop() {
	b.tidier.stop()
	close(b.quit)
	b.ended.Wait()
}

// Failed delivers the error that ended the store, if one ever does: nothing
// durable can be confirmed any more, and only a new start knows what was written.
func (b *Broker) Failed() <-chan error { return b.store.Failed() }

// Adopted is how many queues there are that hold messages found without the definition
// of their queue (RecoveredPrefix).
func (b *Broker) Adopted() int { return int(b.adopted.Load()) }

// Unsaved is why the last changes of definitions are not on the disk, nil if they are.
func (b *Broker) Unsaved() error { return b.store.Unsaved() }

// VHost returns the virtual host of that name.
func (b *Broker) VHost(name string) (*VHost, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	vh, ok := b.vhosts[name]
	return vh, ok
}

// MaxMessageBytes is the largest body a publish may have.
func (b *Broker) MaxMessageBytes() int { return b.opts.MaxMessageBytes }

// Now is the present instant in Unix µs by the clock deadlines are stamped
// with, rounded down.
func (b *Broker) Now() int64 { return b.clock.nowAt() }

// Commit runs fn once all that was published and settled before the call is as
// durable as the store's mode promises; at once when nothing is pending.
func (b *Broker) Commit(fn func(error)) { b.store.Commit(fn) }

// QueueName names the queue of an incarnation, while it exists.
func (b *Broker) QueueName(id uint64) (vhost, name string, ok bool) {
	if q := b.queueByID(id); q != nil {
		return q.vh.name, q.name, true
	}
	return "", "", false
}

func (b *Broker) queueByID(id uint64) *Queue {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.byID[id]
}

func (b *Broker) addQueueID(q *Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byID[q.id] = q
}

// dropQueueID forgets a deleted queue, but not what it has counted.
func (b *Broker) dropQueueID(q *Queue) {
	counts := q.Counters()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byID[q.id] != q {
		return
	}
	delete(b.byID, q.id)
	if q.delays == nil {
		b.counters.queuesDeleted.Add(1)
		b.retired.add(&counts)
	}
}
