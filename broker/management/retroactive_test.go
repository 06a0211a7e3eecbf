package management_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
)

func TestRetroactivePolicyOverHTTP(t *testing.T) {
	x := start(t)
	vh, _ := x.b.VHost("/")
	_, err := vh.DeclareQueue(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	p := vh.NewPublisher("guest")
	_, err = p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: new(amqp.Properties).Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)

	body := map[string]any{"pattern": "q", "definition": map[string]any{"message-ttl": 60000}}
	x.ask("PUT", "/api/curfew/policies/%2F/p?dry_run=true", body).is(200, `{"queues":1,"earlier":1,"expired":0}`)
	require.Empty(t, vh.Policies(policy.User))
	x.ask("PUT", "/api/curfew/policies/%2F/p", body).is(200, `{"queues":1,"earlier":1,"expired":0}`)
	require.Len(t, vh.Policies(policy.User), 1)
	x.ask("PUT", "/api/curfew/operator-policies/%2F/o", body).is(200, `{"queues":1,"earlier":0,"expired":0}`)
	require.Len(t, vh.Policies(policy.Operator), 1)
	x.ask("PUT", "/api/curfew/operator-policies/%2F/o", map[string]any{"pattern": "q"}).is(400, `{"error":"bad_request","reason":"[{key_missing,definition}]"}`)
	x.ask("PUT", "/api/curfew/policies/nope/p", body).is(404, "")
}
