package definitions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
)

func TestDiff(t *testing.T) {
	const have = `{"vhosts":[{"name":"/"}],"users":[{"name":"u","tags":"","limits":[]}],"policies":[{"vhost":"/","name":"p","pattern":"a","definition":{"expires":5}}],
		"queues":[{"vhost":"/","name":"q","durable":true,"auto_delete":false,"arguments":{}},{"vhost":"/","name":"old"}],
		"global_parameters":[{"name":"g","value":1}]}`
	require.Empty(t, Diff(parse(t, have), parse(t, `{"vhosts":[{"name":"/","metadata":{"description":"","tags":[]}}],"users":[{"name":"u","tags":[],"limits":{}}],
		"policies":[{"vhost":"/","name":"p","pattern":"a","apply-to":"all","priority":0,"definition":{"expires":5}}],
		"queues":[{"vhost":"/","name":"q","durable":true,"type":"classic","arguments":[]},{"vhost":"/","name":"old"}],
		"exchanges":[{"name":"amq.topic","vhost":"/","type":"topic"}],
		"global_parameters":[{"name":"g","value":1},{"name":"internal_cluster_id","value":"of RabbitMQ"}],
		"parameters":[{"vhost":"/","component":"vhost-limits","name":"limits","value":[]}]}`)), "the same in other words")
	require.Equal(t, []Difference{
		{Added, "binding of queue 'q' to 'amq.topic' in vhost '/' by key 'k' and arguments {}"},
		{Missing, "global parameter 'g'"},
		{Changed, "policy 'p' in vhost '/'"},
		{Missing, "queue 'old' in vhost '/'"},
		{Differs, "queue 'q' in vhost '/'"},
		{Changed, "user 'u'"},
	}, Diff(parse(t, have), parse(t, `{"vhosts":[{"name":"/"}],"users":[{"name":"u","tags":"management"}],
		"policies":[{"vhost":"/","name":"p","pattern":"a","definition":{"expires":6}}],"queues":[{"vhost":"/","name":"q"}],
		"bindings":[{"vhost":"/","source":"amq.topic","destination":"q","destination_type":"queue","routing_key":"k"}]}`)))
}

// TestNoDifferenceAfterImport: an import leaves nothing to add or change.
func TestNoDifferenceAfterImport(t *testing.T) {
	b := newBroker(t, broker.Options{})
	want := parse(t, `{"queues":[{"vhost":"/","name":"q","durable":true}],"global_parameters":[{"name":"internal_cluster_id","value":"x"}],"policies":[{"vhost":"/","name":"p","pattern":"a","definition":{"expires":6}}]}`)
	_, err := Import(t.Context(), b, want, Options{})
	require.NoError(t, err)
	for _, x := range Diff(Export(b, Version{}), want) {
		require.Equal(t, Missing, x.Mark, x.What)
	}
}
