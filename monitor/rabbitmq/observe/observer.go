package observe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// Options of an Observer. All are required.
type Options struct {
	// VHost is the virtual host of the queues.
	VHost string
	// Connect connects to it, and goes on trying until ctx ends.
	Connect func(ctx context.Context) (*amqp091.Connection, error)
	// Expired is called with messages that still waited at their deadlines and have left since, in batches. No two lines of an
	// Observer have the same number (Ref.Queue). Instants are those of the wall clock. It must not block.
	Expired func([]deadline.Expiry)
	// Log gets entries about lost connections.
	Log *zap.Logger
}

// Observer reports which messages of RabbitMQ miss their deadlines, and touches none.
// Its methods are safe for concurrent use; Run is called once.
type Observer struct {
	o     Options
	views chan *View // of capacity 1: the last one that was not taken yet

	mu     sync.Mutex
	lostAt time.Time           // since when there is no connection; zero: there is one
	queues map[string]*watched // only the loop adds and removes queues
	lines  atomic.Uint64       // how many there have been
}

// New makes an Observer that observes nothing until Show.
func New(o Options) *Observer {
	return &Observer{o: o, views: make(chan *View, 1), queues: map[string]*watched{}}
}

// Show hands over what is in the virtual host and what is observed from now on. The caller calls it when something changes,
// and every half minute anyway: a tap that was lost is replaced then.
func (o *Observer) Show(v *View) {
	for {
		select {
		case o.views <- v:
			return
		case <-o.views: // an older one that was not taken
		}
	}
}

// Run observes until ctx ends, and returns the error of ctx. It connects again by itself;
// everything known about the queues is then dropped, and counting starts over.
func (o *Observer) Run(ctx context.Context) error {
	var last *View
	for {
		o.setLost(time.Now())
		if err := o.connected(ctx, &last); ctx.Err() != nil {
			return ctx.Err()
		} else {
			o.o.Log.Warn("the connection to RabbitMQ is lost; observing starts over", zap.Error(err))
		}
		for _, w := range o.watched() {
			w.untap()
		}
		deadline.Sleep(ctx, dueEvery)
	}
}

func (o *Observer) setLost(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lostAt = at
}

// watched returns the queues that are observed. No lock is held while RabbitMQ is asked about them.
func (o *Observer) watched() (list []*watched) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.queues {
		list = append(list, w)
	}
	return list
}

// of returns the queue of that name, and adds it if necessary.
func (o *Observer) of(name string) *watched {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queues[name] == nil {
		o.queues[name] = &watched{name: name, published: -1, lines: &o.lines}
	}
	return o.queues[name]
}

// connected observes until the connection is lost. last is the view in force.
func (o *Observer) connected(ctx context.Context, last **View) error {
	conn, err := o.o.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	o.setLost(time.Time{})
	lost := conn.NotifyClose(make(chan *amqp091.Error, 1))
	counter := &counter{conn: conn}
	if *last != nil {
		if err := o.apply(conn, *last); err != nil {
			return err
		}
	}
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			if err == nil {
				return amqp091.ErrClosed
			}
			return err
		case *last = <-o.views:
			if err := o.apply(conn, *last); err != nil {
				return err
			}
		case <-tick.C:
			if err := o.count(ctx, counter); err != nil {
				return err
			}
		}
	}
}
