package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/policy"
)

// TestPoliciesAreMatchedWithoutALock: while a change of policies takes long, queues
// and exchanges are declared and deleted as ever, and then all there is is governed as
// if the change had come before or after each of them.
func TestPoliciesAreMatchedWithoutALock(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	long := strings.Repeat("a", 180)
	for i := range 60 {
		_, err := vh.DeclareQueue(nil, fmt.Sprintf("%s-%d", long, i), broker.QueueDeclare{})
		require.NoError(t, err)
	}
	p, err := policy.Check(policy.User, policy.Policy{Name: "p", Pattern: `^q|(?=a)(a|a)*b`, Definition: policy.Definition{"max-length": int64(5)}})
	require.NoError(t, err)
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		// Without a bound: some 5 million steps.
		err := vh.ChangeUnbounded(p, func() { close(began) })
		ended <- err
	}()
	<-began
	declared := 0
	for err = nil; err == nil && len(ended) == 0 && declared < 3000; declared++ {
		name := fmt.Sprintf("q%d", declared)
		_, err = vh.DeclareQueue(nil, name, broker.QueueDeclare{})
		if err == nil && declared%3 == 0 {
			_, err = vh.DeleteQueue(nil, name, false, false)
		}
		if err == nil && declared%100 == 0 {
			err = vh.DeclareExchange(name, broker.ExchangeDeclare{Kind: "fanout"})
		}
	}
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.Greater(t, declared, 20, "declares do not wait for the change")
	spent := 0
	for _, q := range vh.Queues() {
		user, _, _ := q.Policies()
		require.Equal(t, strings.HasPrefix(q.Name(), "q"), user == "p", q.Name())
		spent += q.Steps(policy.User)
	}
	for _, x := range vh.Exchanges() {
		user, _, _, _ := vh.ExchangePolicies(x.Name)
		require.Equal(t, strings.HasPrefix(x.Name, "q"), user == "p", x.Name)
	}
	require.Equal(t, spent, vh.Spent(policy.User))
	require.Positive(t, spent)
}
