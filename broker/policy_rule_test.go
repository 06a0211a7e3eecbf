package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/store"
)

const (
	endless = `^(?=(a+)+$)(a+)+$` // for longName: more steps than one name may take
	dear    = `(?=a)(a|a)*b`      // for longName: some 80,000
)

func longName(i int) string { return fmt.Sprintf("%s-%d", strings.Repeat("a", 180), i) }

// dearNames is more queues than dear can be matched with.
const dearNames = 40

func maxLength(pattern, to string) policy.Policy {
	return policy.Policy{Name: "p", Pattern: pattern, ApplyTo: to, Definition: policy.Definition{"max-length": int64(5)}}
}

// refusedAsDear checks that an error is one of a pattern that takes too long.
func refusedAsDear(t *testing.T, err error) {
	t.Helper()
	var refused *policy.Invalid
	require.ErrorAs(t, err, &refused)
	require.Contains(t, err.Error(), "pattern of policy 'p' takes too long: more than ")
}

func TestPatternThatTakesTooLongIsRefused(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for i := range dearNames {
		x.queue(longName(i), nil)
		require.NoError(t, x.vh.DeclareExchange(longName(i), broker.ExchangeDeclare{Kind: "fanout"}))
	}
	x.policy(policy.User, maxLength("^a", policy.Queues))
	for _, pattern := range []string{endless, dear} {
		for _, k := range []policy.Kind{policy.User, policy.Operator} {
			_, err := x.vh.SetPolicy(k, maxLength(pattern, policy.Queues))
			refusedAsDear(t, err)
			_, _, err = x.vh.SetPolicyForBacklog(k, maxLength(pattern, policy.Queues))
			refusedAsDear(t, err)
			_, err = x.vh.PreviewPolicy(k, maxLength(pattern, policy.Queues))
			refusedAsDear(t, err)
		}
		_, err := x.vh.SetPolicy(policy.User, policy.Policy{Name: "p", Pattern: pattern, ApplyTo: policy.Exchanges, Definition: policy.Definition{"alternate-exchange": "x"}})
		refusedAsDear(t, err)
		_, err = x.vh.SetParameter("operator_policy", "p", map[string]any{"pattern": pattern, "definition": map[string]any{"max-length": int64(5)}})
		refusedAsDear(t, err)
	}
	require.Equal(t, "^a", x.vh.Policies(policy.User)[0].Pattern, "nothing has changed")
	require.Empty(t, x.vh.Policies(policy.Operator))
	q, err := x.vh.Queue(longName(0))
	require.NoError(t, err)
	user, operator, _ := q.Policies()
	require.Equal(t, "p", user)
	require.Empty(t, operator)
}

// TestNameThatTakesTooLongIsRefused: what is declared after the policy may not take
// longer than the budget either, so that a start never has to find out.
func TestNameThatTakesTooLongIsRefused(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.policy(policy.User, maxLength(endless, policy.All))
	declare := func(name string) error {
		_, err := x.vh.DeclareQueue(nil, name, broker.QueueDeclare{})
		return err
	}
	text := "amqp: 406 PRECONDITION_FAILED - pattern of policy 'p' takes too long: more than 100000 steps of matching for the name '" + longName(0) +
		"'; use a simpler one, without repetition inside repetition"
	require.EqualError(t, declare(longName(0)), text)
	require.EqualError(t, x.vh.DeclareExchange(longName(0), broker.ExchangeDeclare{Kind: "fanout"}), text)
	require.NoError(t, declare("aaa"))
	require.NoError(t, declare("other"))
	require.NoError(t, x.vh.DeclareExchange("aaa", broker.ExchangeDeclare{Kind: "fanout"}))
	_, err := x.vh.Queue(longName(0))
	require.Error(t, err)
	_, err = x.vh.ClearPolicy(policy.User, "p")
	require.NoError(t, err)
	require.NoError(t, declare(longName(0)))
}

func TestBudgetIsGivenBack(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.policy(policy.User, maxLength(dear, policy.Queues))
	fill := func() (made int) {
		for i := range dearNames {
			_, err := x.vh.DeclareQueue(nil, longName(i), broker.QueueDeclare{})
			if err != nil {
				require.ErrorContains(t, err, "PRECONDITION_FAILED - pattern of policy 'p' takes too long: more than 2000000 steps")
				continue
			}
			made++
		}
		return made
	}
	made := fill()
	require.Greater(t, made, dearNames/4)
	require.Less(t, made, dearNames)
	require.Equal(t, made, fill(), "those there are declared again")
	_, err := x.vh.DeleteQueue(nil, longName(0), false, false)
	require.NoError(t, err)
	_, err = x.vh.DeclareQueue(nil, longName(dearNames), broker.QueueDeclare{})
	require.NoError(t, err)
	_, err = x.vh.DeclareQueue(nil, longName(0), broker.QueueDeclare{})
	require.Error(t, err)

	_, err = x.vh.SetPolicy(policy.User, maxLength(dear, policy.ClassicQueues))
	require.NoError(t, err, "what is known takes no more of the budget")
	second := maxLength(dear+"b", policy.Queues)
	second.Name = "second"
	_, err = x.vh.SetPolicy(policy.User, second)
	require.ErrorContains(t, err, "other policies included")
	_, err = x.vh.SetPolicy(policy.Operator, second)
	require.NoError(t, err, "operators have a budget of their own")
	_, err = x.vh.ClearPolicy(policy.User, "p")
	require.NoError(t, err)
	_, err = x.vh.SetPolicy(policy.User, second)
	require.NoError(t, err)
}

