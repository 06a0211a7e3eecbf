package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/prometheus/client_golang/prometheus"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/delay"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/lease"
	"curfew/monitor/rabbitmq/observe"
)

// Options of a Primary. Cluster is required.
type Options struct {
	Cluster *cluster.Cluster
	// Watch says what is done with each queue; nil: every queue is observed.
	Watch cluster.Watch
	// Redis is shared by several Curfews; nil: this one keeps alone. The caller closes it after Run.
	Redis redis.UniversalClient
	// Name is the name of this Curfew; "" is "curfew".
	Name string
	// Expiries is the stream that every expiry is published on; nil: a new one.
	Expiries *deadline.Stream
	// Registerer takes the metrics; nil: they are not registered.
	Registerer prometheus.Registerer
	// Log; nil is silent.
	Log *zap.Logger
}

// Primary keeps and observes the queues of one virtual host of a RabbitMQ cluster. Its methods are safe for concurrent
// use; Run is called once.
type Primary struct {
	rabbitmq  source
	address   cluster.Address
	vhost     string // that of address
	watch     cluster.Watch
	name      string
	redis     redis.UniversalClient // nil: none
	stream    *deadline.Stream
	log       *zap.Logger
	started   time.Time
	ahead     atomic.Int64 // the last ClockOffset
	counts    counters
	holding   *cluster.Pool // the keepers' connections
	newKeeper func(keeper.Options) (queueKeeper, error)
	newDelay  func(delay.Options) (queueKeeper, error)
	newWatch  func(observe.Options) observer

	group  *group        // what several Curfews share
	joined chan struct{} // closed when it is known which cluster this is; with Redis

	reporting  sync.Mutex
	reported   string // the last report to the others
	reportedAt time.Time

	observing watch

	looks   chan struct{} // an inventory is wanted
	changes chan struct{} // RabbitMQ has reported a change: an inventory is wanted, but not at once after the last one

	mu        sync.Mutex
	space     lease.Space         // where the queues are in Redis
	numbers   uint64              // of kept queues so far
	queues    map[string]*queue   // those that a rule wants kept, by name
	deleted   map[string]deletion // delay queues that are not there any more
	seen      seenTable           // statistics of the messages in watched queues, by name
	inventory *cluster.Inventory
	topology  *topology // of then; nil: nobody needs it
	lookedAt  time.Time
	failing   failing      // taking an inventory fails
	identity  failing      // asking which cluster this is fails
	waiting   []chan error // for the next inventory
}

// source is what a Primary needs from RabbitMQ: a *cluster.Cluster, or one of a test.
type source interface {
	Inventory(ctx context.Context, names []string, measured string) (*cluster.Inventory, error)
	Identity(ctx context.Context) (string, error)
	Events(ctx context.Context, fn func(cluster.Event)) error
	Topology(ctx context.Context) (exchanges map[string]cluster.Exchange, bindings []cluster.Binding, err error)
	Bound(ctx context.Context, exchange string) (kind string, all []cluster.Bound, err error)
	Connect(ctx context.Context, purpose string, holds bool) (*amqp091.Connection, error)
	ConnectAMQP10(ctx context.Context, purpose string) (*amqp.Conn, error)
}

// queueKeeper is a *keeper.Keeper, a *delay.Keeper, or one of a test.
type queueKeeper interface {
	Run(ctx context.Context) error
	Status() keeper.Status
	Remembered() []keeper.Shadow
	PendingBefore(until []deadline.Instant, out []int64) []int64
}

// observer is an *observe.Observer, or one of a test.
type observer interface {
	Run(ctx context.Context) error
	Show(v *observe.View)
	States() []observe.State
	Lag() time.Duration
	Survey(samples int, fn func(*deadline.Survey))
	TimeToLive(line, number uint64) (deadline.Millis, bool)
}

// failing says since when something has been failing, and why.
type failing struct {
	since time.Time
	err   error // nil: it does not
}

func (f *failing) note(err error) (news bool) {
	news = (err == nil) != (f.err == nil)
	if news {
		f.since = time.Now()
	}
	f.err = err
	return news
}

// mostConnections is how many connections the keepers have: with more queues, several queues share one, which is named after the first of them.
const mostConnections = 64

// clockStep is by how much the wall clock has to be set at least for that to count.
const clockStep = 10 * time.Millisecond

// New makes a Primary that does nothing until Run. Its error says that o is incomplete or that a metric is registered
// already.
func New(o Options) (*Primary, error) {
	if o.Cluster == nil {
		return nil, errors.New("rabbitmq: Options.Cluster is missing")
	}
	p := newPrimary(o, o.Cluster, o.Cluster.Address)
	if o.Registerer != nil {
		if err := o.Registerer.Register(p); err != nil {
			return nil, fmt.Errorf("rabbitmq: register metrics: %w", err)
		}
	}
	return p, nil
}

