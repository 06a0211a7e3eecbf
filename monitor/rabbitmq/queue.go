package rabbitmq

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/prometheus/client_golang/prometheus"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/delay"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/lease"
)

const (
	// factsTimeout is how long a keeper waits for new facts; then it takes the last ones. Facts younger than factsAge
	// are new.
	factsTimeout = 3 * time.Second
	factsAge     = time.Second
	// eventsAtOnce bounds the events that wait for a keeper. It finds out what was dropped when it looks at the queue.
	eventsAtOnce = 16
	// The numbers of kept queues in expiries begin at keptNumbers, those of the nth observer at n times observedNumbers.
	keptNumbers     = 1 << 63
	observedNumbers = 1 << 32
)

// queue is one that a rule wants kept.
type queue struct {
	p      *Primary
	name   string
	rule   cluster.Rule
	number uint64 // in expiries
	events chan keeper.Event
	turn   *turn          // nil: without Redis
	shadow *lease.Shadows // nil: without Redis
	conn   *cluster.Conn  // the last one; of the goroutine of the keeper
	batch  []deadline.Expiry
	seq    uint64 // of the last expiry; with batch, of the goroutine of the keeper

	late         prometheus.Histogram
	deadLettered atomic.Bool

	// Guarded by p.mu.
	messages   int64 // by the last inventory
	decision   cluster.Decision
	facts      keeper.Facts
	listedAt   time.Time               // when RabbitMQ's list last showed who consumes
	unknownAt  time.Time               // since when it cannot be known how it is declared
	stop       context.CancelCauseFunc // nil: no keeper is to run
	ended      chan struct{}           // closed when the last one has
	keeper     queueKeeper             // the present or last one
	end        context.CancelFunc      // ends the keeper; another one follows unless stop was called
	yielding   bool                    // the keeper ends so that another Curfew can take the queue
	stranded   stranded
	stuck      undelivered
	sharedWith string    // another Curfew that consumes from it
	sharedAt   time.Time // since when

	counting sync.Mutex // the last lock taken: keepers call changed with their own lock held
	counted  keeper.Counts
	unkept   time.Time // since when no keeper here has kept it
}

func newQueueLocked(p *Primary, name string, rule cluster.Rule, number uint64) *queue {
	q := &queue{p: p, name: name, rule: rule, number: keptNumbers + number, events: make(chan keeper.Event, eventsAtOnce), late: newLateness(), unkept: time.Now()}
	if p.redis == nil {
		return q
	}
	q.turn = &turn{Lease: lease.New(p.redis, p.space, name, p.name), group: p.group}
	q.shadow = lease.NewShadows(p.redis, p.space, name, rule.Mode.Waits(), p.ClockOffset, p.log.With(zap.String("queue", name)))
	return q
}

// tell hands an event to the keeper, if one runs.
func (q *queue) tell(e keeper.Event) {
	select {
	case q.events <- e:
	default:
	}
}

// startLocked runs keepers, one after another, once the last one has ended.
func (q *queue) startLocked(ctx context.Context, running *sync.WaitGroup) {
	ctx, q.stop = context.WithCancelCause(ctx)
	last := q.ended
	ended := make(chan struct{})
	q.ended = ended
	running.Go(func() {
		defer close(ended)
		if last != nil {
			<-last
		}
		q.run(ctx)
	})
}

// stopLocked ends the keeper, which gives everything back first. Its cause is nil, or a *keeper.NotWanted.
func (q *queue) stopLocked(cause error) {
	if q.stop != nil {
		q.stop(cause)
		q.stop = nil
	}
}

// run runs keepers until ctx ends.
func (q *queue) run(ctx context.Context) {
	var writing sync.WaitGroup
	if s := q.shadow; s != nil {
		until, end := context.WithCancel(context.WithoutCancel(ctx))
		defer writing.Wait()
		defer end()
		writing.Go(func() {
			if err := s.Run(until); err != nil {
				q.p.log.Warn("the next keeper will not know the last deadlines", zap.String("queue", q.name), zap.Error(err))
			}
		})
	}
	for ctx.Err() == nil {
		if err := q.runKeeper(ctx); err != nil {
			q.p.log.Error("a keeper has ended; another one will start", zap.String("queue", q.name), zap.Error(err))
		}
		deadline.Sleep(ctx, yieldPause)
	}
}

func (q *queue) runKeeper(ctx context.Context) error {
	k, err := q.newKeeper()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	q.p.mu.Lock()
	q.keeper, q.end, q.yielding = k, end, false
	q.counting.Lock()
	q.counted = keeper.Counts{}
	q.counting.Unlock()
	q.p.mu.Unlock()
	return k.Run(ctx)
}

// newKeeper makes the keeper for the queue's mode.
func (q *queue) newKeeper() (queueKeeper, error) {
	if q.rule.Mode == cluster.Keep {
		return q.p.newKeeper(q.options())
	}
	o := delay.Options{Options: q.options(), ClockOffset: q.p.ClockOffset, Topology: q.p.observing.topologyNow,
		ConnectToPublish: func(ctx context.Context) (*amqp091.Connection, error) {
			return q.p.rabbitmq.Connect(ctx, "keep "+q.name, true)
		},
		ConnectAMQP10: func(ctx context.Context) (*amqp.Conn, error) { return q.p.rabbitmq.ConnectAMQP10(ctx, "keep "+q.name) }}
	o.Inventory = func() *cluster.Inventory {
		q.p.mu.Lock()
		defer q.p.mu.Unlock()
		return q.p.inventory
	}
	if q.rule.Mode == cluster.Retry {
		o.Retry = &q.rule.Backoff
		return q.p.newDelay(o)
	}
	o.Exchange, o.Bound, o.Cancel, o.User, o.Aside = q.rule.ExchangeOf(q.name), q.p.rabbitmq.Bound, q.rule.Cancel, q.p.address.User(), q.asideSince
	o.IsDelay = func(name string) bool {
		r, watched := q.p.rule(name)
		return watched && r.Mode == cluster.Delay
	}
	return q.p.newDelay(o)
}

