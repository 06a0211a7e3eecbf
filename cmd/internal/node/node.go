package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/certs"
	"curfew/broker/deadletters"
	"curfew/broker/definitions"
	"curfew/broker/operate"
	"curfew/broker/policy"
	"curfew/broker/server"
	"curfew/broker/store"
	"curfew/cmd/internal/settings"
	"curfew/monitor"
	"curfew/monitor/audit"
	"curfew/monitor/changes"
	"curfew/monitor/dashboard"
	"curfew/monitor/history"
	"curfew/monitor/incident"
	"curfew/monitor/rabbitmq"
	"curfew/monitor/schedule"
	"curfew/monitor/telemetry"
	"curfew/scheduler/redisstore"
)

// Options are what Open needs.
type Options struct {
	Settings *settings.Settings
	Build    Build
	Metrics  *prometheus.Registry
	Log      *zap.Logger
}

// Node is a broker with its AMQP server and its monitor, as serve and demo run it, or a monitor of a RabbitMQ.
type Node struct {
	settings *settings.Settings
	build    Build
	metrics  *prometheus.Registry
	log      *zap.Logger

	broker        *broker.Broker        // nil: beside RabbitMQ
	server        *server.Server        // nil: beside RabbitMQ
	rabbitmq      *rabbitmq.Primary     // nil: the broker of this process
	leases        redis.UniversalClient // nil: no Redis, or not beside RabbitMQ
	redis         *redisstore.Store     // nil: no Redis, or beside RabbitMQ
	monitor       watcher               // nil: no monitor
	incidents     *incident.Incidents
	deadManSwitch *incident.DeadManSwitch // nil: none
	audit         *audit.Log              // nil: none
	telemetry     *telemetry.Exporter     // nil: none
	history       *history.History
	replays       *deadletters.Replays // of dead letters
	recorder      *operate.Recorder    // of what users change
	changes       *changes.Changes
	operations    *operate.Operations // nil: beside RabbitMQ, or not served over HTTP
	probes        []*probe
	failed        bool // Run ended by an error

	looker   looker
	opened   atomic.Bool // all parts are there, and may be looked at
	openedAt time.Time   // when that was

	onlyUser sync.Once
	user     *oneUser // beside RabbitMQ
}

// watcher watches deadlines: a schedule.Scheduler or, beside RabbitMQ, a monitor.Monitor.
type watcher interface {
	dashboard.Monitor
	Run(ctx context.Context) error
}

// Open recovers the store and makes the parts, but runs none of them. Close releases them.
func Open(o Options) (n *Node, err error) {
	n = &Node{settings: o.Settings, build: o.Build, metrics: o.Metrics, log: o.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
			n = nil
		}
	}()
	if err := n.openAudit(); err != nil {
		return n, n.inDataDir(err)
	}
	if err := n.openTelemetry(); err != nil {
		return n, err
	}
	if err := n.openIncidents(); err != nil {
		return n, n.inDataDir(err)
	}
	n.history = newHistory(n)
	if err := n.openPrimary(); err != nil {
		return n, err
	}
	n.probes = n.newProbes()
	if n.settings.Monitor {
		if err := n.openMonitor(); err != nil {
			return n, err
		}
	}
	openChanges(n)
	return n, n.openDeadManSwitch()
}

// inDataDir adds the data folder to an error.
func (n *Node) inDataDir(err error) error {
	return fmt.Errorf("with CURFEW_DATA_DIR=%s: %w", n.settings.DataDir, err)
}

// openPrimary opens what holds the messages and decides whether one has expired: the broker of this process, with its
// AMQP server and its replays, or the RabbitMQ of CURFEW_PRIMARY_URL. The choice is made only here.
func (n *Node) openPrimary() error {
	if n.settings.PrimaryURL != "" {
		return n.openRabbitMQ()
	}
	if err := n.openBroker(); err != nil {
		return err
	}
	if err := n.openServer(); err != nil {
		return err
	}
	if err := n.openReplays(); err != nil {
		return n.inDataDir(err)
	}
	return nil
}

