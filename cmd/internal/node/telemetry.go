package node

import (
	"context"

	"curfew/broker/deadline"
	"curfew/monitor/telemetry"
)

// openTelemetry makes the exporter of metrics and spans to OpenTelemetry, if one is configured.
func (n *Node) openTelemetry() (err error) {
	configured := n.settings.Telemetry
	if configured == nil {
		return nil
	}
	o := *configured
	o.Version, o.Gatherer, o.Registerer, o.Log = n.build.Version, n.metrics, n.metrics, n.log
	n.telemetry, err = telemetry.New(o)
	return err
}

// runTelemetry sends until stop is called. stop waits until the rest is sent.
func (n *Node) runTelemetry(ctx context.Context) (stop func()) {
	if n.telemetry == nil {
		return func() {}
	}
	return runInBackground(ctx, n.telemetry.Run)
}

// expiries is the stream on which the broker reports what expired, with the subscribers that must not miss an expiry.
func (n *Node) expiries() *deadline.Stream {
	s := &n.expired
	s.Subscribe(deadline.Basic, n.history.Expired)
	if n.audit != nil {
		s.Subscribe(deadline.WithMessage, n.audit.Expired)
		if n.settings.Audit == "all" {
			s.SubscribeDeaths(n.audit.Died)
		}
	}
	if n.telemetry != nil && n.telemetry.Traces() {
		s.Subscribe(deadline.WithTrace, n.telemetry.Expired)
	}
	return s
}
