package management_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/management"
	"curfew/broker/operate"
	"curfew/broker/policy"
	"curfew/broker/store"
)

func TestRetroactivePolicyOverHTTP(t *testing.T) {
	x := start(t)
	vh, _ := x.b.VHost("/")
	_, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	p := vh.NewPublisher("guest")
	_, err = p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: new(amqp.Properties).Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)

	body := map[string]any{"pattern": "q", "definition": map[string]any{"message-ttl": 60000}}
	x.ask("PUT", "/api/curfew/policies/%2F/p?dry_run=true", body).is(200, `{"queues":1,"earlier":1,"expired":0,"names":["q"],"dead_letter_queues":[]}`)
	require.Empty(t, vh.Policies.List(policy.User))
	x.ask("PUT", "/api/curfew/policies/%2F/p", body).is(200, `{"queues":1,"earlier":1,"expired":0,"names":["q"],"dead_letter_queues":[]}`)
	require.Len(t, vh.Policies.List(policy.User), 1)
	x.ask("PUT", "/api/curfew/operator-policies/%2F/o", body).is(200, `{"queues":1,"earlier":0,"expired":0,"names":["q"],"dead_letter_queues":[]}`)
	require.Len(t, vh.Policies.List(policy.Operator), 1)
	x.ask("PUT", "/api/curfew/operator-policies/%2F/o", map[string]any{"pattern": "q"}).is(400, `{"error":"bad_request","reason":"[{key_missing,definition}]"}`)
	x.ask("PUT", "/api/curfew/policies/nope/p", body).is(404, "")
}

// TestServiceBusSettingsOverHTTP: the policy's dry run takes them and changes nothing, and
// once set they are shown with the queue and the exchange.
func TestServiceBusSettingsOverHTTP(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", `{"durable":true}`).is(201, "")
	x.ask("PUT", "/api/exchanges/%2F/qx", `{"type":"fanout","durable":true}`).is(201, "")
	definition := map[string]any{"lock-duration": 60000, "dead-letter-queue": true, "auto-delete-on-idle": 300000, "max-delivery-count": 10}
	x.ask("PUT", "/api/curfew/policies/%2F/p?dry_run=true", map[string]any{"pattern": "^q", "definition": definition}).is(200, `{"queues":0,"earlier":0,"expired":0,"names":[],"dead_letter_queues":[]}`)
	x.ask("GET", "/api/queues/%2F/q?columns=effective_policy_definition,delivery_limit", nil).is(200, `{"delivery_limit":"unlimited","effective_policy_definition":{}}`)
	x.ask("PUT", "/api/policies/%2F/p", map[string]any{"pattern": "^q", "definition": definition}).is(201, "")
	const shown = `{"auto-delete-on-idle":300000,"dead-letter-queue":true,"lock-duration":60000,"max-delivery-count":10}`
	x.ask("GET", "/api/queues/%2F/q?columns=effective_policy_definition,delivery_limit", nil).is(200, `{"delivery_limit":9,"effective_policy_definition":`+shown+`}`)
	x.ask("GET", "/api/queues/%2F/q%2F$deadletterqueue?columns=durable,delivery_limit", nil).is(200, `{"delivery_limit":"unlimited","durable":true}`)
	x.ask("PUT", "/api/policies/%2F/x", map[string]any{"pattern": "^qx", "apply-to": "exchanges", "priority": 1, "definition": map[string]any{"message-ttl": 5000}}).is(201, "")
	x.ask("GET", "/api/exchanges/%2F/qx?columns=effective_policy_definition,policy", nil).is(200, `{"effective_policy_definition":{"message-ttl":5000},"policy":"x"}`)
	refused := func(definition map[string]any, to, why string) {
		t.Helper()
		for _, path := range []string{"/api/policies/%2F/p", "/api/curfew/policies/%2F/p?dry_run=true"} {
			x.ask("PUT", path, map[string]any{"pattern": "^q", "apply-to": to, "definition": definition}).
				is(400, `{"error":"bad_request","reason":"Validation failed\n\n`+why+`\n"}`)
		}
	}
	refused(map[string]any{"auto-delete-on-idle": 299999}, "all", "299999 is not a valid idle period: the minimum is 300000")
	refused(map[string]any{"max-delivery-count": 0}, "queues", "0 is not a valid maximum delivery count")
	refused(map[string]any{"lock-duration": 5}, "exchanges", "lock-duration is not a setting of exchanges")
	x.ask("DELETE", "/api/policies/%2F/p", nil).is(204, "")
	x.ask("GET", "/api/queues/%2F/q?columns=effective_policy_definition,delivery_limit", nil).is(200, `{"delivery_limit":"unlimited","effective_policy_definition":{}}`)
	x.ask("GET", "/api/queues/%2F/q%2F$deadletterqueue", nil).is(200, "")
}

