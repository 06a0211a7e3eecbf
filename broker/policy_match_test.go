package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// lookBehind is a pattern that an earlier version accepted.
const lookBehind = `^(?!amq).*(?<!\.dead)$`

func maxLength(pattern, to string) policy.Policy {
	return policy.Policy{Name: "p", Pattern: pattern, ApplyTo: to, Definition: policy.Definition{"max-length": int64(5)}}
}

// TestRefusedPattern: it is refused wherever a policy can be set, with what to write instead, and nothing changes.
func TestRefusedPattern(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("orders", nil)
	x.policy(policy.User, maxLength("^orders", policy.Queues))
	refused := func(err error) {
		t.Helper()
		require.EqualError(t, err, "Validation failed\n\npattern should be regular expression but is invalid: look-behind is not supported: for names that do not end with x, write ^(?!.*x$)\n")
	}
	for _, k := range []policy.Kind{policy.User, policy.Operator} {
		_, err := x.vh.Policies.Set(k, maxLength(lookBehind, policy.Queues))
		refused(err)
		_, _, err = x.vh.Policies.SetForBacklog(k, maxLength(lookBehind, policy.Queues))
		refused(err)
		_, err = x.vh.Policies.Preview(k, maxLength(lookBehind, policy.Queues))
		refused(err)
	}
	_, err := x.vh.SetParameter("operator_policy", "p", map[string]any{"pattern": lookBehind, "definition": map[string]any{"max-length": int64(5)}})
	refused(err)
	require.Equal(t, "^orders", x.vh.Policies.List(policy.User)[0].Pattern)
	require.Empty(t, x.vh.Policies.List(policy.Operator))
}

