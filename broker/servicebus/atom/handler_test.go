package atom

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/operate"
)

// TestAPageCostsItsEntries: of many queues with many scheduled messages, one is listed as fast as when there are few.
func TestAPageCostsItsEntries(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost(vhostName)
	for i := range 200 {
		_, err := vh.Queues.Declare(nil, "q"+strconv.Itoa(i), broker.QueueDeclare{Durable: true})
		require.NoError(t, err)
	}
	p := vh.NewPublisher("guest")
	late := amqp.Properties{Headers: amqp.Table{"x-delay": int64(3_600_000)}}
	for range 1000 {
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q0"), Properties: late.Append(nil)})
		require.NoError(t, err)
	}
	p.Flush(nil)
	w := httptest.NewRecorder()
	allocations := testing.AllocsPerRun(1, func() {
		c := call{Handler: &Handler{Operations: operate.New(operate.Options{Broker: b})}, w: w, r: httptest.NewRequest(http.MethodGet, "/$resources/queues?$top=1", nil), vh: vh}
		listed(&c, c.queues(), c.queue)
	})
	assert.Contains(t, w.Body.String(), "ScheduledMessageCount>1000<")
	assert.Less(t, allocations, 20_000.0)
}
