package rabbitmq

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/observe"
)

// fakeRabbitMQ is a cluster with the queues that a test declares.
type fakeRabbitMQ struct {
	address cluster.Address

	mu       sync.Mutex
	queues   map[string]cluster.Queue
	err      error         // of the management API
	slow     time.Duration // an inventory takes
	asked    int
	named    int               // how often it was asked for the identity
	led      int               // and for what leads to the queues
	name     string            // of the cluster
	bindings []cluster.Binding // nil: they are not known
	events   []func(cluster.Event)
	unread   []string
	noID     error // Identity fails
}

func newFakeRabbitMQ(t *testing.T) *fakeRabbitMQ {
	t.Helper()
	address, err := cluster.ParseAddress("amqp://u:p@rabbit:5672/shop")
	require.NoError(t, err)
	return &fakeRabbitMQ{address: address, queues: map[string]cluster.Queue{}}
}

func (r *fakeRabbitMQ) Inventory(context.Context, []string, string) (*cluster.Inventory, error) {
	time.Sleep(r.slow)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.err != nil {
		return nil, r.err
	}
	i := &cluster.Inventory{Server: cluster.Server{Product: "RabbitMQ", Version: "3.10.8", Cluster: r.name}, VHost: "shop", Unread: r.unread}
	for _, q := range r.queues {
		i.Queues = append(i.Queues, q)
	}
	slices.SortFunc(i.Queues, func(a, b cluster.Queue) int { return strings.Compare(a.Name, b.Name) })
	return i, nil
}

// counts returns how often it was asked for the identity, and for an inventory.
func (r *fakeRabbitMQ) counts() (named, asked int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.named, r.asked
}

func (r *fakeRabbitMQ) Identity(context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.named++
	return "identity of " + r.name, r.noID
}

func (r *fakeRabbitMQ) Topology(context.Context) (map[string]cluster.Exchange, []cluster.Binding, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.led++
	if r.bindings == nil {
		return nil, nil, errors.New("bindings are not known")
	}
	return map[string]cluster.Exchange{"shop": {Name: "shop", Type: "topic"}}, r.bindings, nil
}

func (r *fakeRabbitMQ) Bound(context.Context, string) (string, []cluster.Bound, error) {
	return "headers", nil, nil
}

func (r *fakeRabbitMQ) Events(ctx context.Context, fn func(cluster.Event)) error {
	r.mu.Lock()
	r.events = append(r.events, fn)
	r.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

func (r *fakeRabbitMQ) ConnectAMQP10(context.Context, string) (*amqp.Conn, error) {
	return nil, errors.New("there is no RabbitMQ")
}

func (r *fakeRabbitMQ) Connect(context.Context, string, bool) (*amqp091.Connection, error) {
	return nil, errors.New("there is no RabbitMQ")
}

// set changes the queues and publishes an event.
func (r *fakeRabbitMQ) set(kind cluster.EventKind, change func(queues map[string]cluster.Queue)) {
	r.mu.Lock()
	change(r.queues)
	events := r.events
	r.mu.Unlock()
	for _, fn := range events {
		fn(cluster.Event{Kind: kind})
	}
}

// declare adds quorum queues with a dead-letter exchange.
func (r *fakeRabbitMQ) declare(names ...string) {
	r.set(cluster.Changed, func(queues map[string]cluster.Queue) {
		for _, name := range names {
			queues[name] = cluster.Queue{Name: name, Type: cluster.Quorum, Durable: true, State: "running",
				Arguments: map[string]any{"x-dead-letter-exchange": "dlx"}}
		}
	})
}

// setPolicy sets what a policy defines for a queue.
func (r *fakeRabbitMQ) setPolicy(name string, definition map[string]any) {
	r.set(cluster.Changed, func(queues map[string]cluster.Queue) {
		q := queues[name]
		q.Policy = definition
		queues[name] = q
	})
}

// attach adds another consumer to the list.
func (r *fakeRabbitMQ) attach(name, tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queues[name]
	q.Attached = append(slices.Clone(q.Attached), cluster.Consumer{Tag: tag})
	r.queues[name] = q
}

func (r *fakeRabbitMQ) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// fakeKeeper keeps while it has the lease, and does what a test asks for.
type fakeKeeper struct {
	o      keeper.Options
	facts  keeper.Facts
	events []keeper.Event
	knows  []keeper.Shadow

	mu     sync.Mutex
	status keeper.Status
	fixed  bool // by a test
}

// hold gives it a status that stays.
func (k *fakeKeeper) hold(s keeper.Status) {
	k.change(func(was *keeper.Status) { *was, k.fixed = s, true })
}

func (k *fakeKeeper) Run(ctx context.Context) error {
	held := k.o.Lease == nil
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		if k.o.Lease != nil {
			holder, now, err := k.o.Lease.Acquire(ctx)
			if err == nil {
				held = now
				k.change(func(s *keeper.Status) { s.Keeper = holder })
			}
		}
		k.change(func(s *keeper.Status) {
			if s.State == keeper.Refused || k.fixed {
				return
			}
			if s.State = keeper.Observing; held {
				s.State, s.LookedAt = keeper.Keeping, deadline.At(time.Now())
			}
		})
		select {
		case e := <-k.o.Events:
			k.mu.Lock()
			k.events = append(k.events, e)
			k.mu.Unlock()
			if e.Kind == keeper.FactsChanged {
				facts, _ := k.o.Facts(ctx)
				k.mu.Lock()
				k.facts = facts
				k.mu.Unlock()
			}
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	k.change(func(s *keeper.Status) {
		s.State, s.Reason = keeper.Stopped, "stopped"
		s.Counts.Releases++
		s.LastRelease = keeper.Release{Code: keeper.Stop, Reason: "stopped"}
		if n, ok := errors.AsType[*keeper.NotWanted](context.Cause(ctx)); ok {
			s.LastRelease = keeper.Release{Code: n.Code, Reason: n.Reason}
		}
	})
	if k.o.Lease != nil {
		return k.o.Lease.Release(context.Background())
	}
	return nil
}

// seen returns the events that it has received.
func (k *fakeKeeper) seen() []keeper.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.events)
}

