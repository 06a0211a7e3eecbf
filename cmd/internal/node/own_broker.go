package node

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/deadline"
	"curfew/broker/definitions"
	"curfew/broker/management"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/policy"
	"curfew/broker/server"
	"curfew/broker/servicebus/atom"
	"curfew/broker/store"
	"curfew/cmd/internal/dashboard"
	"curfew/cmd/internal/settings"
	"curfew/monitor/history"
	"curfew/monitor/incident"
	"curfew/monitor/schedule"
	"curfew/scheduler/redisstore"
)

// ownBroker is the broker of this process, with its AMQP server, its replays and its management API.
type ownBroker struct {
	n          *Node
	broker     *broker.Broker
	server     *server.Server
	operations *operate.Operations
}

// open implements primary.
func (o *ownBroker) open() error {
	if err := o.openBroker(); err != nil {
		return err
	}
	if err := o.openServer(); err != nil {
		return err
	}
	return o.openOperations()
}

// openBroker recovers the store and imports definitions.
func (o *ownBroker) openBroker() error {
	c := o.n.settings
	storage, err := o.storeOptions()
	if err != nil {
		return err
	}
	precedence, _ := policy.ParsePrecedence(c.TTLPrecedence)
	o.broker, err = broker.New(broker.Options{
		Store: storage, MaxMessageBytes: int(c.MaxMessageSize), MemoryLimit: c.MemoryLimit.Bytes(), DiskFreeLimit: int64(c.DiskFreeLimit), Log: o.n.log,
		User: c.User, Password: c.Password, GuestFromAnywhere: !c.GuestLoopbackOnly,
		TTLPrecedence: precedence, TTLOff: c.TTL == "off", Unroutable: unroutables[c.Unroutable], IdleMinimum: c.IdleMinimum,
		Expiries: o.n.expiries(), OnLongHold: o.n.recordHold, Manual: c.ManualClock(),
	})
	if err != nil {
		return o.n.inDataDir(err)
	}
	o.n.closers = append(o.n.closers, func() error {
		if err := o.broker.Close(); !o.n.failed { // otherwise Run has returned the error
			return err
		}
		return nil
	})
	o.n.history.Departed(func(vhost, queue, client string, at time.Time) {
		if vh, ok := o.broker.VHost(vhost); ok {
			if q, err := vh.Queues.Get(queue); err == nil {
				broker.Depart(&q.Messages, broker.Departure{Client: client, At: o.broker.Now().Add(-time.Since(at))})
			}
		}
	})
	if err := o.importDefinitions(); err != nil {
		return fmt.Errorf("with CURFEW_DEFINITIONS=%s: %w", c.Definitions, err)
	}
	if err := o.declareEntities(); err != nil {
		return fmt.Errorf("with CURFEW_SERVICEBUS_CONFIG=%s: %w", c.ServicebusConfig, err)
	}
	if err := o.n.metrics.Register(o.broker); err != nil {
		return fmt.Errorf("register the broker's metrics: %w", err)
	}
	return nil
}

// importDefinitions adds the definitions in the file that the settings name.
func (o *ownBroker) importDefinitions() error {
	if o.n.inputs.definitions == nil {
		return nil
	}
	report, err := definitions.Import(context.Background(), o.broker, o.n.inputs.definitions, definitions.Options{})
	if err != nil {
		return err
	}
	report.Log(o.n.log)
	return nil
}

