package keeper

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// Options of a Keeper. Queue, Connect and Facts are required.
type Options struct {
	VHost, Queue string
	// Connect returns a connection to any node, or this keeper's part of one. Its heartbeat decides how long a keeper that hangs
	// keeps its messages; 5 s are good. The keeper closes it.
	Connect func(context.Context) (*cluster.Conn, error)
	// Facts returns what is true of the queue now. It is called after each connect, after the queue was declared again, and at an
	// event FactsChanged. Only after the first connect does the keeper wait for it.
	Facts func(context.Context) (Facts, error)
	// Events reports what has happened to the queue; nil: a look every half second has to find out.
	Events <-chan Event
	// Lease makes sure that only one of several Curfews keeps the queue; nil: there are no others.
	Lease Lease
	// SeenUntil is until when another keeper, from which the lease came, surely had all messages; nil, or 0: unknown.
	SeenUntil func() deadline.Instant
	// Shadows remember deadlines beyond this process; nil: they are forgotten.
	Shadows Shadows
	// Remembered are the deadlines that the queue's last keeper in this process knew (Keeper.Remembered).
	Remembered []Shadow
	// Expired is called with the messages that expired because they were given back, in batches that are valid during
	// the call. It must not block; nil: nobody is told.
	Expired func([]Expiry)
	// Changed is called at each change of state; it must not block or call the keeper. nil: nobody is told.
	Changed func(Status)

	// Name is the name of this Curfew, and a part of its consumer tags; "" is "curfew".
	Name string

	MaxMessages int   // held at most; 0 is 100,000
	MaxBytes    int64 // of their bodies; 0 is 1 GiB. Bodies are held by RabbitMQ, not here
	PerChannel  int   // 0 is 1,000
	TakeRate    int   // messages per second at the start; 0 is 5,000
	// LookEvery is how long it may take until RabbitMQ is asked again for the counts of the queue, while all of it is held; nil: no longer than otherwise.
	LookEvery func() time.Duration

	Log *zap.Logger
	// Now returns the present instant; nil: the wall clock at the start of the Keeper, continued by the monotonic clock.
	Now func() deadline.Instant
}

// Event is something that has happened in the cluster.
type Event struct {
	Kind EventKind
	// ConsumerTag is that of the consumer that came. The tags of keepers begin with tagPrefix.
	ConsumerTag string
}

type EventKind uint8

const (
	ConsumerCame EventKind = iota
	FactsChanged
	// QueueDeleted may come when the queue was declared again. Then a channel of RabbitMQ 3.x consumes from the new quorum queue by itself, and
	// passes nothing on.
	QueueDeleted
)

// tagPrefix begins the consumer tags of all keepers.
const tagPrefix = "curfew.keeper."

// Lease decides who keeps a queue.
type Lease interface {
	// Acquire takes the lease or renews it, and is called every second. holder names the one who has it. With an error
	// it is unknown who has it: a keeper that had it goes on, any other waits.
	Acquire(ctx context.Context) (holder string, held bool, err error)
	// Release gives it back, if it is held.
	Release(ctx context.Context) error
}

// Shadows remember the deadlines of a queue's held messages for its next keeper. Nothing waits for them, and a deadline
// that they lose costs probes, never a message. A deadline is of no use a minute after it has passed.
type Shadows interface {
	// Put remembers deadlines; it does not block.
	Put([]Shadow)
	// Load returns what is remembered.
	Load(context.Context) ([]Shadow, error)
	// Lost ticks when remembered deadlines may be gone: the keeper puts all of them again.
	Lost() <-chan struct{}
}

// Keeper keeps one queue exact. Its methods are safe for concurrent use; Run is called once.
type Keeper struct {
	o   Options
	log *zap.Logger

	facts Facts // of the last connection; of the goroutine of Run
	lease *Renewal

	mu      sync.Mutex
	core    *core
	told    State
	toldWhy reason
}

