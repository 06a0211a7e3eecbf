package broker

import (
	"curfew/broker/amqp"
	"curfew/broker/store"
)

// TraceContext is what a message says of the trace it was published in (W3C: Trace
// Context), as its headers traceparent and tracestate have it: text that nobody checked,
// 512 octets at most. A slice is nil where there is no such header, or a longer one.
type TraceContext struct{ Parent, State []byte }

// maxTraceText is how much of a tracestate has to be passed on; a traceparent has a
// tenth of it.
const maxTraceText = 512

// traceContext looks for it in a raw table; what it returns aliases the table. Of a
// header that comes twice the first that can be taken counts.
func traceContext(headers []byte) (c TraceContext) {
	for f := amqp.WalkTable(headers); f.Next(); {
		switch string(f.Name) {
		case "traceparent":
			if text, ok := f.Text(); ok && c.Parent == nil && len(text) <= maxTraceText {
				c.Parent = text
			}
		case "tracestate":
			if text, ok := f.Text(); ok && c.State == nil && len(text) <= maxTraceText {
				c.State = text
			}
		}
	}
	return c
}

// trace keeps the trace context of a dead letter for its record.
func (s *step) trace(x *crossing, src store.Message) {
	if !s.b.opts.TraceExpired || !x.recorded() {
		return
	}
	view, err := amqp.ViewProperties(src.Properties)
	if err != nil {
		return
	}
	c := traceContext(view.Headers)
	x.about.trace = TraceContext{keep(&s.expiries, c.Parent), keep(&s.expiries, c.State)}
}