func (o *ownBroker) openServer() error {
	c := o.n.settings
	options := server.Options{
		Broker: o.broker, Log: o.n.log, Version: o.n.build.Version, Node: nodeName(c),
		MaxConnections: connectionLimit(c.MaxConnections, o.n.log), ConsumerTimeout: c.ConsumerTimeout.Limit(),
		NameFrom: access.NameFrom(c.TLSLoginFrom), ServiceBus: o.serviceBus(),
	}
	if files := o.n.inputs.certs; files != nil {
		options.TLS = files.listenerConfig()
	}
	if c.HTTPOnAMQP {
		o.n.handover = newHandover()
		options.HTTP = o.n.handover.give
	}
	o.server = server.New(options)
	o.n.probes = []*probe{
		{name: "store", ask: func(answer func()) { o.broker.Commit(func(error) { answer() }) }},
		{name: "server", ask: func(answer func()) { o.server.Connections(); answer() }},
	}
	o.n.parts = append(o.n.parts, func(ctx context.Context) error { // only a restart can find out what a failed write or sync left behind
		select {
		case err := <-o.broker.Failed():
			return fmt.Errorf("the message store failed; start Curfew again to recover what was confirmed: %w", err)
		case <-ctx.Done():
			return nil
		}
	})
	var seen connected
	o.n.clients = func() []history.Client { return seen.versions(o.server) }
	for _, c := range []prometheus.Collector{o.server, heldMessages{o}} {
		if err := o.n.metrics.Register(c); err != nil {
			return fmt.Errorf("register the server's metrics: %w", err)
		}
	}
	return nil
}

// openOperations makes the operations that the management API and the dashboard share, and resumes the replays that the last process was running.
func (o *ownBroker) openOperations() error {
	o.operations = operate.New(operate.Options{
		Broker: o.broker, Server: o.server, DataDir: o.n.settings.DataDir, Log: o.n.log, Recorder: o.n.recorder,
		NodeName: nodeName(o.n.settings),
		Purpose:  func(q *broker.Queue) deadline.Purpose { return o.n.looker.purpose(o.broker, q) },
		Wait: func(queue uint64) deadline.Wait {
			if o.n.monitor == nil {
				return deadline.Wait{}
			}
			return o.n.monitor.Waits()[queue].Wait
		},
		Version: definitions.Version{RabbitMQ: server.RabbitMQVersion, Product: "Curfew", ProductVersion: o.n.build.Version},
	})
	o.n.closers = append(o.n.closers, func() error {
		o.operations.Close()
		return nil
	})
	if o.n.settings.DataDir == "" {
		return nil
	}
	if err := o.operations.OpenReplays(filepath.Join(o.n.settings.DataDir, "replays")); err != nil {
		return o.n.inDataDir(err)
	}
	return nil
}

