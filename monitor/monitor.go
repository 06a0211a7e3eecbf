package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/incident"
)

// Source is where messages expire, such as broker.Deadlines or the queues of RabbitMQ. Safe for concurrent use.
type Source interface {
	// Expiries is the stream with one record of each message that expires, whatever its
	// path: of a dead letter, when it has arrived.
	Expiries() *deadline.Stream
	// Now is the present instant, rounded down, by the clock that deadlines are stamped and
	// judged with.
	Now() deadline.Instant
	// ClockOffset is how far that clock is ahead of the wall clock, which is the one that
	// people see.
	ClockOffset() time.Duration
	// Survey calls fn with each queue, in any order, and about samples of its ready
	// messages. What fn gets is valid during the call.
	Survey(samples int, fn func(*deadline.Survey))
	// TimeToLive returns the time to live that the message had when it entered its queue;
	// false if that is not known.
	TimeToLive(s deadline.Ref) (ttl deadline.Millis, ok bool)
}

// Pending are the deadlines that wait. Safe for concurrent use.
type Pending interface {
	// Waiting returns how many deadlines are known to be pending, and the next of them; 0: none.
	// The next leaves out those that have passed while consumers hold the messages, if it can.
	Waiting() (pending int64, nextAt deadline.Instant)
	// PendingBefore appends, for each of the instants in order, how many deadlines are at or before it.
	PendingBefore(until []deadline.Instant, out []int64) []int64
}

// Options of a Monitor. Source and Pending are required.
type Options struct {
	Source  Source
	Pending Pending
	// Keeps reports whether anything fires deadlines; nil: it does.
	Keeps func() bool
	// Meant reports whether an expiry in a queue is no loss; nil: each is one.
	Meant func(vhost, queue string) bool
	// Restarted is called when a loop has ended and was started again; nil: nobody needs to know.
	Restarted func()
	// Record is told what becomes of deadlines; nil: nobody. It is called by several goroutines, and must not block.
	Record func(incident.Event)
	// Log; nil is silent.
	Log *zap.Logger
	// Registerer takes the metrics; nil keeps them private.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() (Options, error) {
	if o.Source == nil || o.Pending == nil {
		return o, errors.New("monitor: Options.Source or Options.Pending is missing")
	}
	if o.Meant == nil {
		o.Meant = func(string, string) bool { return false }
	}
	if o.Keeps == nil {
		o.Keeps = func() bool { return true }
	}
	if o.Restarted == nil {
		o.Restarted = func() {}
	}
	if o.Record == nil {
		o.Record = func(incident.Event) {}
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	o.Registerer = cmp.Or[prometheus.Registerer](o.Registerer, prometheus.NewRegistry())
	return o, nil
}

// Monitor counts, reports and forecasts what expires in one source. Create it with New and run it once.
type Monitor struct {
	options     Options
	log         *zap.Logger
	metrics     *metrics
	counters    *counters
	aggregators sync.Pool // *aggregator
	loops       []*Loop
	started     time.Time
	restarts    atomic.Uint64 // of loops

	forecaster *forecaster
	made       atomic.Pointer[forecasts]
}

// New returns a monitor that counts what expires from now on; the rest of its work begins with Run. Its error says that o
// is incomplete. It panics if a metric is registered already.
func New(o Options) (*Monitor, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Monitor{options: o, log: o.Log.Named("monitor"), started: time.Now()}
	m.metrics = newMetrics(m)
	m.counters = &counters{
		fired:   m.metrics.fired,
		failed:  m.metrics.failed,
		labels:  make(map[[2]string]expiry),
		expired: make(map[uint64]uint64),
	}
	m.forecaster = &forecaster{from: o.Source, counters: m.counters, meant: o.Meant}
	m.AddLoop("forecast", m.forecast)
	m.aggregators.New = func() any {
		return &aggregator{counters: m.counters, histogram: m.metrics.lateness, record: o.Record}
	}
	o.Source.Expiries().Subscribe(deadline.Basic, m.expired)
	return m, nil
}

// Run runs the loops until ctx ends, and returns nil when all of them have ended.
func (m *Monitor) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, l := range m.loops {
		running.Go(func() { m.supervise(ctx, l) })
	}
	running.Wait()
	return nil
}

// Health is the present state. Safe for concurrent use.
func (m *Monitor) Health() Health {
	pending, nextAt := m.options.Pending.Waiting()
	h := Health{Schedule: ScheduleOfPrimary, Since: m.started, Pending: pending, LastTick: time.Now(), Restarts: m.restarts.Load(), Held: m.counters.held.Load()}
	if !m.options.Keeps() {
		h.Schedule = ScheduleNone
	}
	if nextAt != 0 {
		h.Lag = max(m.options.Source.Now().Sub(nextAt), 0)
	}
	for _, l := range m.loops {
		at := l.LastTick()
		if at.Before(h.LastTick) {
			h.LastTick = at
		}
		if silent := time.Since(at); l.beat.Load() != 0 && silent > staleAfter {
			h.Stalled = append(h.Stalled, l.name)
			h.Reasons = append(h.Reasons, fmt.Sprintf("loop %s silent for %s", l.name, silent.Round(time.Second)))
		}
	}
	return h
}

// PendingBefore appends, for each of the instants in Unix ms, how many deadlines are at or before
// it. Each count includes the deadlines that have passed while consumers hold the messages. It
// leaves out the messages that wait 20 ms to be indexed. Safe for concurrent use.
func (m *Monitor) PendingBefore(untilMillis []int64, out []int64) []int64 {
	return m.options.Pending.PendingBefore(m.instants(untilMillis), out)
}

// instants converts Unix ms of the wall clock to instants of the source's clock.
func (m *Monitor) instants(millis []int64) []deadline.Instant {
	offset := m.options.Source.ClockOffset()
	at := slices.Grow([]deadline.Instant(nil), len(millis))
	for _, one := range millis {
		at = append(at, deadline.FromUnixMilli(one).Add(offset))
	}
	return at
}
