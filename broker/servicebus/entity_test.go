package servicebus_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/servicebus"
)

const (
	queuesConfig = `{"UserConfig": {"Namespaces": [{"Queues": [{"Name": "q"}], "Topics": [{"Name": "t", "Subscriptions": [{"Name": "all"}, {"Name": "some", "Rules": [RULES]}]}]}]}}`
	trueRule     = `{"Name": "every", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}}}`
	redRule      = `{"Name": "colour", "Properties": {"FilterType": "Correlation", "CorrelationFilter": {"Label": "red"}}}`
	blueRule     = `{"Name": "colour", "Properties": {"FilterType": "Correlation", "CorrelationFilter": {"Label": "blue"}}}`
)

// declare makes the entities of queuesConfig with those rules, and returns what has changed and the errors.
func declare(t *testing.T, vh *broker.VHost, rules string) (changed, why []string) {
	t.Helper()
	c, err := servicebus.ParseConfig([]byte(strings.Replace(queuesConfig, "RULES", rules, 1)))
	require.NoError(t, err)
	changed, problems := c.Declare(vh)
	for _, err := range problems {
		why = append(why, err.Error())
	}
	return changed, why
}

// fine is declare without changes and errors.
func fine(t *testing.T, vh *broker.VHost, rules string) {
	t.Helper()
	changed, why := declare(t, vh, rules)
	require.Empty(t, changed)
	require.Empty(t, why)
}

func newVHost(t *testing.T) *broker.VHost {
	t.Helper()
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	vh, _ := b.VHost("/")
	return vh
}

// filters are the rules of a subscription, with what each compares.
func filters(vh *broker.VHost, subscription string) map[string]any {
	all := map[string]any{}
	for _, b := range vh.BindingsWhere(func(b *broker.Binding) bool {
		return b.Source == "t" && b.Destination == "t/Subscriptions/"+subscription
	}) {
		all[b.RoutingKey] = b.Args["x-sys-Label"]
	}
	return all
}

// TestDeclareAgain: what exists gets the settings of the configuration, and keeps rules of which the configuration says nothing, also
// if it has none. Of a subscription with rules in the configuration there are those.
func TestDeclareAgain(t *testing.T) {
	vh := newVHost(t)
	fine(t, vh, trueRule)
	assert.Equal(t, map[string]any{"": nil}, filters(vh, "all"))
	assert.Equal(t, map[string]any{"every": nil}, filters(vh, "some"))
	ttl := amqp.Table{"x-message-ttl": int64(7), servicebus.UpdatedArg: int64(1)}
	require.NoError(t, vh.Exchanges.Change("t", ttl))
	for _, name := range []string{"q", "t/Subscriptions/all"} {
		require.NoError(t, vh.Queues.Change(nil, name, ttl))
	}
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "t", Destination: "t/Subscriptions/all", RoutingKey: "mine", Args: servicebus.NoMatch()}))
	require.NoError(t, vh.Unbind(nil, broker.Binding{Source: "t", Destination: "t/Subscriptions/all"}))
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "t", Destination: "t/Subscriptions/some", Args: amqp.Table{"x-match": "all", "no": "rule"}}))

	changed, why := declare(t, vh, trueRule)
	assert.Equal(t, []string{"queue q", "topic t", "subscription t/Subscriptions/all"}, changed)
	assert.Empty(t, why)
	q, err := vh.Queues.Get("q")
	require.NoError(t, err)
	assert.NotContains(t, q.Declared().Args, "x-message-ttl")
	for rules, label := range map[string]string{redRule: "red", blueRule: "blue"} {
		fine(t, vh, rules)
		assert.Equal(t, map[string]any{"": nil, "colour": label}, filters(vh, "some"))
		assert.Equal(t, map[string]any{"mine": nil}, filters(vh, "all"))
	}
	require.NoError(t, vh.Unbind(nil, broker.Binding{Source: "t", Destination: "t/Subscriptions/all", RoutingKey: "mine", Args: servicebus.NoMatch()}))
	_, why = declare(t, vh, redRule)
	assert.Equal(t, []string{"subscription t/Subscriptions/all: it has no rules, and gets no messages by them: add a rule, or delete it, and it is made with the true filter at the next start"}, why)
	assert.Empty(t, filters(vh, "all"))
	require.NoError(t, vh.Exchanges.Delete("t", false))
	fine(t, vh, redRule)
	assert.Equal(t, map[string]any{"": nil}, filters(vh, "all"), "its topic is new")
}

// TestDeclareWhatIsNoEntity: queues and exchanges that were not made as entities stay as they are, and are named with what to do.
func TestDeclareWhatIsNoEntity(t *testing.T) {
	vh := newVHost(t)
	hint := "; delete it, and it is made as the configuration says at the next start"
	for want, d := range map[string]broker.QueueDeclare{
		"PRECONDITION_FAILED - inequivalent arg 'durable'":                               {},
		"PRECONDITION_FAILED - inequivalent arg 'auto_delete'":                           {Durable: true, AutoDelete: true},
		"PRECONDITION_FAILED - the argument 'x-dead-letter-queue' of queue 'q' in vhost": {Durable: true},
	} {
		_, err := vh.Queues.Declare(nil, "q", d)
		require.NoError(t, err)
		changed, why := declare(t, vh, redRule)
		assert.Empty(t, changed)
		require.Len(t, why, 1)
		assert.Contains(t, why[0], "queue q: it exists, and stays as it is: amqp: 406 "+want)
		assert.Contains(t, why[0], hint)
		q, err := vh.Queues.Get("q")
		require.NoError(t, err)
		assert.Empty(t, q.Declared().Args)
		_, err = vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
		require.NoError(t, err)
	}
	for want, d := range map[string]broker.ExchangeDeclare{
		"PRECONDITION_FAILED - inequivalent arg 'internal'":                                {Kind: "headers", Durable: true, Internal: true},
		"PRECONDITION_FAILED - inequivalent arg 'auto_delete'":                             {Kind: "headers", Durable: true, AutoDelete: true},
		"PRECONDITION_FAILED - the argument 'alternate-exchange' of exchange 't' in vhost": {Kind: "headers", Durable: true, Args: amqp.Table{"alternate-exchange": "other"}},
	} {
		require.NoError(t, vh.Exchanges.Delete("t", false))
		require.NoError(t, vh.Exchanges.Declare("t", d))
		_, why := declare(t, vh, redRule)
		require.Len(t, why, 1)
		assert.Contains(t, why[0], "topic t: it exists, and stays as it is: amqp: 406 "+want)
		assert.Contains(t, why[0], hint)
	}
}

// TestTopicOfAnEarlierVersion: its subscriptions get every message, and one that wants others is named.
func TestTopicOfAnEarlierVersion(t *testing.T) {
	vh := newVHost(t)
	require.NoError(t, vh.Exchanges.Declare("t", broker.ExchangeDeclare{Kind: "fanout", Durable: true}))
	_, why := declare(t, vh, redRule)
	assert.Equal(t, []string{"subscription t/Subscriptions/some: rule colour: the topic is an exchange of the type fanout, where only the true filter is possible; delete the topic and make it again"}, why)
	assert.Equal(t, map[string]any{"": nil}, filters(vh, "all"))
	assert.False(t, vh.Queues.Has("t/Subscriptions/some"))
	fine(t, vh, trueRule)
	assert.Equal(t, map[string]any{"every": nil}, filters(vh, "some"))
}
