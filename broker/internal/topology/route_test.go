package topology_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/internal/topology"
	"curfew/integration/testenv"

	"github.com/stretchr/testify/assert"
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
				_, err := vh.Queues.Declare(nil, q, broker.QueueDeclare{})
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
						_, err := vh.Queues.Delete(nil, queueName(), broker.QueueDeletion{})
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
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	require.NoError(t, vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Internal: true}))
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

// node is an exchange of a model: what it leads to, and what it does to a message's time to live.
type node struct {
	kind      string
	ttlMillis int64 // <0: none
	alternate int   // <0: none
	queues    map[int]string
	exchanges map[int]string // with the key of the binding
}

// leadsTo are the ends of the bindings that match, or the alternate exchange.
func (n *node) leadsTo(keys []string) (queues, exchanges []int) {
	matches := func(key string) bool {
		for _, k := range keys {
			if n.kind == "fanout" || k == key {
				return true
			}
		}
		return false
	}
	for q, key := range n.queues {
		if matches(key) {
			queues = append(queues, q)
		}
	}
	for x, key := range n.exchanges {
		if matches(key) {
			exchanges = append(exchanges, x)
		}
	}
	if len(queues)+len(exchanges) == 0 && n.alternate >= 0 {
		exchanges = []int{n.alternate}
	}
	return queues, exchanges
}

// reach are the queues and exchanges that a message gets to from an exchange.
func reach(all []node, from int, keys []string) (queues, exchanges map[int]bool) {
	queues, exchanges = map[int]bool{}, map[int]bool{from: true}
	for ahead := []int{from}; len(ahead) > 0; {
		x := ahead[0]
		ahead = ahead[1:]
		q, more := all[x].leadsTo(keys)
		for _, one := range q {
			queues[one] = true
		}
		for _, one := range more {
			if !exchanges[one] {
				exchanges[one] = true
				ahead = append(ahead, one)
			}
		}
	}
	return queues, exchanges
}

// TestRoutesThroughExchanges: a message gets to each queue that any way leads to, once, with the lowest ceiling of all
// exchanges on all ways: through few exchanges and through many, in circles, by alternate exchanges, by keys in CC.
func TestRoutesThroughExchanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer b.Close()
	for round := range 60 {
		vh, _, err := b.PutVHost("", fmt.Sprint("v", round), broker.VHostMetadata{})
		require.NoError(t, err)
		const queues = 8
		for q := range queues {
			_, err := vh.Queues.Declare(nil, fmt.Sprint("q", q), broker.QueueDeclare{})
			require.NoError(t, err)
		}
		all := make([]node, 1+rng.IntN(60))
		for x := range all {
			all[x] = makeExchange(t, rng, vh, x, len(all))
		}
		for x := range all {
			for range rng.IntN(4) {
				bindTo(t, rng, vh, x, all[x].queues, rng.IntN(queues), false)
				bindTo(t, rng, vh, x, all[x].exchanges, rng.IntN(len(all)), true)
			}
		}
		for range 10 {
			from, keys := rng.IntN(len(all)), []string{"k", "l"}[:1+rng.IntN(2)]
			headers := amqp.Table{}
			if len(keys) > 1 {
				headers["CC"] = []any{keys[1]}
			}
			found, err := topology.Search(vh.VHost, []byte(fmt.Sprint("x", from)), []byte(keys[0]), topology.ByClient, topology.Headers{Table: headers}, len(keys) > 1)
			require.NoError(t, err)
			got := map[string]int64{}
			for _, to := range found {
				require.NotContains(t, got, to.Queue.Name)
				got[to.Queue.Name] = to.CeilingMillis
			}
			require.Equal(t, expected(all, from, keys), got)
		}
	}
}

// expected are the queues of a message with their ceilings.
func expected(all []node, from int, keys []string) map[string]int64 {
	want := map[string]int64{}
	queues, exchanges := reach(all, from, keys)
	for q := range queues {
		want[fmt.Sprint("q", q)] = -1
	}
	for x := range exchanges {
		behind, _ := reach(all, x, keys)
		for q := range behind {
			name := fmt.Sprint("q", q)
			if ttl := all[x].ttlMillis; ttl >= 0 && (want[name] < 0 || ttl < want[name]) {
				want[name] = ttl
			}
		}
	}
	return want
}

