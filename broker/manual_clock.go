package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// ManualClock is the clock of a broker with Options.Manual: it stands until Advance or Next moves it, for tests of
// programs that use the broker. It goes from one instant at which something is due to the next. At each, it waits until all
// of that has happened and all that this causes (a dead letter, and where that goes on to), before it goes further.
// So a day takes as long as the work in it, everything happens in order of time, and nothing is late.
//
// It is the clock of deadlines, delays, locks, x-expires, x-auto-delete-on-idle, retries of dead letters and of the
// times in headers. Sockets, heartbeats, syncs, alerts and the history go by the machine's clock.
//
// Clients are not waited for: what a consumer does with a message happens at the time that the clock shows when the
// consumer does it. Safe for concurrent use.
type ManualClock struct {
	b     *Broker
	nanos atomic.Int64  // Unix ns; it begins at a whole ms: what counts from there in ms is due at a whole ms, so an advance by a time to live is enough
	turn  chan struct{} // whoever has put something in runs what is due
	fire  FireDue       // nil: nobody fires deadlines. Guarded by turn
}

// FireDue fires every deadline that is due, and reports whether there was any. nextAt is when to call it again, and
// firstAt the next deadline; 0: never, none.
type FireDue func(ctx context.Context) (fired bool, nextAt, firstAt deadline.Instant, err error)

// ManualTime is what a manual clock shows.
type ManualTime struct {
	At   deadline.Instant
	Next deadline.Instant // when something is due next; 0: nothing is
}

// ErrNotManual is returned where the broker's clock cannot be moved.
var ErrNotManual = errors.New("the clock of this Curfew is the machine's; only one that was started with --clock manual can be moved")

var errNoChange = errors.New("the clock went on, and nothing became due: what waits only looks whether it is still in use")

const (
	// lastManual is the last instant that a manual clock shows: one before which every deadline can be counted.
	lastManual = deadline.Instant(7_258_118_400_000_000) // 2200-01-01
	// idleInstants is how many instants at which nothing happens Next passes before it gives up.
	idleInstants = 1000
)

// newManual makes a broker with a manual clock, without a store.
func newManual(o Options) *Broker {
	c := &ManualClock{turn: make(chan struct{}, 1)}
	c.nanos.Store(time.Now().Truncate(time.Millisecond).UnixNano())
	c.b = newBroker(o, deadline.GivenClock(c.nanos.Load, nil))
	c.b.Manual = c
	return c.b
}

// Fire makes the clock fire deadlines with fire, which is called by one goroutine at a time.
func (c *ManualClock) Fire(fire FireDue) {
	c.turn <- struct{}{}
	c.fire = fire
	<-c.turn
}

// Advance moves the clock forward by d. When it returns, everything that is due until then has happened. With 0, it
// waits for what is due now. After an error the clock is where that came up.
func (c *ManualClock) Advance(ctx context.Context, d time.Duration) (ManualTime, error) {
	if err := c.begin(ctx); err != nil {
		return ManualTime{}, err
	}
	defer func() { <-c.turn }()
	to := c.b.Now().Add(d)
	if d < 0 || to > lastManual || to < c.b.Now() {
		return ManualTime{}, fmt.Errorf("cannot advance by %s: the clock goes forward only, and not beyond the year 2200", d)
	}
	return c.moveTo(ctx, to)
}

// Next moves the clock to the next instant at which something happens. If nothing is due any more, it stays; Next of the
// answer is then 0.
func (c *ManualClock) Next(ctx context.Context) (ManualTime, error) {
	if err := c.begin(ctx); err != nil {
		return ManualTime{}, err
	}
	defer func() { <-c.turn }()
	t, err := c.moveTo(ctx, c.b.Now())
	for range idleInstants {
		before := c.changes()
		if err != nil || t.Next == 0 || t.Next > lastManual {
			return t, err
		}
		if t, err = c.moveTo(ctx, t.Next); c.changes() != before {
			return t, err
		}
	}
	return t, errNoChange
}

func (c *ManualClock) begin(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// moveTo goes to an instant by way of all before it at which something is due.
func (c *ManualClock) moveTo(ctx context.Context, to deadline.Instant) (ManualTime, error) {
	for {
		nextAt, firstAt, err := c.settle(ctx)
		if err != nil {
			return ManualTime{}, fmt.Errorf("the clock stands at %s: %w", c.b.Now(), err)
		}
		if nextAt == 0 || nextAt > to {
			c.nanos.Store(to.Time().UnixNano())
			return ManualTime{to, firstAt}, nil
		}
		c.nanos.Store(max(nextAt, c.b.Now()).Time().UnixNano())
	}
}

// settle does what is due now and waits for all that this causes. nextAt is when to call it again, firstAt when
// something may happen next; 0: never.
func (c *ManualClock) settle(ctx context.Context) (nextAt, firstAt deadline.Instant, err error) {
	env := &c.b.env
	for {
		ran, _ := env.Timers.RunDue()
		delayed, _ := env.DelayedTimers.RunDue()
		c.b.background.wait()
		if err := c.b.Forwarded(ctx); err != nil {
			return 0, 0, err
		}
		fired := false
		if c.fire != nil {
			if fired, nextAt, firstAt, err = c.fire(ctx); err != nil {
				return 0, 0, err
			}
		}
		if ran+delayed > 0 || fired || env.Waiting.Load() > 0 {
			continue
		}
		for _, at := range []deadline.Instant{env.Timers.Next(), env.DelayedTimers.Next()} {
			nextAt, firstAt = sooner(nextAt, at), sooner(firstAt, at)
		}
		return nextAt, firstAt, nil
	}
}

// sooner of two instants, 0 being never.
func sooner(a, b deadline.Instant) deadline.Instant {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// run does what becomes due without the clock moving, until quit is closed.
func (c *ManualClock) run(quit <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-quit
		cancel()
	}()
	for {
		select {
		case <-c.b.env.Feed.Signal:
		case <-c.b.env.Timers.Woken:
		case <-c.b.env.DelayedTimers.Woken:
		case <-quit:
			return
		}
		if c.begin(ctx) != nil {
			return
		}
		_, _, _ = c.settle(ctx) // an error comes again when the clock is moved
		<-c.turn
	}
}

// changes counts what a moved clock brings about.
type changes struct {
	dead             [queue.Reasons]uint64
	dropped, lapsed  uint64
	lost             uint64
	delayed          int
	queues, exchange int
}

func (c *ManualClock) changes() (n changes) {
	counters := &c.b.env.Counters
	for i := range n.dead {
		n.dead[i] = c.b.forwarder.Counters.DeadLettered[i].Load()
	}
	n.dropped, n.lapsed, n.lost = counters.ExpiredDropped.Load(), counters.Lapsed.Load(), counters.DeadLettersLost.Load()
	n.delayed, n.queues = c.b.delayedMessages(), len(c.b.registry.Queues())
	for _, vh := range c.b.VHosts() {
		n.exchange += len(vh.Exchanges.List())
	}
	return n
}

// background counts the goroutines that timers have started and that end by themselves.
type background struct {
	all   *sync.WaitGroup // those of the broker
	mu    sync.Mutex
	n     int
	ended sync.Cond // its lock is mu
}

// Go runs fn in a goroutine for which Close and a manual clock wait.
func (g *background) Go(fn func()) {
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
	g.all.Go(func() {
		defer g.done()
		fn()
	})
}

func (g *background) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 {
		g.ended.Broadcast()
	}
}

// wait waits until none is running.
func (g *background) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.n > 0 {
		g.ended.Wait()
	}
}