// change changes the status and reports it, as a keeper does: with its lock held.
func (k *fakeKeeper) change(fn func(s *keeper.Status)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn(&k.status)
	k.o.Changed(k.status)
}

func (k *fakeKeeper) Status() keeper.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

func (k *fakeKeeper) Remembered() []keeper.Shadow { return k.knows }

func (k *fakeKeeper) PendingBefore(until []deadline.Instant, out []int64) []int64 {
	for range until {
		out = append(out, int64(k.Status().Held))
	}
	return out
}

// fakeObserver observes nothing, and reports what a test gives it.
type fakeObserver struct {
	o observe.Options

	mu     sync.Mutex
	view   *observe.View
	states []observe.State
}

func (f *fakeObserver) Run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (f *fakeObserver) Show(v *observe.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = v
}

// observes reports whether it is to observe a queue.
func (f *fakeObserver) observes(queue string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view != nil && f.view.Observed[queue]
}

// unknown returns why bindings are not known, by its last view.
func (f *fakeObserver) unknown() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.Unknown
}

func (f *fakeObserver) say(states ...observe.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.states = states
}

func (f *fakeObserver) States() []observe.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.states)
}

func (f *fakeObserver) Lag() time.Duration                             { return 0 }
func (f *fakeObserver) Survey(int, func(*deadline.Survey))             {}
func (f *fakeObserver) TimeToLive(_, _ uint64) (deadline.Millis, bool) { return 0, false }

// running is a Primary at work, with keepers that are fakes.
type running struct {
	*Primary
	t        *testing.T
	rabbitmq *fakeRabbitMQ
	stop     func()

	mu        sync.Mutex
	keepers   map[string][]*fakeKeeper // by queue, all so far
	observers []*fakeObserver
	expired   []deadline.Expiry
}

// newRunning makes a Primary that keeps queues whose names begin with "keep-".
func newRunning(t *testing.T, rabbitmq *fakeRabbitMQ, name string, client redis.UniversalClient) *running {
	t.Helper()
	watch, err := cluster.ParseWatch("keep:keep-*,observe:*")
	require.NoError(t, err)
	r := &running{t: t, rabbitmq: rabbitmq, keepers: map[string][]*fakeKeeper{}}
	r.Primary = newPrimary(Options{Watch: watch, Name: name, Redis: client}, rabbitmq, rabbitmq.address)
	r.newKeeper = func(o keeper.Options) (queueKeeper, error) {
		k := &fakeKeeper{o: o}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keepers[o.Queue] = append(r.keepers[o.Queue], k)
		return k, nil
	}
	r.newWatch = func(o observe.Options) observer {
		f := &fakeObserver{o: o}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.observers = append(r.observers, f)
		return f
	}
	r.Expiries().Subscribe(deadline.WithMessage, func(batch []deadline.Expiry) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.expired = append(r.expired, batch...)
	})
	return r
}

// start runs it until the end of the test, or stop.
func (r *running) start() *running {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(r.t, <-ended)
	})
	r.t.Cleanup(r.stop)
	return r
}

// keeper returns the present keeper of a queue; nil: there was none.
func (r *running) keeper(queue string) *fakeKeeper {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all := r.keepers[queue]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// watcher returns the present observer.
func (r *running) watcher() *fakeObserver {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.observers[len(r.observers)-1]
}

func (r *running) count(queue string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keepers[queue])
}

// row returns a queue in the status.
func (r *running) row(queue string) Queue {
	for _, q := range r.Status().Queues {
		if q.Queue == queue {
			return q
		}
	}
	return Queue{}
}

// kept returns the queues that this Curfew keeps.
func (r *running) kept() (names []string) {
	for _, q := range r.Status().Queues {
		if q.Here && q.State == "keeping" {
			names = append(names, q.Queue)
		}
	}
	return names
}
