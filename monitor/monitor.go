package monitor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/forecast"
	"curfew/scheduler/memstore"
)

// Monitor fires the deadlines of one primary. Create it with New and run it once.
type Monitor struct {
	options     Options
	primary     Primary
	log         *zap.Logger
	metrics     *metrics
	counters    *counters
	aggregators sync.Pool // *aggregator
	loops       []*loop
	started     time.Time
	restarts    atomic.Uint64 // of loops

	index    *memstore.Fair // every deadline that has been tracked
	busy     busyQueues
	turns    deadline.Longest // of the fire loop
	wakeFire *wakeup          // of the fire loop
	nextAt   atomic.Int64     // Unix µs the fire loop waits for, 0 for none
	waiting  atomic.Int64     // shadows in the window
	wanted   chan struct{}    // the index may be incomplete

	free    chan *feedEvents // to read into
	arrived chan *feedEvents // to work on

	redis *redisSchedule // nil: the index is the schedule
	due   *memstore.Fair // with redis: shadows claimed ahead of their time, or too near to be written

	scheduled SelfScheduled // nil: the deadlines of the primary are in the index

	forecaster *forecaster // nil: the primary cannot survey its queues
	forecasts  atomic.Pointer[[]Forecast]
	outlook    atomic.Pointer[forecast.Outlook]
}

// New returns a monitor that does nothing before Run. Its error says that o is incomplete
// or that a metric is registered already.
func New(o Options) (*Monitor, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Monitor{
		options:  o,
		primary:  o.Primary,
		log:      o.Log.Named("monitor"),
		started:  time.Now(),
		busy:     busyQueues{waiting: map[uint64][]deadline.Ref{}},
		wakeFire: newWakeup(),
		wanted:   make(chan struct{}, 1),
		free:     make(chan *feedEvents, feedBuffers),
		arrived:  make(chan *feedEvents, feedBuffers),
	}
	for range feedBuffers {
		m.free <- &feedEvents{events: make([]deadline.Event, feedBatch)}
	}
	m.index = memstore.NewFair(m.tenantOf)
	m.loops = []*loop{
		{name: "fire", run: m.fire},
		{name: "read", run: m.read},
		{name: "ingest", run: m.ingest},
		{name: "reconcile", run: m.reconcile},
	}
	if o.Redis != nil {
		m.addRedis()
	}
	m.scheduled, _ = o.Primary.(SelfScheduled)
	if surveyor, ok := o.Primary.(Surveyor); ok {
		m.forecaster = &forecaster{from: surveyor, now: o.Primary.Now, offset: o.Primary.ClockOffset, meters: make(map[uint64]*metered)}
		m.loops = append(m.loops, &loop{name: "forecast", run: m.forecast})
	}
	if err := m.addMetrics(); err != nil {
		return nil, err
	}
	m.aggregators.New = func() any {
		a := m.newAggregator()
		return &a
	}
	m.primary.Expiries().Subscribe(deadline.Basic, m.expired)
	return m, nil
}

// addMetrics registers the metrics of everything that New has added, and makes the counters.
func (m *Monitor) addMetrics() (err error) {
	if m.metrics, err = newMetrics(m.options.Registerer, m); err != nil {
		return err
	}
	if m.redis != nil {
		m.redis.metrics = m.metrics
	}
	m.counters = &counters{
		queueName: m.primary.QueueName,
		offset:    m.primary.ClockOffset,
		fired:     m.metrics.fired,
		failed:    m.metrics.failed,
		byID:      make(map[uint64]*queueCounters),
		labels:    make(map[[2]string]struct{}),
	}
	if err := m.options.Registerer.Register(&m.counters.held); err != nil {
		return fmt.Errorf("monitor: register metric: %w", err)
	}
	return nil
}

func (m *Monitor) addRedis() {
	m.due = memstore.NewFair(m.tenantOf)
	m.redis = newRedisSchedule(m.options, m.due, m.wakeFire)
	m.loops = append(m.loops,
		&loop{name: "write", run: m.redis.write},
		&loop{name: "claim", run: m.redis.claim},
		&loop{name: "check", run: m.checkRedis})

}

// Run fires deadlines until ctx ends, and returns nil when all it started has ended.
func (m *Monitor) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, l := range m.loops {
		running.Go(func() { m.supervise(ctx, l) })
	}
	running.Wait()
	m.busy.running.Wait()
	return nil
}

// tenantOf is whose turn it is when a deadline of a queue comes: that of its virtual host.
func (m *Monitor) tenantOf(queue uint64) string {
	vhost, _, _ := m.primary.QueueName(queue)
	return vhost
}

// Health is the present state. Safe for concurrent use.
func (m *Monitor) Health() Health {
	h := Health{
		Schedule: ScheduleEmbedded,
		Since:    m.started,
		Pending:  m.pending(),
		LastTick: m.loops[0].lastTick(),
		Restarts: m.restarts.Load(),
	}
	if nextAt := m.next(); nextAt != 0 {
		h.Lag = max(m.primary.Now().Sub(nextAt), 0)
	}
	if m.scheduled != nil {
		h.Schedule = ScheduleOfPrimary
	}
	if m.redis != nil {
		h.Schedule, h.Since = m.redis.current()
		h.Reasons = m.redis.troubles()
		if h.Schedule != ScheduleUp && len(h.Reasons) > 0 {
			h.Down = h.Reasons[0]
		}
		h.Orphans = m.redis.orphans.Load()
	}
	for _, l := range m.loops {
		if silent := time.Since(l.lastTick()); l.beat.Load() != 0 && silent > staleAfter {
			h.Stalled = append(h.Stalled, l.name)
			h.Reasons = append(h.Reasons, fmt.Sprintf("loop %s silent for %s", l.name, silent.Round(time.Second)))
		}
	}
	return h
}

// next returns when the next message is to be expired, or asked about again; 0: none.
func (m *Monitor) next() deadline.Instant {
	if m.scheduled != nil {
		_, nextAt := m.scheduled.Waiting()
		return nextAt
	}
	return deadline.Instant(m.nextAt.Load())
}

// nextDeadline returns the next deadline by the wall clock; 0 for none. It leaves out those that
// have passed and were put off because consumers hold the messages.
func (m *Monitor) nextDeadline() deadline.Instant {
	nextAt := m.index.First()
	if m.scheduled != nil {
		nextAt = m.next()
	}
	if nextAt == 0 {
		return 0
	}
	return nextAt.Add(-m.primary.ClockOffset())
}

// pending counts the deadlines that the monitor, or its primary, holds.
func (m *Monitor) pending() int64 {
	if m.scheduled != nil {
		pending, _ := m.scheduled.Waiting()
		return pending
	}
	n, err := m.index.Len(context.Background())
	if err != nil {
		m.log.Error("index", zap.Error(err))
	}
	return n + m.waiting.Load()
}