func newPrimary(o Options, rabbitmq source, address cluster.Address) *Primary {
	p := &Primary{rabbitmq: rabbitmq, address: address, vhost: address.VHost, watch: o.Watch, name: cmp.Or(o.Name, "curfew"), redis: o.Redis, stream: cmp.Or(o.Expiries, new(deadline.Stream)),
		log: cmp.Or(o.Log, zap.NewNop()).Named("rabbitmq"), started: time.Now(),
		looks: make(chan struct{}, 1), changes: make(chan struct{}, 1), queues: make(map[string]*queue), deleted: make(map[string]deletion), seen: make(seenTable), counts: newCounters(), joined: make(chan struct{})}
	if p.watch == nil {
		p.watch = cluster.DefaultWatch()
	}
	p.holding = &cluster.Pool{Most: mostConnections, Open: func(ctx context.Context, purpose string) (*amqp091.Connection, error) {
		return rabbitmq.Connect(ctx, purpose, true)
	}}
	p.newKeeper = func(o keeper.Options) (queueKeeper, error) { return keeper.New(o) }
	p.newDelay = func(o delay.Options) (queueKeeper, error) { return delay.New(o) }
	p.newWatch = func(w observe.Options) observer { return observe.New(w) }
	p.group = &group{members: []string{p.name}, since: p.started, taken: make(map[*turn]struct{}), seenUntil: make(map[string]time.Time)}
	p.observing.p = p
	return p
}

// rule finds the rule for a queue; false: it is not watched.
func (p *Primary) rule(queue string) (cluster.Rule, bool) { return p.watch.Rule(p.vhost, queue) }

// Run keeps and observes until ctx ends; then keepers give everything back in order. It returns nil when everything it
// started has ended.
func (p *Primary) Run(ctx context.Context) error {
	var running sync.WaitGroup
	if p.redis != nil {
		running.Go(func() { p.runGroup(ctx) })
	}
	running.Go(func() { p.observing.run(ctx) })
	p.runInventory(ctx, &running)
	running.Wait()
	p.leaveGroup()
	return nil
}

// Now is the present instant by the keepers' clock, which does not jump when somebody sets the clock of the machine.
func (p *Primary) Now() deadline.Instant { return deadline.At(p.started.Add(time.Since(p.started))) }

// ClockOffset is how far the keepers' clock is ahead of the wall clock. It changes only when somebody sets that: an absolute time is the same instant each time.
func (p *Primary) ClockOffset() time.Duration {
	last := p.ahead.Load()
	before, wall, after := p.Now(), deadline.At(time.Now()), p.Now()
	ahead := offset(time.Duration(last), before, wall, after)
	p.ahead.CompareAndSwap(last, int64(ahead))
	return ahead
}

// offset is how far a clock is ahead of the wall clock, which was read between two readings of it. It is as before if that differs by less than
// clockStep, or if the processor did something else between the readings.
func offset(last time.Duration, before, wall, after deadline.Instant) time.Duration {
	if ahead := after.Sub(wall); after.Sub(before) <= time.Millisecond && (ahead-last).Abs() >= clockStep {
		return ahead
	}
	return last
}

// Expiries is the stream on which every expiry is published.
func (p *Primary) Expiries() *deadline.Stream { return p.stream }

// Waiting implements monitor.Pending: the deadlines that keepers here hold.
func (p *Primary) Waiting() (pending int64, nextAt deadline.Instant) {
	for _, k := range p.keepers() {
		s := k.Status()
		pending += int64(s.Held - s.WithoutTTL)
		if s.NextDue != 0 && (nextAt == 0 || s.NextDue < nextAt) {
			nextAt = s.NextDue
		}
	}
	return pending, nextAt
}

// PendingBefore implements monitor.Pending.
func (p *Primary) PendingBefore(until []deadline.Instant, out []int64) []int64 {
	sum := make([]int64, len(until))
	var one []int64
	for _, k := range p.keepers() {
		one = k.PendingBefore(until, one[:0])
		for i := range sum {
			sum[i] += one[i]
		}
	}
	return append(out, sum...)
}

// Keeps reports whether a keeper runs here, or waits for its lease.
func (p *Primary) Keeps() bool { return len(p.keepers()) > 0 }

// keepers returns those that run.
func (p *Primary) keepers() (list []queueKeeper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.queues {
		if q.stop != nil && q.keeper != nil {
			list = append(list, q.keeper)
		}
	}
	return list
}
