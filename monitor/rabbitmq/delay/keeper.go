package delay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// Options of a Keeper. Those of keeper.Options that are about other consumers and about ages have no effect here. MaxMessages is required.
type Options struct {
	keeper.Options
	// Exchange is the one that is bound to the queue for x-delay and x-cancel; "": the queue is fed by other bindings.
	Exchange string
	// ClockOffset is how far Now is ahead of the wall clock.
	ClockOffset func() time.Duration
	// User is the one of the connections; "" if it is not known: nothing is put aside then.
	User string
	// Aside is how many messages RabbitMQ has aside, by what it has said since then; negative: it has not said. nil: none is put aside.
	Aside func(since time.Time) int64
	// Bound returns the type of an exchange, and what is bound to it; with Exchange it is required.
	Bound func(ctx context.Context, exchange string) (kind string, all []cluster.Bound, err error)
	// Cancel says who may cancel, replace and reschedule by a message.
	Cancel cluster.Cancel
	// IsDelay reports whether messages wait in a queue, too; nil: in no other one.
	IsDelay func(queue string) bool
	// Inventory returns the last one.
	Inventory func() *cluster.Inventory
	// Retry is for mode retry; nil: mode delay. Cancel and Exchange have no effect then, and what follows is required.
	Retry *cluster.Backoff
	// Topology returns the exchanges and bindings of the last inventory; the error is why they are not known.
	Topology func() (map[string]cluster.Exchange, []cluster.Binding, error)
	// ConnectToPublish opens a connection for what is published.
	ConnectToPublish func(ctx context.Context) (*amqp091.Connection, error)
	// ConnectAMQP10 opens an AMQP 1.0 connection; with Aside or Retry it is required.
	ConnectAMQP10 func(ctx context.Context) (*amqp.Conn, error)
}

// Lasting are Shadows that remember what is overdue until they are told that nobody needs it any more.
type Lasting interface {
	keeper.Shadows
	// Passed forgets all deadlines before then.
	Passed(before deadline.Instant)
}

const (
	callTimeout  = 5 * time.Second
	passedEvery  = 30 * time.Second
	passedMargin = 3 * time.Minute // more than recentFor
)

// Keeper holds the messages of one queue until each is due. Its methods are safe for concurrent use; Run is called once.
type Keeper struct {
	o       Options
	log     *zap.Logger
	lease   *keeper.Renewal
	without error // why the last session has to be followed by one without AMQP 1.0; nil: it need not. Of the goroutine of Run

	mu       sync.Mutex
	core     *core
	state    keeper.State
	code     keeper.Code
	reason   string
	since    deadline.Instant
	lookedAt deadline.Instant
	ready    int
	troubles []Trouble
	wake     chan struct{} // the core has something to write, or may have
}

// Trouble is something that is wrong with a queue although its messages are held.
type Trouble struct {
	Name   string `json:"name"` // a fixed word: binding, bound, consumers, budget, unbound, undelivered, engine, exchange, park, policy, stray, tombstone, clock, ttl
	Reason string `json:"reason"`
	Since  int64  `json:"since"` // Unix ms
	until  deadline.Instant
}

// New makes a Keeper that does nothing until Run.
func New(o Options) (*Keeper, error) {
	if o.Queue == "" || o.Connect == nil || o.Facts == nil || o.Now == nil || o.ClockOffset == nil || o.Log == nil {
		return nil, errors.New("delay: Queue, Connect, Facts, Now, ClockOffset and Log are required")
	}
	if o.IsDelay == nil {
		o.IsDelay = func(string) bool { return false }
	}
	c := newCore(o.Queue, o.Cancel, o.IsDelay)
	c.self = o.User
	c.remember(o.Remembered)
	log := o.Log.With(zap.String("vhost", o.VHost), zap.String("queue", o.Queue))
	return &Keeper{o: o, log: log, lease: &keeper.Renewal{Lease: o.Lease, Log: log}, since: o.Now(), state: keeper.Observing, code: keeper.Looking, core: c, wake: make(chan struct{}, 1)}, nil
}

func (k *Keeper) nowLocked() deadline.Instant {
	k.core.clockIs(k.o.ClockOffset())
	return k.o.Now()
}