// openBroker recovers the store and imports definitions.
func (n *Node) openBroker() error {
	c := n.settings
	storage, err := n.storeOptions()
	if err != nil {
		return err
	}
	precedence, _ := policy.ParsePrecedence(c.TTLPrecedence)
	n.broker, err = broker.New(broker.Options{
		Store: storage, MaxMessageBytes: int(c.MaxMessageSize), MemoryLimit: c.MemoryLimit.Bytes(), DiskFreeLimit: int64(c.DiskFreeLimit), Log: n.log,
		User: string(c.User), Password: string(c.Password), GuestFromAnywhere: !c.GuestLoopbackOnly,
		TTLPrecedence: precedence, TTLOff: c.TTL == "off", Unroutable: unroutables[c.Unroutable], IdleMinimum: c.IdleMinimum,
		Expiries: n.expiries(), OnLongHold: n.recordHold, Manual: c.ManualClock(),
	})
	if err != nil {
		return n.inDataDir(err)
	}
	if err := n.importDefinitions(); err != nil {
		return fmt.Errorf("with CURFEW_DEFINITIONS=%s: %w", c.Definitions, err)
	}
	if err := n.metrics.Register(n.broker); err != nil {
		return fmt.Errorf("register the broker's metrics: %w", err)
	}
	return nil
}

// importDefinitions adds the definitions in the file that the settings name.
func (n *Node) importDefinitions() error {
	if n.settings.Definitions == "" {
		return nil
	}
	text, err := os.ReadFile(n.settings.Definitions)
	if err != nil {
		return err
	}
	d, err := definitions.Parse(text)
	if err != nil {
		return err
	}
	report, err := definitions.Import(context.Background(), n.broker, d, definitions.Options{})
	if err != nil {
		return err
	}
	report.Log(n.log)
	return nil
}

func (n *Node) openServer() error {
	c := n.settings
	n.server = server.New(server.Options{
		Broker: n.broker, Log: n.log, Version: n.build.Version,
		MaxConnections: connectionLimit(c.MaxConnections, n.log), ConsumerTimeout: c.ConsumerTimeout.Limit(),
		NameFrom: certs.NameFrom(c.TLSLoginFrom),
	})
	if err := n.metrics.Register(n.server); err != nil {
		return fmt.Errorf("register the server's metrics: %w", err)
	}
	return nil
}

// openReplays resumes the replays that the last process was running.
func (n *Node) openReplays() (err error) {
	dir := ""
	if n.settings.DataDir != "" {
		dir = filepath.Join(n.settings.DataDir, "replays")
	}
	n.replays, err = deadletters.OpenReplays(n.broker, dir, n.log)
	return err
}