func (o *ownBroker) storeOptions() (store.Options, error) {
	mode, err := store.ParseSyncMode(o.n.settings.StoreSync)
	if err != nil {
		return store.Options{}, err
	}
	syncs := promauto.With(o.n.metrics).NewHistogram(prometheus.HistogramOpts{
		Name:    "curfew_journal_fsync_duration_seconds",
		Help:    "How long syncs of the message store took.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	})
	return store.Options{
		Dir: o.n.settings.DataDir, Sync: mode, Log: o.n.log,
		OnSync: func(took time.Duration) { syncs.Observe(took.Seconds()); o.n.looker.synced(took) },
		Progress: func(done, total int64) {
			o.n.log.Info("recovering", zap.Int64("bytes", done), zap.Int64("of", total))
		},
	}, nil
}

var unroutables = map[string]broker.Unroutable{"park": broker.Park, "drop": broker.Drop}

// openMonitor implements primary.
func (o *ownBroker) openMonitor() (watcher, error) {
	s := schedule.Options{
		Primary: o.broker.Deadlines(), PrimaryIsNew: o.broker.NewFolder(), WriteWindow: o.n.settings.ScheduleWindow,
		Meant:  o.meant,
		Record: o.n.incidents.Record, NewTimer: schedule.PreciseTimer, Log: o.n.log, Registerer: o.n.metrics,
	}
	s.WriteWindow = cmp.Or(s.WriteWindow, -1) // what the scheduler calls no window
	if o.n.settings.RedisURL != "" {
		redis.SetLogger(redisLogger{o.n.log.Named("redis")})
		store, err := redisstore.Open(redisstore.Options{
			URL: string(o.n.settings.RedisURL), Instance: o.n.settings.Instance, Now: o.broker.Now,
		})
		if err != nil {
			return nil, fmt.Errorf("CURFEW_REDIS_URL: %w", err)
		}
		s.Redis = store
		o.n.closers = append(o.n.closers, func() error {
			if o.n.failed { // the instance stays registered, so that the others notice
				return nil
			}
			return store.Close()
		})
	}
	s.Stepped = o.broker.Manual != nil
	made, err := schedule.New(s)
	if err != nil {
		return nil, err
	}
	if s.Stepped {
		o.broker.Manual.Fire(made.Step)
	}
	return made, nil
}

// serve implements primary.
func (o *ownBroker) serve(ctx context.Context, listeners []net.Listener) error {
	if o.n.monitor == nil {
		o.n.log.Info("the monitor is off: what came due before the start has expired", zap.Int("messages", o.broker.Deadlines().ExpireOverdue()))
	}
	return o.server.Serve(ctx, listeners...)
}

// queues implements primary: the broker's queues with their forecasts.
func (o *ownBroker) queues(forecasts []deadline.Forecast, fn func(*history.Queue)) history.Stats {
	of := incident.ByQueue(forecasts)
	var one history.Queue
	published, delivered := o.broker.Loads(func(q *broker.Queue, messages, consumers int, c *broker.QueueStats) {
		one = history.Queue{VHost: q.VHost().Name(), Name: q.Name, Depth: messages, Consumers: consumers, Published: c.Entered(), Delivered: c.AllDelivered()}
		if f := of[incident.QueueName{VHost: one.VHost, Name: one.Name}]; f != nil {
			one.AtRisk = f.AtRisk
		}
		if consumers > 0 {
			one.First, one.Last = broker.ClientsOf(&q.Messages)
		} else if d := q.Messages.Departed(); d.Client != "" {
			one.Left, one.LeftAt = d.Client, time.UnixMilli(o.broker.UnixMillis(d.At))
		}
		fn(&one)
	})
	return history.Stats{Published: published, Delivered: delivered}
}

// brokerRoutes are the paths of Curfew's own API that broker/management serves.
func brokerRoutes() (list []rest.Route) {
	for _, one := range (*management.API)(nil).Routes() {
		if strings.HasPrefix(one.Path, curfewPrefix+"/") {
			list = append(list, one)
		}
	}
	return list
}

// nodeName is what a node of RabbitMQ would be called.
func nodeName(c *settings.Settings) string { return "curfew@" + c.Instance }

// pages implements primary.
func (o *ownBroker) pages(ops *opsEndpoints, s *sockets) (*dashboard.Dashboard, *web, error) {
	d := o.n.dashboardOptions()
	d.Users, d.Operations = o.broker.Accounts, o.operations
	d.AMQP, _ = s.amqp[0].Addr().(*net.TCPAddr)
	ui, err := dashboard.New(d)
	if err != nil {
		return nil, nil, err
	}
	c := o.n.settings
	api := management.New(management.Options{
		Broker: o.broker, Server: o.server, Operations: o.operations, Node: nodeName(c), Version: o.n.build.Version,
		DataDir: c.DataDir, DiskFreeLimit: int64(c.DiskFreeLimit), CertificateFile: c.TLSCert, Listeners: s.listeners(), Log: o.n.log,
		Look: func() management.Look {
			v := o.n.incidents.View()
			return management.Look{At: v.At, Hour: v.Hour, Concern: func(vhost, queue string) (string, int) {
				c := v.Queues[incident.QueueName{VHost: vhost, Name: queue}]
				return string(c.Level), c.Place
			}}
		},
	})
	ops.change(func(s *served) { s.metrics = api.Metrics(o.n.metrics) })
	pages := o.n.mount(api.Handler(), api.Guard(o.n.curfewAPI(ops)), ui)
	if bus := o.serviceBus(); bus.On() {
		pages.serviceBus = &atom.Handler{Operations: o.operations, Options: bus}
	}
	return ui, pages, nil
}
