package topology_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/policy"
)

// TestPoliciesAreMatchedWithoutALock: a change of policies gives the lock back after each portion of names.
func TestPoliciesAreMatchedWithoutALock(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{})
	const queues = 1000
	for i := range queues {
		_, err := vh.Queues.Declare(nil, fmt.Sprintf("q%d", i), broker.QueueDeclare{})
		require.NoError(t, err)
	}
	seen, deleted := 0, 0
	vh.EachPortion(func(n int, free bool) {
		require.True(t, free)
		require.LessOrEqual(t, n, 64)
		seen += n
		_, err := vh.Queues.Delete(nil, fmt.Sprintf("q%d", deleted), broker.QueueDeletion{})
		require.NoError(t, err)
		deleted++
		_, err = vh.Queues.Declare(nil, fmt.Sprintf("new%d", seen), broker.QueueDeclare{})
		require.NoError(t, err)
	})
	require.GreaterOrEqual(t, seen, queues-deleted, "nothing that stays is left out")
}

// TestPoliciesAgainstModel: whatever is declared, deleted and changed at the same time, in the end
// everything has the policies that it would have at a start.
func TestPoliciesAgainstModel(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{})
	patterns := []string{"^q", "^q[0-4]", "5$", "^(?!q1)", `^q(?!2)\d+$`, ""}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			for range 1500 {
				name := fmt.Sprintf("q%d", rng.IntN(700))
				_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{})
				assert.NoError(t, err)
				if rng.IntN(3) == 0 {
					_, err = vh.Queues.Delete(nil, name, broker.QueueDeletion{})
					assert.NoError(t, err)
				}
				assert.NoError(t, vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout"}))
			}
		})
	}
	kinds := []policy.Kind{policy.User, policy.Operator}
	rng := rand.New(rand.NewPCG(8, 9))
	for range 300 {
		k, name := kinds[rng.IntN(2)], fmt.Sprint(rng.IntN(6))
		if rng.IntN(3) == 0 {
			_, err := vh.Policies.Clear(k, name)
			require.NoError(t, err)
			continue
		}
		_, err := vh.Policies.Set(k, policy.Policy{Name: name, Pattern: patterns[rng.IntN(len(patterns))], Priority: int64(rng.IntN(4)), Definition: policy.Definition{"max-length": int64(5)}})
		require.NoError(t, err)
	}
	all.Wait()
	name := func(k policy.Kind, c policy.Class, of string) string {
		if p := policy.Set(nil).With(vh.Policies.List(k)...).Governing(c, of); p != nil {
			return p.Name
		}
		return ""
	}
	for _, q := range vh.Queues.List() {
		user, operator, effective := q.Policies()
		assert.Equal(t, name(policy.User, policy.ClassicQueue, q.Name), user, q.Name)
		assert.Equal(t, name(policy.Operator, policy.ClassicQueue, q.Name), operator, q.Name)
		assert.Equal(t, len(effective) > 0, q.Settings().Core.MaxLength == 5, "the settings are those of the policies")
	}
	for _, x := range vh.Exchanges.List() {
		user, operator, _, exists := vh.Exchanges.PoliciesOf(x.Name)
		if !exists {
			require.Empty(t, x.Name, "the default exchange")
			continue
		}
		assert.Equal(t, name(policy.User, policy.Exchange, x.Name), user, x.Name)
		assert.Equal(t, name(policy.Operator, policy.Exchange, x.Name), operator, x.Name)
	}
	require.Greater(t, len(vh.Queues.List()), 300)
	require.Empty(t, vh.Claims())
}