func (n *Node) storeOptions() (store.Options, error) {
	mode, err := store.ParseSyncMode(n.settings.StoreSync)
	if err != nil {
		return store.Options{}, err
	}
	syncs := promauto.With(n.metrics).NewHistogram(prometheus.HistogramOpts{
		Name:    "curfew_journal_fsync_duration_seconds",
		Help:    "How long syncs of the message store took.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	})
	return store.Options{
		Dir: n.settings.DataDir, Sync: mode, Log: n.log,
		OnSync: func(took time.Duration) { syncs.Observe(took.Seconds()); n.looker.synced(took) },
		Progress: func(done, total int64) {
			n.log.Info("recovering", zap.Int64("bytes", done), zap.Int64("of", total))
		},
	}, nil
}

var unroutables = map[string]broker.Unroutable{"park": broker.Park, "drop": broker.Drop}

func (n *Node) openMonitor() error {
	var err error
	if n.rabbitmq != nil {
		n.monitor, err = monitor.New(monitor.Options{
			Source: n.rabbitmq, Pending: n.rabbitmq, Record: n.incidents.Record, Log: n.log, Registerer: n.metrics,
		})
		return err
	}
	o := schedule.Options{
		Primary: n.broker.Deadlines(), PrimaryIsNew: n.broker.NewFolder(), WriteWindow: n.settings.ScheduleWindow,
		Record: n.incidents.Record, NewTimer: schedule.PreciseTimer, Log: n.log, Registerer: n.metrics,
	}
	if o.WriteWindow == 0 {
		o.WriteWindow = -1 // what the scheduler calls no window
	}
	if n.settings.RedisURL != "" {
		redis.SetLogger(redisLogger{n.log.Named("redis")})
		n.redis, err = redisstore.Open(redisstore.Options{
			URL: string(n.settings.RedisURL), Instance: string(n.settings.Instance), Now: n.broker.Now,
		})
		if err != nil {
			return fmt.Errorf("CURFEW_REDIS_URL: %w", err)
		}
		o.Redis = n.redis
	}
	o.Stepped = n.broker.Manual() != nil
	s, err := schedule.New(o)
	if err == nil && o.Stepped {
		n.broker.Manual().Fire(s.Step)
	}
	n.monitor = s
	return err
}

// redisLogger sends go-redis's messages, which would go to stderr, to log. They repeat with each attempt
// to connect, while the monitor logs once that Redis is away. So they are for debugging.
type redisLogger struct{ log *zap.Logger }

func (l redisLogger) Printf(_ context.Context, format string, v ...any) {
	if l.log.Core().Enabled(zap.DebugLevel) {
		l.log.Debug(fmt.Sprintf(format, v...))
	}
}

// Run serves clients on the listeners, or keeps the deadlines of a RabbitMQ, and fires deadlines until ctx ends or a part
// fails. It stops the connections before the monitor, so that the monitor sees what they settled.
func (n *Node) Run(ctx context.Context, listeners ...net.Listener) error {
	n.ready()
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	parts := []func(context.Context) error{n.runMonitor, n.runDeadManSwitch, n.incidents.Run}
	serve := func(ctx context.Context) error { return n.server.Serve(ctx, listeners...) }
	if n.rabbitmq != nil {
		serve = n.rabbitmq.Run
	} else {
		parts = append(parts, n.watchStore)
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			defer stopServing()
			ended <- part(background)
		}()
	}
	stopTelemetry, stopHistory := n.runTelemetry(ctx), runInBackground(ctx, n.history.Run)
	if n.monitor == nil && n.broker != nil {
		n.log.Info("the monitor is off: what came due before the start has expired", zap.Int("messages", n.broker.Deadlines().ExpireOverdue()))
	}
	err := serve(serving)
	stopBackground()
	for range parts {
		err = errors.Join(err, <-ended)
	}
	stopTelemetry() // now that nothing expires any more
	stopHistory()
	n.failed = err != nil
	return err
}

// ready lets the incidents look at all parts.
func (n *Node) ready() {
	if !n.opened.Load() {
		n.openedAt = time.Now()
		n.opened.Store(true)
	}
}

// runInBackground runs run, which never fails, until stop is called; the end of ctx does not stop it. stop
// waits for run to return.
func runInBackground(ctx context.Context, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (n *Node) runMonitor(ctx context.Context) error {
	if n.monitor == nil {
		<-ctx.Done()
		return nil
	}
	return n.monitor.Run(ctx)
}

// watchStore returns the store's error soon after the store has failed: only a restart can find out what
// a failed write or sync left behind.
func (n *Node) watchStore(ctx context.Context) error {
	select {
	case err := <-n.broker.Failed():
		return fmt.Errorf("the message store failed; start Curfew again to recover what was confirmed: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// Close flushes and closes what Open made.
func (n *Node) Close() error {
	var errs []error
	// After a failure the instance stays registered, so that the others notice.
	if n.redis != nil && !n.failed {
		errs = append(errs, n.redis.Close())
	}
	if n.leases != nil {
		errs = append(errs, n.leases.Close())
	}
	if n.operations != nil {
		n.operations.Close()
	}
	if n.replays != nil {
		n.replays.Close()
	}
	if n.broker != nil {
		if err := n.broker.Close(); !n.failed { // otherwise Run has returned the error
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
