package monitor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/scheduler/memstore"
)

// Monitor fires the deadlines of one primary. Create it with New and run it once.
type Monitor struct {
	options Options
	primary Primary
	log     *zap.Logger
	metrics *metrics
	books   *books
	ledgers sync.Pool // *ledger
	loops   []*loop
	started time.Time

	index   *memstore.Store // every deadline that has been tracked
	alarm   *alarm          // of the fire loop
	nextAt  atomic.Int64    // Unix µs the fire loop waits for, 0 for none
	waiting atomic.Int64    // shadows in the window
	wanted  chan struct{}   // the index may not be whole

	free    chan *feedEvents // to read into
	arrived chan *feedEvents // to work on

	redis   *redisSchedule  // nil: the index is the schedule
	due     *memstore.Store // with redis: what was claimed ahead of its time, or too near
	watcher *watcher        // nil: no other instances are known

	forecaster *forecaster // nil: the primary cannot say how its queues stand
	forecasts  atomic.Pointer[[]Forecast]
}

// New returns a monitor that has not done anything yet. Its error says that o is
// incomplete or that a metric is registered already.
func New(o Options) (*Monitor, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Monitor{
		options: o,
		primary: o.Primary,
		log:     o.Log.Named("monitor"),
		started: time.Now(),
		index:   memstore.New(),
		alarm:   newAlarm(),
		wanted:  make(chan struct{}, 1),
		free:    make(chan *feedEvents, feedBuffers),
		arrived: make(chan *feedEvents, feedBuffers),
	}
	for range feedBuffers {
		m.free <- &feedEvents{events: make([]Event, feedBatch)}
	}
	m.loops = []*loop{
		{name: "fire", run: m.fire},
		{name: "read", run: m.read},
		{name: "ingest", run: m.ingest},
		{name: "reconcile", run: m.reconcile},
	}
	if o.Redis != nil {
		m.addRedis()
	}
	if surveyor, ok := o.Primary.(Surveyor); ok {
		m.forecaster = &forecaster{from: surveyor, offset: o.Primary.ClockOffset, alerts: o.Alerts, share: o.RiskShare, meters: make(map[uint64]*metered)}
		m.loops = append(m.loops, &loop{name: "forecast", run: m.forecast})
	}
	if o.Alerts != nil {
		m.loops = append(m.loops, &loop{name: "alert", run: m.alert})
	}
	if m.metrics, err = newMetrics(o.Registerer, m); err != nil {
		return nil, err
	}
	if m.redis != nil {
		m.redis.metrics = m.metrics
	}
	m.books = &books{
		queueName: o.Primary.QueueName,
		offset:    o.Primary.ClockOffset,
		fired:     m.metrics.fired,
		missed:    m.metrics.missed,
		byID:      make(map[uint64]*book),
		labels:    make(map[[2]string]struct{}),
	}
	m.ledgers.New = func() any {
		l := m.newLedger()
		return &l
	}
	m.primary.Expiries(m.expired)
	return m, nil
}

func (m *Monitor) addRedis() {
	m.due = memstore.New()
	m.redis = newRedisSchedule(m.options, m.due, m.alarm)
	m.loops = append(m.loops,
		&loop{name: "write", run: m.redis.write},
		&loop{name: "claim", run: m.redis.claim},
		&loop{name: "keep", run: m.keep})
	if registry, ok := m.options.Redis.(Registry); ok {
		m.redis.names = newNames(registry, m.primary.QueueName, m.redis.log)
		m.watcher = newWatcher(registry, m.options, m.log)
		m.loops = append(m.loops, &loop{name: "watch", run: m.watch})
	}
}

// alert tells what the other loops record.
func (m *Monitor) alert(ctx context.Context, l *loop) error {
	l.idle.Store(true)
	return m.options.Alerts.Run(ctx)
}

// Run fires deadlines until ctx ends, and returns nil when all it started has ended.
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
	h := Health{
		Schedule: ScheduleEmbedded,
		Since:    m.started,
		Pending:  m.pending(),
		LastTick: m.loops[0].lastTick(),
	}
	if nextAt := m.nextAt.Load(); nextAt != 0 {
		h.Lag = time.Duration(max(m.primary.Now()-nextAt, 0)) * time.Microsecond
	}
	if m.redis != nil {
		h.Schedule, h.Since = m.redis.current()
		h.Reasons = m.redis.troubles()
	}
	for _, l := range m.loops {
		if silent := time.Since(l.lastTick()); l.beat.Load() != 0 && silent > staleAfter {
			h.Stalled = append(h.Stalled, l.name)
			h.Reasons = append(h.Reasons, fmt.Sprintf("loop %s silent for %s", l.name, silent.Round(time.Second)))
		}
	}
	return h
}

// shownNext is the next deadline, Unix µs of the wall clock; 0: none.
func (m *Monitor) shownNext() int64 {
	nextAt := m.nextAt.Load()
	if nextAt == 0 {
		return 0
	}
	return nextAt - m.primary.ClockOffset().Microseconds()
}

// pending counts the deadlines the monitor holds.
func (m *Monitor) pending() int64 {
	n, err := m.index.Len(context.Background())
	if err != nil {
		m.log.Error("index", zap.Error(err))
	}
	return n + m.waiting.Load()
}
