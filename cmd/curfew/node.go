package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/certs"
	"curfew/broker/deadletters"
	"curfew/broker/server"
	"curfew/broker/store"
	"curfew/monitor"
	"curfew/monitor/alert"
	"curfew/monitor/audit"
	"curfew/monitor/embedded"
	"curfew/monitor/telemetry"
	"curfew/scheduler/redisstore"
)

// node is a broker with its AMQP server and its monitor, as serve and demo run it.
type node struct {
	broker    *broker.Broker
	server    *server.Server
	redis     *redisstore.Store   // nil: no Redis
	monitor   *monitor.Monitor    // nil: no monitor
	alerts    *alert.Alerts       // likewise
	heartbeat *alert.Heartbeat    // nil: none
	audit     *audit.Log          // nil: none
	telemetry *telemetry.Exporter // nil: none
	replays   *deadletters.Runs   // of dead letters
	probes    []*probe
	failed    bool // run ended by an error
}

// openNode recovers what is stored and makes the parts; nothing runs yet. close undoes it.
func openNode(c *config, metrics *prometheus.Registry, log *zap.Logger) (n *node, err error) {
	n = &node{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
			n = nil
		}
	}()
	storage, err := storeOptions(c, metrics, log)
	if err != nil {
		return n, err
	}
	if err := n.openAudit(c, metrics, log); err != nil {
		return n, fmt.Errorf("with CURFEW_DATA_DIR=%s: %w", c.DataDir, err)
	}
	if err := n.openTelemetry(c, metrics, log); err != nil {
		return n, err
	}
	precedence, _ := broker.ParsePrecedence(c.TTLPrecedence)
	n.broker, err = broker.New(broker.Options{
		Store: storage, MaxMessageBytes: int(c.MaxMessageSize), MemoryLimit: c.MemoryLimit.bytes(), DiskFreeLimit: int64(c.DiskFreeLimit), Log: log,
		User: string(c.User), Password: string(c.Password), GuestFromAnywhere: !c.GuestLoopbackOnly,
		Ceilings:      broker.Ceilings{Queues: c.MaxQueues, Exchanges: c.MaxExchanges, Bindings: c.MaxBindings},
		TTLPrecedence: precedence, TTLOff: c.TTL == "off", Unroutable: unroutables[c.Unroutable], IdleMinimum: c.IdleMinimum,
		OnExpired: n.onExpired(), TraceExpired: n.telemetry != nil && n.telemetry.Traces(),
	})
	if err != nil {
		return n, fmt.Errorf("with CURFEW_DATA_DIR=%s: %w", c.DataDir, err)
	}
	if err := importDefinitions(n.broker, c.Definitions, log); err != nil {
		return n, fmt.Errorf("with CURFEW_DEFINITIONS=%s: %w", c.Definitions, err)
	}
	if err := metrics.Register(n.broker); err != nil {
		return n, fmt.Errorf("register the broker's metrics: %w", err)
	}
	n.server = server.New(server.Options{
		Broker: n.broker, Log: log, Version: versionText(), Compat: string(c.CompatRabbitmqVersion),
		FrameMax: uint32(c.FrameMax), ChannelMax: uint16(c.ChannelMax), Heartbeat: c.Heartbeat.offered(),
		MaxConnections: connectionLimit(c.MaxConnections, log), ConsumerTimeout: c.ConsumerTimeout.limit(),
		NameFrom: certs.NameFrom(c.TLSLoginFrom),
	})
	if err := metrics.Register(n.server); err != nil {
		return n, fmt.Errorf("register the server's metrics: %w", err)
	}
	if err := n.openReplays(c, log); err != nil {
		return n, err
	}
	n.probes = n.newProbes()
	if c.Monitor {
		if err = n.openMonitor(c, metrics, log); err != nil {
			return n, err
		}
	}
	return n, n.openHeartbeat(c, metrics, log)
}

// openReplays goes on with the replays that the last process was at.
func (n *node) openReplays(c *config, log *zap.Logger) (err error) {
	dir := ""
	if c.DataDir != "" {
		dir = filepath.Join(c.DataDir, "replays")
	}
	if n.replays, err = deadletters.NewRuns(n.broker, dir, log); err != nil {
		return fmt.Errorf("with CURFEW_DATA_DIR=%s: %w", c.DataDir, err)
	}
	return nil
}