// savePolicy writes a policy that no broker would take now into a broker's folder.
func savePolicy(t *testing.T, o store.Options, operator bool, p policy.Policy) {
	t.Helper()
	s, _, err := store.Open(o)
	require.NoError(t, err)
	kind := policy.User
	if operator {
		kind = policy.Operator
	}
	text, err := json.Marshal(map[string]any{"vhost": "/", "operator": operator, "name": p.Name, "pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition})
	require.NoError(t, err)
	s.Define(store.Definition{Key: fmt.Sprintf("policy %q %q %q", "/", kind, p.Name), Value: text})
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())
}

// TestSavedPatternThatTakesTooLong: a start does not wait for it, and it stays to be
// seen and cleared.
func TestSavedPatternThatTakesTooLong(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	for i := range 100 {
		x.durable(longName(i), nil)
	}
	x.durable("q", nil)
	x.govern(policy.Definition{"max-length": int64(7)})
	require.NoError(t, x.b.Close())
	all := maxLength(endless, policy.All)
	all.Name, all.Priority = "endless", 9
	savePolicy(t, o.Store, false, all)
	savePolicy(t, o.Store, true, all)
	all.Name, all.Pattern = "dear", dear
	savePolicy(t, o.Store, false, all)
	all.Name, all.Pattern = "large", strings.Repeat("a", 20_000)
	savePolicy(t, o.Store, false, all)
	good := maxLength("^(?!amq)", policy.All)
	good.Name = "good"
	savePolicy(t, o.Store, true, good)

	core, logged := observer.New(zap.WarnLevel)
	o.Log = zap.New(core)
	for range 2 { // and a start after it
		began := time.Now()
		x = openTestBroker(t, o)
		require.Less(t, time.Since(began), 10*time.Second, "some 0.1 s; 40 s if all were matched for as long as once")
		require.Equal(t, 4, logged.FilterMessageSnippet("a saved policy is not in force").Len())
		logged.TakeAll()
		idle := map[string]string{}
		for _, p := range x.vh.Policies(policy.User) {
			idle[p.Name] = p.NotInForce
		}
		require.Contains(t, idle["endless"], "pattern of policy 'endless' takes too long: more than 100000 steps")
		require.Contains(t, idle["dear"], "pattern of policy 'dear' takes too long: more than 2000000 steps")
		require.Contains(t, idle["large"], "regular expression is too large")
		require.Empty(t, idle["p"])
		q, err := x.vh.Queue("q")
		require.NoError(t, err)
		user, operator, effective := q.Policies()
		require.Equal(t, []string{"p", "good"}, []string{user, operator})
		require.Equal(t, policy.Definition{"max-length": int64(5)}, effective)
		x.durable(longName(1000), nil) // is not matched with what is not in force
		require.NoError(t, x.b.Close())
	}

	x = openTestBroker(t, o)
	p, ok := x.vh.Policy(policy.User, "large")
	require.True(t, ok)
	_, err := x.vh.SetPolicy(policy.User, p)
	require.ErrorContains(t, err, "too large")
	p, _ = x.vh.Policy(policy.User, "dear")
	p.Pattern = "^a"
	_, err = x.vh.SetPolicy(policy.User, policy.Policy{Name: p.Name, Pattern: p.Pattern, Definition: p.Definition})
	require.NoError(t, err)
	p, _ = x.vh.Policy(policy.User, "dear")
	require.Empty(t, p.NotInForce)
	for _, name := range []string{"endless", "large"} {
		_, err = x.vh.ClearPolicy(policy.User, name)
		require.NoError(t, err)
	}
	_, err = x.vh.ClearPolicy(policy.Operator, "endless")
	require.NoError(t, err)
	require.NoError(t, x.b.Close())
	logged.TakeAll()
	x = openTestBroker(t, o)
	require.Zero(t, logged.FilterMessageSnippet("not in force").Len())
	require.NoError(t, x.b.Close())
}

// TestParkingIsNeverRefused: the queue that the broker itself makes is among what a
// pattern has to be matched with when it is set.
func TestParkingIsNeverRefused(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	_, err := x.vh.SetPolicy(policy.User, maxLength(`(?!z)(?:(\w+|[^b]+)+)+\.undeliverabl!`, policy.All))
	refusedAsDear(t, err)
	x.policy(policy.User, maxLength(dear, policy.All))
	for i := range dearNames { // the budget is used up
		_, _ = x.vh.DeclareQueue(nil, longName(i), broker.QueueDeclare{})
	}
	x.queue("q", amqp.Table{"x-dead-letter-exchange": "nowhere", "x-max-length": int64(0)})
	x.publish("", "q", "m", "", nil)
	q, err := x.vh.Queue(broker.UndeliverableQueue)
	require.NoError(t, err)
	require.Equal(t, 1, x.ready(q))
}