// Status is the present state.
func (k *Keeper) Status() keeper.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.statusLocked()
}

func (k *Keeper) statusLocked() keeper.Status {
	c := k.core
	s := keeper.Status{State: k.state, Code: k.code, Reason: k.reason, Since: k.since,
		Held: len(c.waiting.Items) - len(c.aside), CaughtUp: c.caughtUp, LookedAt: k.lookedAt, Ready: k.ready, Counts: c.counts}
	k.lease.Show(&s)
	for _, tombstone := range c.tombstones {
		if tombstone.channel != nil {
			s.Commands++
		}
	}
	if len(c.waiting.Items) > 0 {
		s.NextDue = c.waiting.Items[0].due
	}
	return s
}

// Engine is how messages wait: hold, or aside+hold if RabbitMQ has them aside until a minute before they are due. known is how many of those aside can
// be listed.
func (k *Keeper) Engine() (engine string, known int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if engine = "hold"; k.core.putsAside {
		engine = "aside+hold"
	}
	return engine, len(k.core.aside)
}

// PendingBefore appends how many messages are due before each instant.
func (k *Keeper) PendingBefore(until []deadline.Instant, out []int64) []int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, at := range until {
		out = append(out, before(k.core.waiting.Items, 0, at))
	}
	return out
}

// before counts those due before an instant in the part of a heap below an index.
func before(h []*held, i int, at deadline.Instant) int64 {
	if i >= len(h) || h[i].due >= at {
		return 0
	}
	return 1 + before(h, 2*i+1, at) + before(h, 2*i+2, at)
}

// enter changes the state.
func (k *Keeper) enter(s keeper.State, code keeper.Code, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s == k.state && code == k.code && reason == k.reason {
		return
	}
	k.state, k.code, k.reason, k.since = s, code, reason, k.o.Now()
	k.log.Info("state", zap.String("state", string(s)), zap.String("reason", reason), zap.Int("held", len(k.core.waiting.Items)))
	if k.o.Changed != nil {
		k.o.Changed(k.statusLocked())
	}
}

// Remembered returns the due times that are known of messages that may come again: all, once Run has returned.
func (k *Keeper) Remembered() []keeper.Shadow {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.core.remembered.Shadows()
}

// Troubles returns what is wrong at the moment.
func (k *Keeper) Troubles() []Trouble {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.troubles = slices.DeleteFunc(k.troubles, func(t Trouble) bool { return t.until != 0 && t.until < k.o.Now() })
	return slices.Clone(k.troubles)
}

// trouble notes what is wrong, or with an empty reason that nothing is. It lasts until it is noted again or, with lasts, for so long.
func (k *Keeper) trouble(name, reason string, lasts time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.troubles, func(t Trouble) bool { return t.Name == name })
	if at >= 0 && k.troubles[at].Reason == reason {
		return
	}
	if at >= 0 {
		k.troubles = slices.Delete(k.troubles, at, at+1)
	}
	if reason == "" {
		return
	}
	t := Trouble{Name: name, Reason: reason, Since: time.Now().UnixMilli()}
	if lasts > 0 {
		t.until = k.o.Now().Add(lasts)
	}
	k.troubles = append(k.troubles, t)
	k.log.Warn("delays: "+reason, zap.String("trouble", name))
}

// Run delays messages until ctx ends; then it gives everything back. It returns nil when everything that it started has ended.
func (k *Keeper) Run(ctx context.Context) error {
	k.lease.Run(ctx, keeper.Work{
		Waits: func(why string) { k.enter(keeper.Observing, keeper.LostLease, why) },
		Taken: func(bool) {
			shadows := k.lease.LoadShadows(ctx, k.o.Shadows, "the delay of messages begins again if neither a timestamp nor RabbitMQ says since when they wait")
			k.mu.Lock()
			defer k.mu.Unlock()
			k.core.inherit(shadows)
		},
		Session: k.runSession,
		Lost:    func(err error) { k.enter(keeper.Observing, keeper.Connection, cluster.Words(err)) },
	})
	k.enter(keeper.Stopped, keeper.Stop, "stopped")
	k.lease.Release(ctx)
	return nil
}
