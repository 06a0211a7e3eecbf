package broker_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

// expiredWith publishes messages with headers to a queue each, dead-lettered or not, lets them expire and returns what is told of them.
func expiredWith(t *testing.T, needs deadline.Details, args amqp.Table, headers ...amqp.Table) (traces []string) {
	synctest.Test(t, func(t *testing.T) {
		var o broker.Options
		o.Expiries = new(deadline.Stream)
		o.Expiries.Subscribe(needs, func(batch []deadline.Expiry) {
			for _, e := range batch {
				traces = append(traces, string(e.MessageID)+" "+string(e.Trace.Parent)+" "+string(e.Trace.State))
			}
		})
		x := newTestBroker(t, o)
		x.queue("q", args)
		x.queue("dlq", nil)
		for i, h := range headers {
			p := amqp.Properties{Expiration: "1000", MessageID: string(rune('a' + i)), Headers: h}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
			require.NoError(t, err)
		}
		x.p.Flush(nil)
		refs := x.deadlines()
		time.Sleep(time.Second)
		x.expire(refs)
	})
	slices.Sort(traces)
	return traces
}

func TestExpiryHasTheTraceContextOfItsMessage(t *testing.T) {
	for name, args := range map[string]amqp.Table{"dropped": nil, "dead-lettered": deadLettersToDLQ} {
		t.Run(name, func(t *testing.T) {
			headers := []amqp.Table{
				{"traceparent": "00-parent", "tracestate": "a=b", "other": int32(1)},
				{"traceparent": []byte("00-bytes"), "tracestate": []byte("c=d")},
				{"tracestate": "lonely"},
				{"traceparent": int64(7), "tracestate": amqp.Table{"a": "b"}},
				nil,
				{"traceparent": "00-copied", "x-own": true, "CC": []any{"nowhere"}}, // a dead letter that is not made the short way
				{"traceparent": strings.Repeat("0", 513), "tracestate": strings.Repeat("s", 513)},
			}
			assert.Equal(t, []string{"a 00-parent a=b", "b 00-bytes c=d", "c  lonely", "d  ", "e  ", "f 00-copied ", "g  "},
				expiredWith(t, deadline.WithTrace, args, headers...))
			assert.Equal(t, []string{"a  ", "b  ", "c  ", "d  ", "e  ", "f  ", "g  "}, expiredWith(t, deadline.WithMessage, args, headers...), "nobody asked")
		})
	}
}
