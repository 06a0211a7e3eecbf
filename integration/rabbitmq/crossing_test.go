package rabbitmq

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/integration/crossing"
	"curfew/monitor/rabbitmq/cluster"
)

// TestCrossingRecorded: what was recorded of RabbitMQ 4.3.6 is what it does; 3.10 does not speak AMQP 1.0, and 4.0 takes the same messages, but has those without a header
// durable and other addresses in reply-to. CROSSING_RECORD=1 records it again:
//
//	CROSSING_RECORD=1 TEST_RABBITMQ=.cache/rabbitmq4/forky go test -run TestCrossingRecorded ./integration/rabbitmq
func TestCrossingRecorded(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	seen, err := crossing.Record(t.Context(), n.url)
	if family() == cluster.Family3 {
		require.Error(t, err, "it does not speak AMQP 1.0")
		return
	}
	require.NoError(t, err)
	if os.Getenv("CROSSING_RECORD") != "" {
		require.NoError(t, os.WriteFile("../crossing/rabbitmq.txt", []byte(seen), 0o644))
		return
	}
	want, have := strings.Split(crossing.RabbitMQ, "\n"), strings.Split(seen, "\n")
	if family() != cluster.Family43 {
		require.Len(t, have, len(want))
		return
	}
	require.Equal(t, want, have)
}
