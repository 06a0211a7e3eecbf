package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/monitor/embedded"
	"curfew/monitor/telemetry"
)

// openTelemetry makes what sends metrics and spans to OpenTelemetry, if it is to.
func (n *node) openTelemetry(c *config, metrics *prometheus.Registry, log *zap.Logger) (err error) {
	if c.telemetry == nil {
		return nil
	}
	o := *c.telemetry
	o.Version, o.Gatherer, o.Registerer, o.Log = versionText(), metrics, metrics, log
	n.telemetry, err = telemetry.New(o)
	return err
}

// runTelemetry sends until stop is called, which waits for what is left to be sent.
func (n *node) runTelemetry(ctx context.Context) (stop func()) {
	if n.telemetry == nil {
		return func() {}
	}
	return beside(ctx, n.telemetry.Run)
}

// onExpired is what the broker tells of expired messages; nil: nobody.
func (n *node) onExpired() func([]broker.Expiry) {
	record, trace := embedded.Audit(n.audit), embedded.Spans(n.telemetry)
	switch {
	case trace == nil:
		return record
	case record == nil:
		return trace
	}
	return func(expired []broker.Expiry) {
		record(expired)
		trace(expired)
	}
}
