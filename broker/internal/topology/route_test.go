package topology_test

import (
	"curfew/broker"
	"curfew/broker/internal/topology"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoutesAreRemembered: whatever a publisher remembers of more keys than it may keep, while bindings and queues come
// and go or stay as they are, it finds what one finds that remembers nothing.
func TestRoutesAreRemembered(t *testing.T) {
	for name, everyChange := range map[string]int{"changing": 300, "as it is": 0} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			b, err := broker.New(broker.Options{})
			require.NoError(t, err)
			defer b.Close()
			vh, _ := b.VHost("/")
			queueName := func() string { return fmt.Sprint("q", rng.IntN(30)) }
			key := func() string { return fmt.Sprint("k", rng.IntN(4*topology.RoutesKept)) }
			bind := func() {
				q := queueName()
				_, err := vh.DeclareQueue(nil, q, broker.QueueDeclare{})
				require.NoError(t, err)
				require.NoError(t, vh.Bind(nil, broker.Binding{Source: "amq.direct", Destination: q, RoutingKey: key()}))
			}
			for range 4 * topology.RoutesKept {
				bind()
			}
			var rs topology.Routes
			restarts, most := 0, 0
			for i := range 32 * topology.RoutesKept {
				if everyChange > 0 && rng.IntN(everyChange) == 0 {
					if rng.IntN(2) == 0 {
						_, err := vh.DeleteQueue(nil, queueName(), false, false)
						require.NoError(t, err)
					}
					bind()
				}
				exchange, k := "amq.direct", key()
				if rng.IntN(4) == 0 {
					exchange, k = "", queueName()
				}
				kept := rs.Known()
				got, err := rs.Find(vh.VHost, []byte(exchange), []byte(k), topology.ByClient, topology.Headers{}, false)
				require.NoError(t, err)
				want, err := topology.Search(vh.VHost, []byte(exchange), []byte(k), topology.ByClient, topology.Headers{}, false)
				require.NoError(t, err)
				require.Equal(t, len(want), len(got), "message %d", i)
				for j := range want {
					require.Equal(t, want[j].CeilingMillis, got[j].CeilingMillis)
					require.Same(t, want[j].Queue, got[j].Queue, "message %d", i)
				}
				if most = max(most, rs.Known()); rs.Known() < kept {
					restarts++
				}
			}
			require.LessOrEqual(t, most, topology.RoutesKept)
			if everyChange == 0 {
				require.Equal(t, topology.RoutesKept, most)
				require.Positive(t, restarts, "a full table begins again")
			}
		})
	}
}

// TestRoutesThroughInternalExchanges are not those of who may not go there.
func TestRoutesThroughInternalExchanges(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	_, err = vh.DeclareQueue(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	require.NoError(t, vh.DeclareExchange("x", broker.ExchangeDeclare{Kind: "fanout", Internal: true}))
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "x", Destination: "q"}))
	var rs topology.Routes
	for range 3 {
		found, err := rs.Find(vh.VHost, []byte("x"), nil, topology.ByBroker, topology.Headers{}, false)
		require.NoError(t, err)
		require.Len(t, found, 1)
		_, err = rs.Find(vh.VHost, []byte("x"), nil, topology.ByClient, topology.Headers{}, false)
		require.EqualValues(t, 403, codeOf(err))
	}
}