func storeOptions(c *config, metrics prometheus.Registerer, log *zap.Logger) (store.Options, error) {
	mode, err := store.ParseSyncMode(c.StoreSync)
	if err != nil {
		return store.Options{}, err
	}
	syncs := promauto.With(metrics).NewHistogram(prometheus.HistogramOpts{
		Name:    "curfew_journal_fsync_duration_seconds",
		Help:    "How long syncs of the message store took.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	})
	return store.Options{
		Dir: c.DataDir, Sync: mode, Log: log,
		OnSync: func(took time.Duration) { syncs.Observe(took.Seconds()) },
		Progress: func(done, total int64) {
			log.Info("recovering", zap.Int64("bytes", done), zap.Int64("of", total))
		},
	}, nil
}

var unroutables = map[string]broker.Unroutable{"park": broker.Park, "drop": broker.Drop}

// writeWindow is what the monitor calls it: there 0 is its default and less than 0 is none.
func (c *config) writeWindow() time.Duration {
	if c.ScheduleWindow == 0 {
		return -1
	}
	return c.ScheduleWindow
}

func (n *node) openMonitor(c *config, metrics prometheus.Registerer, log *zap.Logger) error {
	err := n.openAlerts(c, metrics, log)
	if err != nil {
		return err
	}
	if c.RedisURL != "" {
		redis.SetLogger(redisLogger{log.Named("redis")})
		n.redis, err = redisstore.Open(redisstore.Options{
			URL: string(c.RedisURL), Instance: string(c.Instance), Shards: c.RedisShards, Now: n.broker.Now,
		})
		if err != nil {
			return fmt.Errorf("CURFEW_REDIS_URL: %w", err)
		}
	}
	n.monitor, err = monitor.New(monitor.Options{
		Primary: embedded.New(n.broker), Redis: n.redis, Alerts: n.alerts, WriteWindow: c.writeWindow(),
		MissThreshold: c.MissThreshold, RiskShare: float64(c.RiskPercent) / 100, NewTimer: monitor.PreciseTimer, Log: log, Registerer: metrics,
	})
	return err
}

// run serves clients on the listeners and fires deadlines until ctx ends or a part fails, then lets the
// connections end before the monitor, so that it sees what they settled.
func (n *node) run(ctx context.Context, listeners ...net.Listener) error {
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	parts := []func(context.Context) error{n.runMonitor, n.watchStore, n.runHeartbeat}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			defer stopServing()
			ended <- part(background)
		}()
	}
	stopAudit, stopTelemetry := n.runAudit(ctx), n.runTelemetry(ctx)
	err := n.server.Serve(serving, listeners...)
	stopBackground()
	for range parts {
		err = errors.Join(err, <-ended)
	}
	stopAudit() // when nothing expires any more
	stopTelemetry()
	n.failed = err != nil
	return err
}

// beside runs run, which has no error, for longer than ctx: until stop is called, which waits for it.
func beside(ctx context.Context, run func(context.Context) error) (stop func()) {
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

func (n *node) runMonitor(ctx context.Context) error {
	if n.monitor == nil {
		<-ctx.Done()
		return nil
	}
	return n.monitor.Run(ctx)
}

// watchStore ends with the store's error soon after the store has failed: what a failed write or sync
// left behind is known only to a new start.
func (n *node) watchStore(ctx context.Context) error {
	select {
	case err := <-n.broker.Failed():
		return fmt.Errorf("the message store failed, start again to recover what was confirmed: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// close flushes and frees what openNode made.
func (n *node) close() error {
	var errs []error
	// One that failed does not take its leave: other instances are to notice.
	if n.redis != nil && !n.failed {
		errs = append(errs, n.redis.Close())
	}
	if n.replays != nil {
		n.replays.Close()
	}
	if n.broker != nil {
		if err := n.broker.Close(); !n.failed { // else run has said it
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// tickLimit is how long the monitor's loop may be silent before only a restart helps. It is alive at
// least once a second.
const tickLimit = 20 * time.Second

// storeVitals: full disk or memory stops publishes, and changes of definitions, and nothing else.
func (n *node) storeVitals() (v vitals) {
	if reason, _ := n.broker.Gate(); reason != "" {
		v.Reasons = append(v.Reasons, "publishers are blocked, "+reason+": make room or consume messages")
	}
	if err := n.broker.Unsaved(); err != nil {
		v.Reasons = append(v.Reasons, fmt.Sprintf("definitions cannot be saved: queues, users and the like cannot be made or changed, and what was deleted would be back after a restart: make room (%s)", err))
	}
	if lost := n.broker.Adopted(); lost > 0 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("messages found without the definition of their queue stand in %d queue(s) %s*: move them, then delete these", lost, broker.RecoveredPrefix))
	}
	return v
}

// clockLimit is how far the clock of deadlines may be from the wall clock before health says so. A leap
// second, and the steps of a time service that has been in order, are below it; one that was not is above.
const clockLimit = 5 * time.Second

// clockVitals: times to live are right whatever the wall clock says, but an absolute time that was given
// while it was wrong is wrong for good.
func clockVitals(ahead time.Duration) vitals {
	if ahead.Abs() <= clockLimit {
		return vitals{}
	}
	where := "ahead of"
	if ahead < 0 {
		where = "behind"
	}
	return vitals{Reasons: []string{fmt.Sprintf("the clock of deadlines is %s %s the machine's, which was set or was wrong at a start: times to live are kept, "+
		"but absolute times (x-expires-at, x-scheduled-enqueue-time) given while it was wrong are off; see to the machine's time service. "+
		"The next start with no deadline pending goes by the machine's clock", ahead.Abs().Round(time.Millisecond), where)}}
}

// connectionVitals tell for a while that AMQP connections were refused for their number.
func (n *node) connectionVitals() vitals {
	most, last := n.server.Full()
	if last.IsZero() || time.Since(last) > refusalFresh {
		return vitals{}
	}
	v := refusedVitals(most)
	v.Reasons[0] = "AMQP " + v.Reasons[0] + ", CURFEW_MAX_CONNECTIONS if that is less"
	return v
}

// monitorVitals judges the monitor's own account. since is when it was to begin: before its first tick
// its silence counts from there.
func monitorVitals(h monitor.Health, since, now time.Time) vitals {
	v := vitals{Reasons: h.Reasons, Detail: h}
	if h.LastTick.After(since) {
		since = h.LastTick
	}
	if silent := now.Sub(since); silent > tickLimit {
		v.Dead = true
		v.Reasons = append(v.Reasons, fmt.Sprintf("the loop that fires deadlines has been silent for %s", silent.Round(time.Second)))
	}
	return v
}
