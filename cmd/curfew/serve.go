package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
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
		Short: "Run the broker and its deadline monitor until SIGTERM or SIGINT (the default)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig()
			if err != nil {
				return err
			}
			log, err := newLogger(c.LogLevel, c.LogFormat)
			if err != nil {
				return err
			}
			defer log.Sync() //nolint:errcheck // stderr may be no file
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

	n, err := openNode(c, registry, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	o.watch("store", n.storeVitals)
	if n.monitor != nil {
		since := time.Now()
		o.watch("alerts", n.alertVitals)
		o.watch("monitor", func() vitals { return monitorVitals(n.monitor.Health(), since, time.Now()) })
	}
	shown, err := newDashboard(c, n, log)
	if err != nil {
		return err
	}
	listeners, err := amqpListeners(ctx, c, log)
	if err != nil {
		return err
	}
	httpListener, err := listen(ctx, "CURFEW_HTTP_ADDR", c.HTTPAddr)
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return err
	}
	secureListener, err := httpsListener(ctx, c, log)
	if err != nil {
		for _, l := range append(listeners, httpListener) {
			l.Close()
		}
		return err
	}
	api := newManagement(c, n, socketsOf(listeners, httpListener, secureListener, opsListener), log)
	o.showMetrics(api.Metrics(registry))
	pages := newWeb()
	pages.mount("/api", api.Handler())
	for _, part := range curfewParts {
		pages.mount(part, n.curfewAPI(api))
	}
	pages.mount("/", shown.Handler())
	pagesEnded := func(err error) { log.Error("the management API is not served any more", zap.Error(err)) }
	defer background(ctx, pages.server(), httpListener, pagesEnded)()
	if secureListener != nil {
		defer background(ctx, pages.server(), secureListener, pagesEnded)()
	}
	defer shown.Close() // before the servers, which would wait for its streams
	printBanner(stdout, c, n.broker.Recovered(), listeners, httpListener.Addr(), opsListener.Addr())
	o.enter(ready)
	defer context.AfterFunc(ctx, func() { o.enter(stopping) })()
	defer tellSystemd(ctx, o.alive, log)()
	return n.run(ctx, listeners...)
}

// listen explains what an operator can do about a busy port.
func listen(ctx context.Context, variable string, addr address) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", string(addr))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %s is in use by another process; stop that one or set %s to another address", variable, addr, variable)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	return l, nil
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