// TestPolicyLimit: more policies than a virtual host may have are refused. What is there can be replaced.
func TestPolicyLimit(t *testing.T) {
	x := newTestBroker(t, broker.Options{Ceilings: broker.Ceilings{Policies: 2}})
	set := func(k policy.Kind, name string) error {
		_, err := x.vh.Policies.Set(k, policy.Policy{Name: name, Pattern: name, Definition: policy.Definition{"max-length": int64(5)}})
		return err
	}
	for _, k := range []policy.Kind{policy.User, policy.Operator} {
		require.NoError(t, set(k, "a"))
		require.NoError(t, set(k, "b"))
		require.EqualError(t, set(k, "c"), "Validation failed\n\npolicy limit in vhost '/' (2) is reached\n")
		require.NoError(t, set(k, "b"))
		_, err := x.vh.Policies.Clear(k, "a")
		require.NoError(t, err)
		require.NoError(t, set(k, "c"))
	}
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

// TestSavedPatternThatIsRefused: a policy that an earlier version accepted is kept and shown with the
// reason, and applies to nothing, until it is corrected or cleared.
func TestSavedPatternThatIsRefused(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	x.govern(policy.Definition{"max-length": int64(7)})
	require.NoError(t, x.b.Close())
	old := maxLength(lookBehind, policy.All)
	old.Name, old.Priority = "behind", 9
	savePolicy(t, o.Store, false, old)
	savePolicy(t, o.Store, true, old)
	old.Name, old.Pattern = "reference", `^(\w+)-\1$`
	savePolicy(t, o.Store, false, old)
	old.Name, old.Pattern = "large", strings.Repeat("a", 20_000)
	savePolicy(t, o.Store, false, old)
	good := maxLength("^(?!amq)", policy.All)
	good.Name = "good"
	savePolicy(t, o.Store, true, good)

	core, logged := observer.New(zap.WarnLevel)
	o.Log = zap.New(core)
	for range 2 { // and a start after it
		x = openTestBroker(t, o)
		warnings := logged.FilterMessageSnippet("a saved policy is not in force")
		require.Equal(t, 4, warnings.Len())
		require.Contains(t, warnings.FilterField(zap.String("policy", "behind")).All()[0].ContextMap()["reason"], "write ^(?!.*x$)")
		logged.TakeAll()
		idle := map[string]string{}
		for _, p := range x.vh.Policies.List(policy.User) {
			idle[p.Name] = p.NotInForce
		}
		require.Contains(t, idle["behind"], "look-behind is not supported")
		require.Contains(t, idle["reference"], "back references are not supported")
		require.Contains(t, idle["large"], "regular expression is too large")
		require.Empty(t, idle["p"])
		require.Equal(t, 4, x.vh.Policies.NotInForce())
		x.durable("q2", nil)                                             // is not matched with what is not in force
		require.NoError(t, x.b.Change("", func(b *broker.Broker) error { // nor is what is imported
			vh, _ := b.VHost("/")
			require.Equal(t, 4, vh.Policies.NotInForce())
			_, err := vh.Queues.Declare(nil, "q3", broker.QueueDeclare{Durable: true})
			return err
		}))
		for _, name := range []string{"q", "q2", "q3"} {
			q, err := x.vh.Queues.Get(name)
			require.NoError(t, err)
			user, operator, effective := q.Policies()
			require.Equal(t, []string{"p", "good"}, []string{user, operator}, name)
			require.Equal(t, policy.Definition{"max-length": int64(5)}, effective)
		}
		require.NoError(t, x.b.Close())
	}

	x = openTestBroker(t, o)
	p, ok := x.vh.Policies.Get(policy.User, "large")
	require.True(t, ok)
	_, err := x.vh.Policies.Set(policy.User, p)
	require.ErrorContains(t, err, "too large")
	p, _ = x.vh.Policies.Get(policy.User, "behind")
	p.Pattern = `^(?!amq)(?!.*\.dead$)`
	_, err = x.vh.Policies.Set(policy.User, p)
	require.NoError(t, err)
	p, _ = x.vh.Policies.Get(policy.User, "behind")
	require.Empty(t, p.NotInForce)
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	user, _, _ := q.Policies()
	require.Equal(t, "behind", user)
	for _, name := range []string{"reference", "large"} {
		_, err = x.vh.Policies.Clear(policy.User, name)
		require.NoError(t, err)
	}
	_, err = x.vh.Policies.Clear(policy.Operator, "behind")
	require.NoError(t, err)
	require.NoError(t, x.b.Close())
	logged.TakeAll()
	x = openTestBroker(t, o)
	require.Zero(t, logged.FilterMessageSnippet("not in force").Len())
	require.NoError(t, x.b.Close())
}

// TestSavedPermissionThatIsRefused: an expression that an earlier version accepted grants nothing. The others of the user do as before.
func TestSavedPermissionThatIsRefused(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	require.NoError(t, x.b.Accounts.PutUser(access.User{Name: "u", PasswordHash: access.Hash("u")}))
	require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "u", VHost: "/", Configure: "^a", Write: ".*", Read: ".*"}))
	require.NoError(t, x.b.Accounts.SetTopicPermission(access.TopicPermission{User: "u", VHost: "/", Exchange: "amq.topic", Write: "^a", Read: "^a"}))
	require.NoError(t, x.b.Close())
	s, found, err := store.Open(o.Store)
	require.NoError(t, err)
	for _, d := range found.Definitions {
		if strings.Contains(d.Key, "permission") || strings.Contains(d.Key, "topic") {
			d.Value = []byte(strings.ReplaceAll(string(d.Value), `"^a"`, `"^(?=a)(?\u003c!b)"`))
			s.Define(d)
		}
	}
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())

	core, logged := observer.New(zap.WarnLevel)
	o.Log = zap.New(core)
	x = openTestBroker(t, o)
	defer x.b.Close()
	warnings := logged.FilterMessageSnippet("saved permissions are not valid")
	require.Equal(t, 1, warnings.Len())
	require.Contains(t, fmt.Sprint(warnings.All()[0].ContextMap()["error"]), "configure permission: look-behind is not supported")
	session, err := x.b.OpenSession("u", "/", nil)
	require.NoError(t, err)
	assert.ErrorContains(t, session.Rights().Queue(access.Configure, "abc"), "refused")
	assert.NoError(t, session.Rights().Queue(access.Write, "abc"))
	assert.NoError(t, session.Rights().Queue(access.Read, "abc"))
	assert.Error(t, session.Rights().Topic(access.Write, x.vh, []byte("amq.topic"), []byte("abc")))
	require.Contains(t, fmt.Sprint(x.b.Accounts.Permissions()), "(?<!b)", "it is kept")
}