// New makes a Keeper that does nothing until Run.
func New(o Options) (*Keeper, error) {
	if o.Queue == "" || o.Connect == nil || o.Facts == nil {
		return nil, errors.New("keeper: Queue, Connect and Facts are required")
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Now == nil {
		start := time.Now()
		o.Now = func() deadline.Instant { return deadline.At(start.Add(time.Since(start))) }
	}
	o.Name = cmp.Or(o.Name, "curfew")
	o.MaxMessages = cmp.Or(o.MaxMessages, 100_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 1<<30)
	o.PerChannel = cmp.Or(o.PerChannel, 1000)
	o.TakeRate = cmp.Or(o.TakeRate, 5000)
	k := &Keeper{o: o, log: o.Log.With(zap.String("vhost", o.VHost), zap.String("queue", o.Queue))}
	k.lease = &Renewal{Lease: o.Lease, Log: k.log}
	k.core = newCore(config{perChannel: o.PerChannel, limit: o.MaxMessages, bytesLimit: o.MaxBytes, takeRate: o.TakeRate, endlessMost: endlessMost, lookEvery: o.LookEvery}, o.Now())
	k.core.given.remember(o.Now(), o.Remembered)
	return k, nil
}

// Status is the present state.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.statusLocked()
}

func (k *Keeper) statusLocked() Status {
	s := k.core.status()
	k.lease.Show(&s)
	return s
}

// NotWanted is the cause of the end of Run's context (context.WithCancelCause) if the queue may no longer be kept: with it
// the last release has this reason.
type NotWanted struct {
	Code   Code
	Reason string // one sentence
}

// Error implements error.
func (n *NotWanted) Error() string { return n.Reason }

func stopReason(ctx context.Context) reason {
	if n, ok := errors.AsType[*NotWanted](context.Cause(ctx)); ok {
		return reason{n.Code, n.Reason}
	}
	return stopped
}

// Run keeps the queue until ctx ends; then it gives everything back in order. It returns nil when everything that it
// started has ended.
func (k *Keeper) Run(ctx context.Context) error {
	k.lease.Run(ctx, Work{
		Waits: func(why string) {
			k.input(func(c *core, now deadline.Instant) { c.enter(now, Observing, reason{LostLease, why}) })
		},
		Taken:   func(waited bool) { k.taken(ctx, waited) },
		Session: k.runSession,
		Lost: func(err error) {
			k.input(func(c *core, now deadline.Instant) { c.disconnect(now, cluster.Words(err)) })
		},
	})
	k.input(func(c *core, now deadline.Instant) {
		why := stopReason(ctx)
		c.stop(now, why)
		c.disconnect(now, why.text) // what is still held was lost with the connection
	})
	k.lease.Release(ctx)
	return nil
}

// taken takes in that the lease was taken, and what is remembered of the queue. inherits: another Curfew has kept the queue until now.
func (k *Keeper) taken(ctx context.Context, inherits bool) {
	shadows := k.lease.LoadShadows(ctx, k.o.Shadows, "messages without a timestamp are given back in steps until they expire, and may be late")
	k.input(func(c *core, now deadline.Instant) {
		c.given.remember(now, shadows)
		if !inherits {
			return
		}
		c.looks.inherits = true
		if k.o.SeenUntil != nil {
			c.ages.drained = max(c.ages.drained, k.o.SeenUntil())
		}
	})
}

// input hands one input to the core, outside of a session.
func (k *Keeper) input(fn func(c *core, now deadline.Instant)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn(k.core, k.o.Now())
	k.tellLocked()
}

// tellLocked logs a change of state and hands it on.
func (k *Keeper) tellLocked() {
	c := k.core
	if c.state == k.told && c.reason == k.toldWhy {
		return
	}
	k.told, k.toldWhy = c.state, c.reason
	k.log.Info("state", zap.String("state", string(c.state)), zap.String("reason", c.reason.text), zap.Int("held", c.line.held.count))
	if k.o.Changed != nil {
		k.o.Changed(k.statusLocked())
	}
}

// ConsumerTag returns a tag that is unique among the keepers of all Curfews, and within a connection.
func ConsumerTag(name string, n int) string { return tagPrefix + name + "." + strconv.Itoa(n) }

// OfTag returns the name of the Curfew whose keeper has a consumer with this tag; "": the consumer is not a keeper's.
func OfTag(tag string) string {
	name, _ := strings.CutPrefix(tag, tagPrefix)
	at := strings.LastIndexByte(name, '.')
	if name == tag || at < 0 {
		return ""
	}
	return name[:at]
}