func makeExchange(t *testing.T, rng *rand.Rand, vh *broker.VHost, x, n int) node {
	made := node{kind: []string{"fanout", "direct"}[rng.IntN(2)], ttlMillis: -1, alternate: -1, queues: map[int]string{}, exchanges: map[int]string{}}
	args := amqp.Table{}
	if rng.IntN(3) == 0 {
		made.ttlMillis = int64(rng.IntN(1000))
		args["x-message-ttl"] = made.ttlMillis
	}
	if rng.IntN(2) == 0 {
		made.alternate = rng.IntN(n)
		args["alternate-exchange"] = fmt.Sprint("x", made.alternate)
	}
	require.NoError(t, vh.Exchanges.Declare(fmt.Sprint("x", x), broker.ExchangeDeclare{Kind: made.kind, Args: args}))
	return made
}

// bindTo binds an exchange to another or to a queue, unless it is bound already.
func bindTo(t *testing.T, rng *rand.Rand, vh *broker.VHost, x int, bound map[int]string, to int, toExchange bool) {
	if _, already := bound[to]; already {
		return
	}
	bound[to] = []string{"k", "l", "m"}[rng.IntN(3)]
	name := fmt.Sprint("q", to)
	if toExchange {
		name = fmt.Sprint("x", to)
	}
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: fmt.Sprint("x", x), Destination: name, ToExchange: toExchange, RoutingKey: bound[to]}))
}

// TestRouteThroughManyExchanges takes time in proportion to their number.
func TestRouteThroughManyExchanges(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{Ceilings: broker.Ceilings{Exchanges: 100_000}})
	_, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	declare := func(name string) {
		require.NoError(t, vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout"}))
	}
	bind := func(from, to string) {
		require.NoError(t, vh.Bind(nil, broker.Binding{Source: from, Destination: to, ToExchange: to != "q"}))
	}
	const n, more, slack = 1000, 24, 6
	for _, size := range []int{n, more * n} {
		star, circle := fmt.Sprint("star", size), fmt.Sprint("circle", size)
		declare(star)
		for i := range size {
			declare(fmt.Sprint(star, i))
			bind(star, fmt.Sprint(star, i))
			bind(fmt.Sprint(star, i), star)
			declare(fmt.Sprint(circle, i))
		}
		for i := range size {
			bind(fmt.Sprint(circle, i), fmt.Sprint(circle, (i+1)%size))
		}
		bind(fmt.Sprint(star, size-1), "q")
		bind(fmt.Sprint(circle, size-1), "q")
	}
	for _, shape := range []string{"star%d", "circle%d0"} {
		search := func(n int) func() {
			return func() {
				found, err := topology.Search(vh.VHost, []byte(fmt.Sprintf(shape, n)), nil, topology.ByClient, topology.Headers{}, false)
				require.NoError(t, err)
				require.Len(t, found, 1)
			}
		}
		testenv.InProportion(t, slack*more, shape, search(n), search(more*n))
	}
}

// TestChangesDuringALongRoute: while the queues of a message are looked for that take long to find, others change the
// topology, again and again, and what stays as it is is found.
func TestChangesDuringALongRoute(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{})
	for _, name := range []string{"q", "other"} {
		_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{})
		require.NoError(t, err)
	}
	bind := func(queue, key string) {
		require.NoError(t, vh.Bind(nil, broker.Binding{Source: "amq.topic", Destination: queue, RoutingKey: key}))
	}
	for i := range 1 << 13 { // each of these patterns is tried at each word of the key
		words := []string{"#"}
		for bit := range 13 {
			words = append(words, []string{"a", "*"}[i>>bit&1])
		}
		bind("q", strings.Join(append(words, "end"), "."))
	}
	key := []byte(strings.Repeat("a.", 120) + "end")
	found := make(chan []topology.Target)
	go func() {
		targets, err := topology.Search(vh.VHost, []byte("amq.topic"), key, topology.ByClient, topology.Headers{}, false)
		assert.NoError(t, err)
		found <- targets
	}()
	for changes := 0; ; changes++ {
		select {
		case targets := <-found:
			require.Len(t, targets, 1)
			assert.Equal(t, "q", targets[0].Queue.Name)
			assert.Greater(t, changes, 500)
			return
		default:
			bind("other", fmt.Sprint("x.", changes%10_000))
		}
	}
}