// asideSince returns how many messages RabbitMQ has put aside, by a list of queues since then; -1: there was none.
func (q *queue) asideSince(since time.Time) int64 {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if q.p.inventory == nil || q.p.lookedAt.Before(since) {
		return -1
	}
	found := q.p.inventory.Queue(q.name)
	if found == nil {
		return -1
	}
	return found.Delayed
}

// options returns the options of the queue's keepers.
func (q *queue) options() keeper.Options {
	o := keeper.Options{
		VHost: q.p.vhost, Queue: q.name, Connect: q.connect, Facts: q.readFacts, Events: q.events, SeenUntil: q.seenUntil,
		Expired: q.expired, Changed: q.changed, Name: q.p.name, Now: q.p.Now, Log: q.p.log,
		LookEvery: q.p.group.lookEvery, MaxMessages: q.rule.Budget.Messages, MaxBytes: q.rule.Budget.Bytes, TakeRate: q.rule.Budget.Holds,
	}
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if q.facts.Type == cluster.Classic {
		o.MaxMessages = min(o.MaxMessages, cluster.MaxClassic)
	}
	if q.turn != nil { // a nil *turn would be a lease
		o.Lease, o.Shadows = q.turn, q.shadow
	}
	if q.keeper != nil {
		o.Remembered = q.keeper.Remembered()
	}
	return o
}

// seenUntil is when another Curfew last held all messages of the queue, by the keepers' clock; 0: it is not known.
func (q *queue) seenUntil() deadline.Instant {
	at := q.p.group.seenBy(q.name)
	if at.IsZero() {
		return 0
	}
	return deadline.At(at).Add(q.p.ClockOffset())
}

// connect connects, and drops earlier events: they are of no use to a keeper that begins with nothing.
func (q *queue) connect(ctx context.Context) (conn *cluster.Conn, err error) {
	if conn, err = q.p.holding.Connect(ctx, "keep "+q.name, q.conn); err == nil {
		q.conn = conn
	}
	for len(q.events) > 0 { // nobody else reads them now
		<-q.events
	}
	return conn, err
}

// readFacts waits for the present facts, and returns the last ones if RabbitMQ does not answer.
func (q *queue) readFacts(ctx context.Context) (keeper.Facts, error) {
	q.p.mu.Lock()
	facts, fresh := q.facts, time.Since(q.p.lookedAt) < factsAge
	q.p.mu.Unlock()
	if fresh {
		return facts, nil
	}
	limited, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	err := q.p.look(limited)
	if ctx.Err() != nil {
		return keeper.Facts{}, ctx.Err()
	}
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if err != nil {
		q.p.log.Debug("using the last facts known", zap.String("queue", q.name), zap.Error(err))
		q.facts.Others = q.othersLocked(keeper.Unlisted) // the last facts do not show who consumes now
	}
	return q.facts, nil
}

// expired publishes the messages that expired because they were given back.
func (q *queue) expired(batch []keeper.Expiry) {
	action := deadline.Dropped
	if q.deadLettered.Load() {
		action = deadline.DeadLettered
	}
	ahead := q.p.ClockOffset()
	out := q.batch[:0]
	for i := range batch {
		x := &batch[i]
		path := deadline.Eager
		if x.AgeUnknown {
			path = deadline.Requeued
		} else {
			late := deadline.Lateness(x.Deadline, x.GivenBack).Seconds()
			q.late.Observe(late)
			q.p.counts.late.Observe(late)
		}
		q.seq++
		out = append(out, deadline.Expiry{
			Ref:   deadline.Ref{Deadline: x.Deadline, Queue: q.number, Seq: q.seq},
			VHost: q.p.vhost, Queue: q.name, Path: path, Action: action, Arrived: x.GivenBack, ClockAhead: ahead, Intended: q.rule.ExpiryIntended(),
		})
	}
	q.batch = out
	q.p.stream.Publish(out)
}

// changed counts what has happened since the last call. The keeper calls it with its own lock held; statuses may come out
// of order.
func (q *queue) changed(s keeper.Status) {
	q.counting.Lock()
	defer q.counting.Unlock()
	if s.State == keeper.Keeping {
		q.unkept = time.Time{}
	} else if q.unkept.IsZero() {
		q.unkept = time.Now()
	}
	if n := s.Counts.Releases; n > q.counted.Releases {
		q.counted.Releases = n
		q.p.counts.releases.WithLabelValues(q.p.vhost, q.p.counts.label(q.name), string(s.LastRelease.Code)).Inc()
	}
	if n := s.Counts.UnknownAge; n > q.counted.UnknownAge {
		q.p.counts.unknownAge.Add(float64(n - q.counted.UnknownAge))
		q.counted.UnknownAge = n
	}
}

// unkeptSince returns since when no keeper here has kept the queue, Unix ms; now if one does.
func (q *queue) unkeptSince() int64 {
	q.counting.Lock()
	defer q.counting.Unlock()
	if q.unkept.IsZero() {
		return time.Now().UnixMilli()
	}
	return q.unkept.UnixMilli()
}
