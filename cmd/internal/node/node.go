package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard"
	"curfew/cmd/internal/settings"
	"curfew/monitor"
	"curfew/monitor/audit"
	"curfew/monitor/changes"
	"curfew/monitor/history"
	"curfew/monitor/incident"
	"curfew/monitor/telemetry"
)

// Options are what Open needs.
type Options struct {
	Settings *settings.Settings
	Build    Build
	Metrics  *prometheus.Registry
	Log      *zap.Logger
}

// Node is what every Curfew has, however its messages are kept, and its primary. A part that the settings turn off is nil.
type Node struct {
	settings *settings.Settings
	build    Build
	metrics  *prometheus.Registry
	log      *zap.Logger

	primary   primary
	monitor   watcher // nil: none
	incidents *incident.Incidents
	audit     *audit.Log          // nil: none
	telemetry *telemetry.Exporter // nil: none
	history   *history.History
	expired   deadline.Stream   // what the history and the incidents count
	recorder  *operate.Recorder // of what users change
	changes   *changes.Changes
	closers   []func() error // of what Open made, called in the opposite order
	failed    bool           // Run ended by an error
	inputs    inputs         // read before anything was opened
	handover  *handover      // of HTTP on the ports for AMQP; nil: none

	// What the primary fills in.
	probes  []*probe                      // check that its parts respond
	parts   []func(context.Context) error // of it that Run runs, besides serve, until their context ends
	clients func() []history.Client       // the applications that are connected, with their versions; nil: not known. One goroutine calls it.
	allow   changes.RabbitMQ              // whose queues may be allowed again; nil: none
	// unreached is why nothing is known of it since the start, "": that is not so; nil: there is no such time. Incidents wait a while, so as not to come and go.
	unreached func() string

	looker   looker
	opened   atomic.Bool // all parts are there, and may be looked at
	openedAt time.Time   // when that was
}

// primary is what has the messages, with the parts that are about it: an ownBroker or a rabbitmqPrimary. What depends on which of them it is
// is asked for here, or filled in by open.
type primary interface {
	// open makes the parts, but runs none of them. It fills in what the Node has of the primary.
	open() error
	// openMonitor makes what watches the deadlines.
	openMonitor() (watcher, error)
	// serve serves clients on the listeners, or keeps the deadlines of RabbitMQ, until ctx ends.
	serve(ctx context.Context, listeners []net.Listener) error
	// look fills in what the conditions are judged by.
	look(s *incident.State)
	// queues calls fn with each queue that the history is to have.
	queues(forecasts []deadline.Forecast, fn func(*history.Queue)) history.Stats
	// status fills in what is known about the messages.
	status(s *Status, hour deadline.Hour)
	// describe returns its lines of the banner. web is where the dashboard is.
	describe(web string) []string
	// pages makes what is served over HTTP besides the ops endpoints.
	pages(ops *opsEndpoints, s *sockets) (*dashboard.Dashboard, *web, error)
}

// watcher watches deadlines: a schedule.Scheduler or, beside RabbitMQ, a monitor.Monitor.
type watcher interface {
	dashboard.Monitor
	Forecasts() []deadline.Forecast
	Waits() map[uint64]monitor.QueueWait
	Run(ctx context.Context) error
}

// Open recovers the store and makes the parts, but runs none of them. Close releases them.
func Open(o Options) (n *Node, err error) {
	n = &Node{settings: o.Settings, build: o.Build, metrics: o.Metrics, log: o.Log}
	if n.settings.PrimaryURL != "" {
		n.primary = &rabbitmqPrimary{n: n}
	} else {
		n.primary = &ownBroker{n: n}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
			n = nil
		}
	}()
	if n.inputs, err = readInputs(n.settings, n.log); err != nil {
		return n, err
	}
	if err := n.openAudit(); err != nil {
		return n, n.inDataDir(err)
	}
	if err := n.openTelemetry(); err != nil {
		return n, err
	}
	n.openHistory()
	if err := n.openIncidents(); err != nil {
		return n, n.inDataDir(err)
	}
	n.recorder = operate.NewRecorder(operate.RecorderOptions{Log: n.log, Registerer: n.metrics, Changed: n.changed})
	if err := n.primary.open(); err != nil {
		return n, err
	}
	if n.settings.Monitor {
		if n.monitor, err = n.primary.openMonitor(); err != nil {
			return n, err
		}
	}
	n.changes = changes.New(changes.Options{Incidents: n.incidents, RabbitMQ: n.allow, Recorder: n.recorder})
	return n, nil
}

// inDataDir adds the data folder to an error.
func (n *Node) inDataDir(err error) error {
	return fmt.Errorf("with CURFEW_DATA_DIR=%s: %w", n.settings.DataDir, err)
}

// redisLogger sends go-redis's messages, which would go to stderr, to log. They repeat with each attempt
// to connect, while the monitor logs once that Redis is away. So they are for debugging.
type redisLogger struct{ log *zap.Logger }

func (l redisLogger) Printf(_ context.Context, format string, v ...any) {
	if l.log.Core().Enabled(zap.DebugLevel) {
		l.log.Debug(fmt.Sprintf(format, v...))
	}
}

// Run serves clients on the listeners, or keeps the deadlines of RabbitMQ, and fires deadlines until ctx ends or a part
// fails. It stops the connections before the monitor, so that the monitor sees what they settled.
func (n *Node) Run(ctx context.Context, listeners ...net.Listener) error {
	n.ready()
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	parts := append([]func(context.Context) error{n.incidents.Run}, n.parts...)
	if n.monitor != nil {
		parts = append(parts, n.monitor.Run)
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			defer stopServing()
			ended <- part(background)
		}()
	}
	stopTelemetry, stopHistory := n.runTelemetry(ctx), runInBackground(ctx, n.history.Run)
	err := n.primary.serve(serving, listeners)
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

// Close flushes and closes what Open made.
func (n *Node) Close() error {
	var errs []error
	for _, fn := range slices.Backward(n.closers) {
		errs = append(errs, fn())
	}
	return errors.Join(errs...)
}
