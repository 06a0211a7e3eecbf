package schedule

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/scheduler"
)

// Scheduler is a Monitor that fires the deadlines of one primary. Create it with New and run it once.
type Scheduler struct {
	*monitor.Monitor

	options Options
	primary Primary
	log     *zap.Logger
	metrics *metrics
	firing  *monitor.Loop

	index    *index
	busy     busyQueues
	turns    deadline.Longest // of the fire loop
	wakeFire *wakeup          // of the fire loop
	nextAt   atomic.Int64     // Unix µs the fire loop waits for, 0 for none
	wanted   chan struct{}    // the index may be incomplete

	free    chan *feedEvents // to read into
	arrived chan *feedEvents // to work on

	stepper *stepper // nil: the loops read, index and fire

	redis *redisSchedule   // nil: the index is the schedule
	due   *scheduler.Index // with redis: shadows claimed ahead of their time, or too near to be written
}

// New returns a scheduler that fires nothing before Run. Its error says that o is incomplete.
// It panics if a metric is registered already.
func New(o Options) (*Scheduler, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Scheduler{
		options:  o,
		primary:  o.Primary,
		log:      o.Log.Named("monitor"),
		busy:     busyQueues{held: map[uint64]struct{}{}},
		wakeFire: newWakeup(),
		wanted:   make(chan struct{}, 1),
		free:     make(chan *feedEvents, feedBuffers),
		arrived:  make(chan *feedEvents, feedBuffers),
	}
	for range feedBuffers {
		m.free <- &feedEvents{events: make([]deadline.Event, feedBatch)}
	}
	m.index = &index{Index: scheduler.NewIndex(m.tenantOf)}
	if m.Monitor, err = monitor.New(monitor.Options{
		Source: o.Primary, Pending: m.index, Restarted: m.requestReconcile, Meant: o.Meant,
		Record: o.Record, Log: o.Log, Registerer: o.Registerer,
	}); err != nil {
		return nil, err
	}
	if o.Stepped {
		m.addStepper()
	} else {
		m.firing = m.AddLoop("fire", m.fire)
		m.AddLoop("read", m.read)
		m.AddLoop("ingest", m.ingest)
		m.AddLoop("reconcile", m.reconcile)
	}
	if o.Redis != nil {
		m.due = scheduler.NewIndex(m.tenantOf)
		m.redis = newRedisSchedule(o, m.due, m.wakeFire)
		m.AddLoop("write", m.redis.write)
		m.AddLoop("claim", m.redis.claim)
		m.AddLoop("check", m.checkRedis)
	}
	if m.metrics = newMetrics(m); m.redis != nil {
		m.redis.metrics = m.metrics
	}
	return m, nil
}

// Run fires deadlines until ctx ends, and returns nil when all it started has ended.
func (m *Scheduler) Run(ctx context.Context) error {
	err := m.Monitor.Run(ctx)
	m.busy.running.Wait()
	return err
}

// tenantOf is whose turn it is when a deadline of a queue comes: that of its virtual host.
func (m *Scheduler) tenantOf(queue uint64) string {
	vhost, _, _ := m.primary.QueueName(queue)
	return vhost
}

// Health is the present state. Safe for concurrent use.
func (m *Scheduler) Health() monitor.Health {
	h := m.Monitor.Health()
	h.Schedule, h.LastTick, h.Lag = monitor.ScheduleEmbedded, m.firing.LastTick(), 0
	if nextAt := deadline.Instant(m.nextAt.Load()); nextAt != 0 {
		h.Lag = max(m.primary.Now().Sub(nextAt), 0)
	}
	if m.redis != nil {
		m.redis.report(&h)
	}
	return h
}

// index has every deadline that has been tracked. It implements monitor.Pending.
type index struct {
	*scheduler.Index
	window atomic.Int64 // shadows that wait to be indexed
}

// Waiting leaves out deadlines that have passed and were put off because consumers hold the messages.
func (x *index) Waiting() (pending int64, nextAt deadline.Instant) {
	return x.Length() + x.window.Load(), x.First()
}