// TestImportedPolicyMakesDeadLetterQueues, of the queues of the same document and of those
// that were there.
func TestImportedPolicyMakesDeadLetterQueues(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q1", `{"durable":true}`).is(201, "")
	x.ask("POST", "/api/definitions", `{"queues":[{"name":"q2","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
		"policies":[{"vhost":"/","name":"p","pattern":"^q","apply-to":"queues","priority":0,"definition":{"dead-letter-queue":true}}]}`).is(204, "")
	for _, name := range []string{"q1", "q2"} {
		x.ask("GET", "/api/queues/%2F/"+name+"%2F$deadletterqueue?columns=durable", nil).is(200, `{"durable":true}`)
	}
	require.NotContains(t, x.ask("GET", "/api/definitions", nil).body, "$deadletterqueue", "its queue makes it")
}

// lookBehind is a pattern that is refused.
const lookBehind = `(?<!x)$`

// TestRefusedPattern: whichever way it comes, it is refused with the reason, and nothing has changed.
func TestRefusedPattern(t *testing.T) {
	x := start(t)
	before := x.ask("GET", "/api/definitions", nil).body
	body := map[string]any{"pattern": lookBehind, "definition": map[string]any{"max-length": 1}}
	refused := func(r reply) {
		t.Helper()
		r.is(400, "")
		require.Contains(t, r.body, "look-behind is not supported: for names that do not end with x, write ^(?!.*x$)")
		require.Equal(t, before, x.ask("GET", "/api/definitions", nil).body)
	}
	for _, path := range []string{"/api/policies/%2F/p", "/api/operator-policies/%2F/p", "/api/curfew/policies/%2F/p", "/api/curfew/policies/%2F/p?dry_run=true", "/api/curfew/operator-policies/%2F/p"} {
		refused(x.ask("PUT", path, body))
	}
	refused(x.ask("PUT", "/api/parameters/operator_policy/%2F/p", map[string]any{"value": body}))
	refused(x.ask("PUT", "/api/permissions/%2F/guest", map[string]any{"configure": lookBehind, "write": ".*", "read": ".*"}))
	refused(x.ask("PUT", "/api/topic-permissions/%2F/guest", map[string]any{"exchange": "amq.topic", "write": ".*", "read": lookBehind}))

	users := `"users":[{"name":"new","password":"x","tags":""}],"queues":[{"name":"first","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}]`
	one := fmt.Sprintf(`{"vhost":"/","name":"p","pattern":%q,"apply-to":"all","priority":0,"definition":{"max-length":1}}`, lookBehind)
	refused(x.ask("POST", "/api/definitions", `{`+users+`,"policies":[`+one+`]}`))
	refused(x.ask("POST", "/api/definitions", fmt.Sprintf(`{%s,"parameters":[{"vhost":"/","component":"operator_policy","name":"p","value":{"pattern":%q,"definition":{"max-length":1}}}]}`, users, lookBehind)))
	refused(x.ask("POST", "/api/definitions/%2F", `{"policies":[`+one+`],"queues":[{"name":"first","durable":true,"auto_delete":false,"arguments":{}}]}`))
}

func TestAnswerNamesAPolicyNotInForce(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	b, err := broker.New(o)
	require.NoError(t, err)
	vh, _ := b.VHost("/")
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	s, _, err := store.Open(o.Store)
	require.NoError(t, err)
	s.Define(store.Definition{Key: `policy "/" "policy" "p"`, Value: fmt.Appendf(nil, `{"vhost":"/","name":"p","pattern":%q,"apply-to":"all","priority":0,"definition":{"max-length":1}}`, lookBehind)})
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())

	b, err = broker.New(o)
	require.NoError(t, err)
	defer b.Close()
	ops := operate.New(operate.Options{Broker: b})
	api := management.New(management.Options{Broker: b, Operations: ops, Node: "curfew@test", Version: "test", Look: noLook})
	x := &site{t: t, b: b, http: httptest.NewServer(api.Handler())}
	defer x.http.Close()
	reason := "pattern should be regular expression but is invalid: look-behind is not supported: for names that do not end with x, write ^(?!.*x$)"
	one := map[string]any{"vhost": "/", "name": "p", "pattern": lookBehind, "apply-to": "all", "priority": 0., "definition": map[string]any{"max-length": 1.}, "not_in_force": reason}
	require.Equal(t, one, x.ask("GET", "/api/policies/%2F/p", nil).json())
	require.Equal(t, []any{one}, x.ask("GET", "/api/policies", nil).json())
	require.NotContains(t, x.ask("GET", "/api/definitions", nil).body, "not_in_force")
	require.NotContains(t, x.ask("GET", "/api/queues/%2F/"+"q", nil).body, `"policy":"p"`)

	x.ask("POST", "/api/definitions", `{"queues":[{"name":"first","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}]}`).is(204, "")
	x.ask("DELETE", "/api/policies/%2F/p", nil).is(204, "")
	require.Equal(t, []any{}, x.ask("GET", "/api/policies", nil).json())
}
