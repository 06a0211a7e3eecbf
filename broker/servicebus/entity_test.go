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

// declare makes the entities of queuesConfig with those rules, and returns the errors.
func declare(t *testing.T, vh *broker.VHost, rules string) (why []string) {
	t.Helper()
	c, err := servicebus.ParseConfig([]byte(strings.Replace(queuesConfig, "RULES", rules, 1)))
	require.NoError(t, err)
	for _, err := range c.Declare(vh) {
		why = append(why, err.Error())
	}
	return why
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

// TestDeclareAgain: what exists stays as it was made and changed, and so do rules of which the configuration says nothing. Of a
// subscription with rules in the configuration there are those.
func TestDeclareAgain(t *testing.T) {
	vh := newVHost(t)
	require.Empty(t, declare(t, vh, trueRule))
	assert.Equal(t, map[string]any{"": nil}, filters(vh, "all"))
	assert.Equal(t, map[string]any{"every": nil}, filters(vh, "some"))
	ttl := amqp.Table{"x-message-ttl": int64(7)}
	require.NoError(t, vh.Exchanges.Change("t", ttl))
	for _, name := range []string{"q", "t/Subscriptions/all"} {
		require.NoError(t, vh.Queues.Change(nil, name, ttl))
	}
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "t", Destination: "t/Subscriptions/all", RoutingKey: "mine", Args: servicebus.NoMatch()}))
	require.NoError(t, vh.Unbind(nil, broker.Binding{Source: "t", Destination: "t/Subscriptions/all"}))
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "t", Destination: "t/Subscriptions/some", Args: amqp.Table{"x-match": "all", "no": "rule"}}))

	for rules, label := range map[string]string{redRule: "red", blueRule: "blue"} {
		require.Empty(t, declare(t, vh, rules))
		assert.Equal(t, map[string]any{"": nil, "colour": label}, filters(vh, "some"))
		assert.Equal(t, map[string]any{"mine": nil}, filters(vh, "all"))
	}
	q, err := vh.Queues.Get("q")
	require.NoError(t, err)
	assert.Equal(t, int64(7), q.Settings().TTLMillis)
	require.NoError(t, vh.Unbind(nil, broker.Binding{Source: "t", Destination: "t/Subscriptions/all", RoutingKey: "mine", Args: servicebus.NoMatch()}))
	require.Empty(t, declare(t, vh, redRule))
	assert.Equal(t, map[string]any{"": nil}, filters(vh, "all"), "or it would get nothing")

	_, err = vh.Queues.Delete(nil, "q", false, false)
	require.NoError(t, err)
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	why := declare(t, vh, redRule)
	require.Len(t, why, 1)
	assert.Contains(t, why[0], "PRECONDITION_FAILED - inequivalent arg 'durable'")
}

// TestTopicOfAnEarlierVersion: its subscriptions get every message, and one that wants others is named.
func TestTopicOfAnEarlierVersion(t *testing.T) {
	vh := newVHost(t)
	require.NoError(t, vh.Exchanges.Declare("t", broker.ExchangeDeclare{Kind: "fanout", Durable: true}))
	assert.Equal(t, []string{"subscription t/Subscriptions/some: rule colour: the topic is an exchange of the type fanout, where only the true filter is possible; delete the topic and make it again"},
		declare(t, vh, redRule))
	assert.Equal(t, map[string]any{"": nil}, filters(vh, "all"))
	assert.False(t, vh.Queues.Has("t/Subscriptions/some"))
	assert.Empty(t, declare(t, vh, trueRule))
	assert.Equal(t, map[string]any{"every": nil}, filters(vh, "some"))
}
