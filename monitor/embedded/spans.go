package embedded

import (
	"time"

	"curfew/broker"
	"curfew/monitor/telemetry"
)

// Spans is what has x make spans of a broker's expiries (broker.Options.OnExpired, with
// TraceExpired). It is nil if x is nil or sends no spans.
func Spans(x *telemetry.Exporter) func([]broker.Expiry) {
	if x == nil || !x.Traces() {
		return nil
	}
	return func(expired []broker.Expiry) {
		for i := range expired {
			e := &expired[i]
			deadline, at := e.Wall()
			x.Expired(&telemetry.Expiry{
				Deadline: time.UnixMicro(deadline), Left: time.UnixMicro(at), VHost: e.VHost, Queue: e.Queue, MessageID: e.MessageID,
				Path: path(e.Path).String(), Outcome: action(e.Action).String(), Exchange: e.Exchange, RoutingKey: e.RoutingKey, To: e.To,
				TraceParent: e.Trace.Parent, TraceState: e.Trace.State,
			})
		}
	}
}
