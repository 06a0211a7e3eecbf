package management_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
)

func TestDelayedOverHTTP(t *testing.T) {
	x := start(t)
	vh, _ := x.b.VHost("/")
	p := vh.NewPublisher("guest")
	properties := amqp.Properties{Headers: amqp.Table{"x-delay": int32(3_600_000)}}
	for range 2 {
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil), Body: []byte("body")})
		require.NoError(t, err)
	}
	p.Flush(nil)
	list, _ := vh.Delayed(0, 2)
	require.Len(t, list, 2)

	x.ask("GET", "/api/curfew/delayed/%2F?count=1", nil).is(200, "")
	body := x.ask("GET", "/api/curfew/delayed/%2F?count=1", nil).body
	assert.Contains(t, body, `"routing_key":"q"`)
	assert.Contains(t, body, `"payload_bytes":4`)
	assert.Contains(t, body, `"next":"2"`)
	id := body[strings.Index(body, `"id":"`)+6:]
	id = id[:strings.Index(id, `"`)]
	x.ask("DELETE", "/api/curfew/delayed/%2F/"+id, nil).is(204, "")
	x.ask("DELETE", "/api/curfew/delayed/%2F/"+id, nil).is(404, "")
	x.ask("DELETE", "/api/curfew/delayed/%2F/nonsense", nil).is(404, "")
	list, _ = vh.Delayed(0, 2)
	assert.Len(t, list, 1)
	assert.Contains(t, x.ask("GET", "/api/exchanges/%2F/amq.default", nil).body, `"messages_delayed":1`)
}
