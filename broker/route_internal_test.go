package broker

import (
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
			b, err := New(Options{})
			require.NoError(t, err)
			defer b.Close()
			vh, _ := b.VHost("/")
			queueName := func() string { return fmt.Sprint("q", rng.IntN(30)) }
			key := func() string { return fmt.Sprint("k", rng.IntN(4*routesKept)) }
			bind := func() {
				q := queueName()
				_, err := vh.DeclareQueue(nil, q, QueueDeclare{})
				require.NoError(t, err)
				require.NoError(t, vh.Bind(nil, Binding{Source: "amq.direct", Destination: q, RoutingKey: key()}))
			}
			for range 4 * routesKept {
				bind()
			}
			var rs routes
			restarts, most := 0, 0
			for i := range 32 * routesKept {
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
				kept := len(rs.known)
				got, err := rs.find(vh, []byte(exchange), []byte(k), byClient, messageHeaders{}, false)
				require.NoError(t, err)
				want, err := (&routes{vh: vh}).search([]byte(exchange), []byte(k), byClient, messageHeaders{}, false)
				require.NoError(t, err)
				require.Equal(t, len(want), len(got), "message %d", i)
				for j := range want {
					require.Equal(t, want[j].ceilingMillis, got[j].ceilingMillis)
					require.Same(t, want[j].queue, got[j].queue, "message %d", i)
				}
				if most = max(most, len(rs.known)); len(rs.known) < kept {
					restarts++
				}
			}
			require.LessOrEqual(t, most, routesKept)
			if everyChange == 0 {
				require.Equal(t, routesKept, most)
				require.Positive(t, restarts, "a full table begins anew")
			}
		})
	}
}

// TestRoutesThroughInternalExchanges are not those of who may not go there.
func TestRoutesThroughInternalExchanges(t *testing.T) {
	b, err := New(Options{})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	_, err = vh.DeclareQueue(nil, "q", QueueDeclare{})
	require.NoError(t, err)
	require.NoError(t, vh.DeclareExchange("x", ExchangeDeclare{Kind: "fanout", Internal: true}))
	require.NoError(t, vh.Bind(nil, Binding{Source: "x", Destination: "q"}))
	var rs routes
	for range 3 {
		found, err := rs.find(vh, []byte("x"), nil, byBroker, messageHeaders{}, false)
		require.NoError(t, err)
		require.Len(t, found, 1)
		_, err = rs.find(vh, []byte("x"), nil, byClient, messageHeaders{}, false)
		require.EqualValues(t, 403, code(err))
	}
}
