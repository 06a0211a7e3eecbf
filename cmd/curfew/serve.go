package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

// stopLimit is how long a graceful stop may take.
const stopLimit = 10 * time.Second

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the broker and its deadline monitor until SIGTERM or SIGINT (the default); SIGHUP reads the alert rules anew",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig()
			if err != nil {
				return err
			}
			log, err := newLogger(c.LogLevel, c.LogFormat)
			if err != nil {
				return err
			}
			defer log.Sync()               //nolint:errcheck // stderr may be no file
			signal.Ignore(syscall.SIGPIPE) // clients are served also when nobody reads the log any more
			defer onAbort(log)()
			return untilSignal(cmd.Context(), log, func(ctx context.Context) error {
				return serve(ctx, &c, cmd.OutOrStdout(), log)
			})
		},
	}
}

// untilSignal runs fn until it ends by itself or, its context having ended with the first SIGTERM or
// SIGINT, for at most stopLimit more. A second signal ends the process at once.
func untilSignal(ctx context.Context, log *zap.Logger, fn func(context.Context) error) error {
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer restore()
	ended := make(chan error, 1)
	go func() { ended <- fn(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	restore()
	log.Info("stopping")
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case err := <-ended:
		if err == nil {
			log.Info("stopped")
		}
		return err
	case <-limit.C:
		return fmt.Errorf("stopping took longer than %s", stopLimit)
	}
}

// serve runs everything until ctx ends or a part fails, and returns when all has ended.
func serve(ctx context.Context, c *config, stdout io.Writer, log *zap.Logger) (err error) {
	registry := newRegistry()
	o := newOps(registry)
	opsListener, err := listen(ctx, "CURFEW_OPS_ADDR", c.OpsAddr)
	if err != nil {
		return err
	}
	stopOps := o.start(ctx, opsListener, log)
	defer stopOps()

	// Garbage is not to keep publishers waiting: it is collected before memory runs out, not when it has doubled.
	if limit := c.MemoryLimit.bytes(); limit > 0 {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	}
	n, err := openNode(c, registry, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	defer onHangup(n.alerts.Reload)()
	o.watch("store", n.storeVitals)
	o.watch("clock", func() vitals { return clockVitals(n.broker.ClockOffset()) })

	if c.TTL == "off" {
		log.Warn("no message expires: CURFEW_TTL=off. Times to live are checked and kept, and not in force")
		o.watch("ttl", func() vitals { return vitals{Detail: "off: no message expires (CURFEW_TTL=off)"} })
	}
	o.watch("connections", n.connectionVitals)
	if n.monitor != nil {
		since := time.Now()
		o.watch("alerts", n.alertVitals)
		o.watch("monitor", func() vitals { return monitorVitals(n.monitor.Health(), since, time.Now()) })
	}
	shown, err := newDashboard(c, n, log)
	if err != nil {
		return err
	}
	s, err := openSockets(ctx, c, opsListener, log)
	if err != nil {
		return err
	}
	api := newManagement(c, n, s.shown(), log)
	o.showMetrics(api.Metrics(registry))
	pages := n.pages(api, shown, o, registry)
	o.watch("HTTP", pages.crowd.vitals)
	o.watch("ops", o.crowd.vitals)
	registry.MustRegister(pages.crowd, o.crowd)
	defer s.serveWeb(ctx, pages, log)()
	defer shown.Close() // before the servers, which would wait for its streams
	printBanner(stdout, c, n.broker.Recovered(), s.amqp, s.web.Addr(), s.ops.Addr())
	o.enter(ready)
	defer context.AfterFunc(ctx, func() { o.enter(stopping) })()
	defer tellSystemd(ctx, o.alive, log)()
	return n.run(ctx, s.amqp...)
}

func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "curfew_build_info",
		Help: "1, with what this binary was built from as labels.",
	}, []string{"version", "revision", "goversion"})
	build.WithLabelValues(versionText(), revision(), runtime.Version()).Set(1)
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
