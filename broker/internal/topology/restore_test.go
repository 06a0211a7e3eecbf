package topology_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// TestWhatIsImportedIsCounted: an import takes of the memory for what is declared what
// declaring takes, is refused as a whole if that is too much, and gives it back.
func TestWhatIsImportedIsCounted(t *testing.T) {
	b, vh := declaringBroker(t, broker.Options{MemoryLimit: 1 << 20, MemoryInUse: func() int64 { return 0 }})
	args := amqp.Table{"x-nothing": strings.Repeat("n", 2<<10)}
	declare := func(from, to int) func(*broker.Broker) error {
		return func(b *broker.Broker) error {
			vh, _ := b.VHost("/")
			for i := from; i < to; i++ {
				name := fmt.Sprintf("%02d", i)
				if _, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{Args: args}); err != nil {
					return err
				}
				if err := vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout", Args: args}); err != nil {
					return err
				}
				if err := vh.Bind(nil, broker.Binding{Source: name, Destination: name, Args: args}); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, vhost := range []string{"", "/"} {
		require.ErrorContains(t, b.Change(vhost, declare(0, 100)), "no memory to declare")
		require.Zero(t, vh.Registry().Memory.Used())
		require.NoError(t, b.Change(vhost, declare(0, 20)))
		used := vh.Registry().Memory.Used()
		require.NoError(t, b.Change(vhost, declare(0, 20)), "it is there")
		require.Equal(t, used, vh.Registry().Memory.Used())
		require.NoError(t, declare(20, 40)(b))
		require.Equal(t, 2*used, vh.Registry().Memory.Used())
		require.ErrorContains(t, b.Change(vhost, declare(40, 80)), "no memory to declare", "beside what there is")
		for i := range 40 {
			_, err := vh.Queues.Delete(nil, fmt.Sprintf("%02d", i), broker.QueueDeletion{})
			require.NoError(t, err)
			require.NoError(t, vh.Exchanges.Delete(fmt.Sprintf("%02d", i), false))
		}
		require.Zero(t, vh.Registry().Memory.Used())
	}
}

// checkRuled checks that the policy "p" governs the queues that it is to.
func checkRuled(t *testing.T, vh *broker.VHost, governs func(name string) bool) {
	t.Helper()
	for _, q := range vh.Queues.List() {
		user, _, _ := q.Policies()
		assert.Equal(t, governs(q.Name), user == "p", q.Name)
	}
}

// TestImportedPoliciesGovern: what was there and what comes with them.
func TestImportedPoliciesGovern(t *testing.T) {
	b, vh := declaringBroker(t, broker.Options{})
	declare := func(vh *broker.VHost, names ...string) {
		for _, name := range names {
			_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{})
			require.NoError(t, err)
		}
	}
	declare(vh, "aq1", "q1", "other1")
	p := policy.Policy{Name: "p", Pattern: `^(?!a).*q`, Definition: policy.Definition{"max-length": int64(5)}}
	require.NoError(t, b.Change("", func(b *broker.Broker) error {
		vh, _ := b.VHost("/")
		declare(vh, "aq2", "q2")
		_, err := vh.Policies.Set(policy.User, p)
		declare(vh, "q3", "other2")
		return err
	}))
	governs := func(name string) bool { return strings.HasPrefix(name, "q") }
	checkRuled(t, vh, governs)
	require.NoError(t, b.Change("/", func(b *broker.Broker) error { // under the policies there are
		vh, _ := b.VHost("/")
		declare(vh, "aq3", "q4")
		return nil
	}))
	checkRuled(t, vh, governs)
}

// TestDeclaredWhilePoliciesChange: whichever of them is saved first, all are governed by
// what is in force in the end, now and after a start.
func TestDeclaredWhilePoliciesChange(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	b, err := broker.New(o)
	require.NoError(t, err)
	vh := vhost(b)
	p := policy.Policy{Name: "p", Pattern: `^q`, Definition: policy.Definition{"max-length": int64(5)}}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for j := range 40 {
				_, err := vh.Queues.Declare(nil, fmt.Sprintf("q%d-%d", i, j), broker.QueueDeclare{Durable: true})
				assert.NoError(t, err)
				assert.NoError(t, vh.Exchanges.Declare(fmt.Sprintf("q%d", j), broker.ExchangeDeclare{Kind: "fanout", Durable: j%2 == 0}))
			}
		})
	}
	for range 30 {
		_, err := vh.Policies.Set(policy.User, p)
		assert.NoError(t, err)
		_, err = vh.Policies.Clear(policy.User, "p")
		assert.NoError(t, err)
	}
	_, err = vh.Policies.Set(policy.User, p)
	require.NoError(t, err)
	all.Wait()
	for range 2 {
		checkRuled(t, vh, func(string) bool { return true })
		for j := range 40 {
			user, _, _, ok := vh.Exchanges.PoliciesOf(fmt.Sprintf("q%d", j))
			assert.Equal(t, ok, user == "p")
		}
		require.Len(t, vh.Queues.List(), 120)
		require.Empty(t, vh.Claims())
		require.NoError(t, b.Close())
		b, err = broker.New(o)
		require.NoError(t, err)
		vh = vhost(b)
	}
	require.NoError(t, b.Close())
}
