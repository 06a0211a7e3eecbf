package embedded

import (
	"sync"
	"time"

	"curfew/broker"
	"curfew/monitor/telemetry"
)

// Spans is what has x send spans of a broker's expiries (broker.Options.OnExpired, with
// TraceExpired); nil if x is or sends none.
func Spans(x *telemetry.Exporter) func([]broker.Expiry) {
	if x == nil || !x.Traces() {
		return nil
	}
	scratch := sync.Pool{New: func() any { return new([]telemetry.Expiry) }}
	return func(expired []broker.Expiry) {
		chosen := scratch.Get().(*[]telemetry.Expiry)
		defer scratch.Put(chosen)
		*chosen = (*chosen)[:0]
		for i := range expired {
			if e := &expired[i]; x.Samples(e.Trace.Parent) {
				*chosen = append(*chosen, traced(e))
			}
		}
		x.Add(*chosen)
		clear(*chosen)
	}
}

func traced(e *broker.Expiry) telemetry.Expiry {
	deadline, at := e.Wall()
	return telemetry.Expiry{
		Deadline: time.UnixMicro(deadline), Left: time.UnixMicro(at), VHost: e.VHost, Queue: e.Queue, MessageID: e.MessageID,
		Path: path(e.Path).String(), Outcome: action(e.Action).String(), Exchange: e.Exchange, RoutingKey: e.RoutingKey, To: e.To,
		TraceParent: e.Trace.Parent, TraceState: e.Trace.State,
	}
}
