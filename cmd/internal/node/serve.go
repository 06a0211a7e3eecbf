package node

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"curfew/cmd/internal/dashboard"
)

// Serve runs a node with its metrics, health, management API and dashboard until ctx ends or a part fails. It
// returns when all parts have stopped. o.Metrics may be nil.
func Serve(ctx context.Context, o Options, stdout io.Writer) (err error) {
	o.Metrics = cmp.Or(o.Metrics, prometheus.NewRegistry())
	describeProcess(o.Metrics, o.Build)
	c, registry, log := o.Settings, o.Metrics, o.Log
	ops := newOpsEndpoints(registry)
	opsListener, err := listen(ctx, "CURFEW_OPS_ADDR", c.OpsAddr)
	if err != nil {
		return err
	}
	defer background(ctx, ops.server(), opsListener, func(err error) {
		log.Error("metrics and health are no longer served", zap.Error(err))
	})()

	// Collect garbage before memory runs out, not when the heap has doubled: publishers must not wait for it.
	if limit := c.MemoryLimit.Bytes(); limit > 0 {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	}
	n, err := Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	defer onHangup(n.incidents.Reload)()
	ttlOff := c.PrimaryURL == "" && c.TTL == "off"
	if ttlOff {
		log.Warn("no message expires: CURFEW_TTL=off. Times to live are checked and stored, but have no effect")
	}
	n.looker.limits = append(n.looker.limits, ops.connections)
	s, err := n.openSockets(ctx, opsListener)
	if err != nil {
		return err
	}
	ui, pages, err := n.primary.pages(ops, &s)
	if err != nil {
		s.close()
		return err
	}
	n.looker.limits = append(n.looker.limits, pages.connections)
	n.ready()
	ops.change(func(s *served) { s.judge, s.ttlOff = n.judge, ttlOff })
	registry.MustRegister(pages.connections, ops.connections)
	defer n.runAudit(ctx)() // until nobody can change anything any more
	defer s.serveWeb(ctx, pages, log)()
	defer ui.Close() // before the servers, which would wait for its streams
	n.printBanner(stdout, &s)
	ops.enter(ready)
	defer context.AfterFunc(ctx, func() { ops.enter(stopping) })()
	alive := func() bool { return ops.health().Status != "dead" } // a restart would not help
	defer notifySystemd(ctx, alive, log)()
	return n.Run(ctx, s.amqp...)
}

// dashboardOptions are those that do not depend on the primary.
func (n *Node) dashboardOptions() dashboard.Options {
	o := dashboard.Options{
		Changes: n.changes, Incidents: n.incidents, Audit: n.audit, History: n.history,
		Instance: n.settings.Instance, Version: n.build.Version, Log: n.log,
	}
	if n.monitor != nil {
		o.Monitor = n.monitor
	}
	return o
}

// mount joins what handles the paths of RabbitMQ's API, of the node's own routes, and all others.
func (n *Node) mount(api, own http.Handler, ui *dashboard.Dashboard) *web {
	pages := newWeb()
	pages.parts["/api"] = api
	for _, part := range apiParts(n) {
		pages.parts[part] = own
	}
	if hasRabbitMQ(n) {
		pages.parts[scheduledPath] = own
	}
	pages.parts["/"] = ui.Handler()
	return pages
}

// describeProcess adds what the process is and uses.
func describeProcess(r *prometheus.Registry, b Build) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "curfew_build_info",
		Help: "1, with what this binary was built from as labels.",
	}, []string{"version", "revision", "goversion"})
	info.WithLabelValues(b.Version, b.Revision, runtime.Version()).Set(1)
	r.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}
