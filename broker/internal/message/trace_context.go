package message

import (
	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

// maxTraceText is the length up to which a tracestate has to be passed on; a traceparent is
// about a tenth of that.
const maxTraceText = 512

// TraceOf finds the trace context in a raw table of headers. The result aliases the table. If a
// header occurs twice, the first valid one counts.
func TraceOf(headers []byte) (c deadline.Trace) {
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
