package message

import (
	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

// maxTraceText is how much of a tracestate has to be passed on; a traceparent has a
// tenth of it.
const maxTraceText = 512

// TraceOf looks for a trace context in a raw table of headers. What it returns aliases the
// table. If a header comes twice, the first one that can be taken counts.
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
