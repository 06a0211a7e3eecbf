package management_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/management"
	"curfew/broker/operate"
)

func TestDeclaring(t *testing.T) {
	x := start(t)
	const q = "/api/queues/%2F/q"
	x.ask("PUT", q, `{"durable":"true","arguments":{"x-message-ttl":60000}}`).is(201, "")
	x.ask("PUT", q, `{"durable":true,"arguments":{"x-message-ttl":60000}}`).is(204, "")
	x.ask("PUT", q, `{"durable":false}`).is(400, errorOf("bad_request", "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"))
	x.ask("PUT", "/api/queues/%2F/bad", `{"arguments":{"x-message-ttl":-1}}`).is(400, errorOf("bad_request", "invalid arg 'x-message-ttl' for queue 'bad' in vhost '/': {value_negative,-1}"))
	x.ask("PUT", q, `garbage`).is(400, errorOf("bad_request", "not_json"))
	x.ask("PUT", q, `[]`).is(400, errorOf("bad_request", "not_json"))
	x.ask("PUT", q, `{"durable":"x"}`).is(400, `{"error":"bad_request","reason":["not_boolean","x"]}`)
	x.ask("PUT", q, `{"arguments":{"x":null}}`).is(400, errorOf("bad_request", "null_not_allowed"))
	x.ask("PUT", "/api/queues/none/q", `{}`).is(404, errorOf("not_found", "vhost_not_found"))
	x.ask("PUT", "/api/queues/%2F/amq.q", `{}`).is(401, errorOf("not_authorised", "Access refused."))
	x.ask("GET", "/api/queues/%2F/none", nil).is(404, errorOf("Object Not Found", "Not Found"))
	x.ask("GET", "/api/queues/none", nil).is(404, errorOf("Object Not Found", "Not Found"))

	x.ask("PUT", "/api/queues/%2F/%ff", `{}`).is(400, errorOf("bad_request", `the name of a queue, "\xff", is not UTF-8`))
	x.ask("PUT", "/api/exchanges/%2F/%ff", `{"type":"topic"}`).is(400, errorOf("bad_request", `the name of an exchange, "\xff", is not UTF-8`))
	x.ask("PUT", "/api/vhosts/%ff", `{}`).is(400, errorOf("bad_request", "invalid: the name of a virtual host has 1 to 255 octets of UTF-8"))
	x.ask("PUT", "/api/users/%ff", `{"password":"p","tags":""}`).is(400, errorOf("bad_request", `invalid: the name of a user, "\xff", is not UTF-8`))

	x.ask("PUT", "/api/exchanges/%2F/x", `{"type":"topic"}`).is(201, "")
	x.ask("PUT", "/api/exchanges/%2F/x", `{"type":"fanout"}`).is(400, errorOf("bad_request", "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'topic'"))
	x.ask("DELETE", "/api/exchanges/%2F/amq.direct", nil).is(401, "")
	x.ask("DELETE", "/api/exchanges/%2F/none", nil).is(404, "")

	bound := x.ask("POST", "/api/bindings/%2F/e/x/q/q", `{"routing_key":"a b~c"}`).is(201, "")
	assert.Equal(t, "q/a%2Bb%257Ec", bound.header.Get("Location"), "Terraform takes its last part for the binding's identity")
	x.ask("GET", "/api/bindings/%2F/e/x/q/q/a%2Bb%257Ec", nil).is(200,
		`{"source":"x","vhost":"/","destination":"q","destination_type":"queue","routing_key":"a b~c","arguments":{},"properties_key":"a+b%7Ec"}`)
	for key, as := range map[string][]string{
		"a.#": {"a.%23", "a.%2523"}, "a.*": {"a.*", "a.%2A", "a.%252A"}, "a b": {"a%20b", "a+b"}, "50%": {"50%25", "50%2525"}, "a+b": {"a%252Bb"}, "c~d": {"c%257Ed"},
	} {
		for _, one := range as {
			for _, end := range []string{"q/q", "e/amq.topic"} {
				x.ask("POST", "/api/bindings/%2F/e/x/"+end, map[string]any{"routing_key": key}).is(201, "")
				assert.Equal(t, key, x.ask("GET", "/api/bindings/%2F/e/x/"+end+"/"+one, nil).is(200, "").object()["routing_key"])
				x.ask("DELETE", "/api/bindings/%2F/e/x/"+end+"/"+one, nil).is(204, "")
			}
		}
	}
	x.ask("POST", "/api/bindings/%2F/e/x/q/q", `{}`).is(201, "")
	x.ask("POST", "/api/bindings/%2F/e/x/q/q", `{"routing_key":"k","arguments":{"a":1}}`).is(201, "")
	assert.Len(t, x.ask("GET", "/api/bindings/%2F/e/x/q/q", nil).list(), 3)
	assert.Len(t, x.ask("GET", "/api/queues/%2F/q/bindings", nil).list(), 4, "and the default exchange's")
	x.ask("DELETE", "/api/exchanges/%2F/x?if-unused=true", nil).is(400, errorOf("bad_request", "exchange 'x' in vhost '/' in use"))
	x.ask("DELETE", "/api/bindings/%2F/e/x/q/q/~", nil).is(204, "")
	x.ask("DELETE", "/api/bindings/%2F/e/x/q/q/~", nil).is(404, "")
	x.ask("POST", "/api/bindings/%2F/e/x/q/none", `{}`).is(404, errorOf("not_found", "no queue 'none' in vhost '/'"))

	x.ask("POST", "/api/exchanges/%2F/amq.default/publish", publishing("q", "m")).is(200, `{"routed":true}`)
	x.ask("PUT", "/api/queues/%2F/other", `{}`).is(201, "")
	x.ask("DELETE", "/api/queues/%2F/other?if-unused=no", nil).is(204, "") // RabbitMQ: any word but true is no
	x.ask("DELETE", q+"?if-empty=true", nil).is(400, errorOf("bad_request", "queue 'q' in vhost '/' not empty"))
	for _, most := range []string{"0", "-1", "", "many"} { // a condition that cannot be read is none that holds
		require.Equal(t, 400, x.ask("DELETE", q+"?if-at-most="+most, nil).status, most)
	}
	x.ask("DELETE", q+"/contents", nil).is(204, "")
	x.ask("DELETE", q, nil).is(204, "")
	x.ask("DELETE", q, nil).is(404, "")
}

func publishing(key, payload string) map[string]any {
	return map[string]any{"properties": map[string]any{}, "routing_key": key, "payload": payload, "payload_encoding": "string"}
}

// TestWholeFloatsInArguments: they are shown as floats, so that a binding with 1.0 is not taken for the one with 1, which has another key.
func TestWholeFloatsInArguments(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	for _, number := range []string{"1", "1.0"} {
		x.ask("POST", "/api/bindings/%2F/e/amq.headers/q/q", `{"arguments":{"a":`+number+`}}`).is(201, "")
	}
	keys := map[any]bool{}
	for _, b := range x.ask("GET", "/api/bindings/%2F/e/amq.headers/q/q", nil).list() {
		keys[b.(map[string]any)["properties_key"]] = true
	}
	assert.Len(t, keys, 2)
}

func TestPublishAndGet(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	const in, out = "/api/exchanges/%2F/amq.default/publish", "/api/queues/%2F/q/get"
	x.ask("POST", in, `{}`).is(400, errorOf("bad_request", "[{key_missing,routing_key},\n {key_missing,properties},\n {key_missing,payload},\n {key_missing,payload_encoding}]"))
	x.ask("POST", out, `{}`).is(400, errorOf("bad_request", "[{key_missing,ackmode},{key_missing,count},{key_missing,encoding}]"))
	x.ask("POST", out, `{"ackmode":"ack_requeue_true","count":1,"encoding":"x"}`).is(400, errorOf("bad_request", "Unsupported encoding. Please use auto or base64."))
	x.ask("POST", "/api/queues/%2F/none/get", `{"ackmode":"ack_requeue_true","count":1,"encoding":"auto"}`).is(404, errorOf("not_found", "NOT_FOUND - no queue 'none' in vhost '/'"))
	x.ask("POST", "/api/exchanges/%2F/none/publish", publishing("q", "m")).is(400, errorOf("bad_request", "404 NOT_FOUND - no exchange 'none' in vhost '/'"))
	x.ask("POST", in, publishing("none", "m")).is(200, `{"routed":false}`)
	bad := publishing("q", "m")
	bad["properties"] = map[string]any{"expiration": "x"}
	x.ask("POST", in, bad).is(400, errorOf("bad_request", "406 PRECONDITION_FAILED - invalid expiration 'x': no_integer"))
	bad["properties"] = map[string]any{"expiration": 1}
	x.ask("POST", in, bad).is(400, `{"error":"bad_request","reason":["not_string","expiration"]}`)

	x.ask("POST", in, `{"routing_key":"q","payload":"aGVsbG8=","payload_encoding":"base64","properties":{"delivery_mode":"2","priority":3,
		"content_type":"text/plain","timestamp":1700000000,"headers":{"n":1,"t":{"a":[1,"x",true,1.5]}}}}`).is(200, `{"routed":true}`)
	want := `[{"payload_bytes":5,"redelivered":false,"exchange":"","routing_key":"q","message_count":0,"payload":"hello","payload_encoding":"string",
		"properties":{"content_type":"text/plain","delivery_mode":2,"priority":3,"timestamp":1700000000,"headers":{"n":1,"t":{"a":[1,"x",true,1.5]}}}}]`
	x.ask("POST", out, `{"ackmode":"ack_requeue_true","count":"9","encoding":"auto"}`).is(200, want)
	want = strings.Replace(strings.Replace(strings.Replace(want, `"redelivered":false`, `"redelivered":true`, 1), "hello", "aGU=", 1), `"string"`, `"base64"`, 1)
	x.ask("POST", out, `{"ackmode":"reject_requeue_true","count":1,"encoding":"base64","truncate":2}`).is(200, want)
	x.ask("POST", out, `{"ackmode":"ack_requeue_false","count":1,"encoding":"base64","truncate":2}`).is(200, want)
	x.ask("POST", out, `{"ackmode":"ack_requeue_false","count":1,"encoding":"auto"}`).is(200, `[]`)
}

// TestPublishOfUnknownLength: a long body that does not say how long it is arrives as it was sent.
func TestPublishOfUnknownLength(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	for _, n := range []int{0, 1, 64 << 10, 1_000_003} {
		payload := strings.Repeat("0123456789", n/10+1)[:n]
		body, err := json.Marshal(publishing("q", payload))
		require.NoError(t, err)
		req, err := http.NewRequest(http.MethodPost, x.http.URL+"/api/exchanges/%2F/amq.default/publish", io.MultiReader(bytes.NewReader(body)))
		require.NoError(t, err)
		require.Zero(t, req.ContentLength, "unknown")
		req.SetBasicAuth("guest", "guest")
		x.do(req).is(200, `{"routed":true}`)
		got := x.ask("POST", "/api/queues/%2F/q/get", `{"ackmode":"ack_requeue_false","count":1,"encoding":"auto"}`).list()[0].(map[string]any)
		require.True(t, got["payload"] == payload, n)
	}
}

func TestPeekTakesNothingAndTellsOfDeadlines(t *testing.T) {
	x := start(t)
	const q = "/api/queues/%2F/q"
	x.ask("PUT", q, `{}`).is(201, "")
	for _, expiration := range []string{"1", "3600000"} {
		m := publishing("q", "body "+expiration)
		m["properties"] = map[string]any{"expiration": expiration}
		x.ask("POST", "/api/exchanges/%2F/amq.default/publish", m).is(200, "")
	}
	require.Eventually(t, func() bool {
		return x.ask("POST", q+"/peek", nil).list()[0].(map[string]any)["expired"] == true
	}, time.Minute, time.Millisecond)
	found := x.ask("POST", q+"/peek", `{"from":"tail","count":1,"truncate":4,"state":"ready"}`).list()
	require.Len(t, found, 1)
	o := found[0].(map[string]any)
	assert.Equal(t, []any{"body", 12.0, false, "ready", 0.0}, []any{o["payload"], o["payload_bytes"], o["expired"], o["state"], o["position"]})
	assert.InDelta(t, time.Now().Add(time.Hour).UnixMilli(), o["deadline"], 60_000)
	assert.Len(t, x.ask("POST", q+"/peek", `{"offset":1}`).list(), 1)
	assert.Empty(t, x.ask("POST", q+"/peek", `{"state":"unacked"}`).list())
	for _, wrong := range []string{`{"from":"middle"}`, `{"state":"x"}`, `{"count":501}`, `{"offset":-1}`} {
		x.ask("POST", q+"/peek", wrong).is(400, "")
	}
	assert.EqualValues(t, 2, x.ask("GET", q, nil).object()["messages_ready"])
}

func TestPermissionsOnObjects(t *testing.T) {
	x := start(t)
	require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "u-management", VHost: "/", Configure: "^own", Write: "", Read: "^own"}))
	as := func(method, path string, body any) reply { return x.askAs("u-management", "p", method, path, body) }
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	refused := errorOf("not_authorised", "Access refused.")
	as("PUT", "/api/queues/%2F/own", `{}`).is(201, "")
	as("PUT", "/api/queues/%2F/own2", `{"arguments":{"x-dead-letter-exchange":"amq.fanout"}}`).is(401, refused)
	as("PUT", "/api/queues/%2F/q2", `{}`).is(401, refused)
	as("DELETE", "/api/queues/%2F/q", nil).is(401, refused)
	as("DELETE", "/api/queues/%2F/q/contents", nil).is(401, refused)
	as("POST", "/api/queues/%2F/q/peek", nil).is(401, refused)
	as("POST", "/api/queues/%2F/q/get", `{"ackmode":"ack_requeue_true","count":1,"encoding":"auto"}`).is(401, refused)
	as("POST", "/api/bindings/%2F/e/amq.fanout/q/own", `{}`).is(401, refused)
	as("PUT", "/api/exchanges/%2F/x", `{}`).is(401, refused)
	as("POST", "/api/exchanges/%2F/amq.default/publish", publishing("own", "m")).
		is(400, errorOf("bad_request", "403 ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u-management'"))
	assert.Len(t, as("GET", "/api/queues", nil).list(), 2)
}

func TestOthersConnectionsAreHidden(t *testing.T) {
	x := start(t)
	x.dial()
	all := x.ask("GET", "/api/connections", nil).list()
	require.Len(t, all, 1)
	name := strings.ReplaceAll(all[0].(map[string]any)["name"].(string), " ", "%20")
	assert.Empty(t, x.askAs("u-management", "p", "GET", "/api/connections", nil).list())
	assert.Len(t, x.askAs("u-monitoring", "p", "GET", "/api/connections", nil).list(), 1)
	for _, user := range []string{"u-management", "u-monitoring"} {
		x.askAs(user, "p", "DELETE", "/api/connections/"+name, nil).is(401, errorOf("not_authorised", "User not authorised to access object"))
	}
	assert.EqualValues(t, 0, x.askAs("u-management", "p", "GET", "/api/overview", nil).object()["object_totals"].(map[string]any)["connections"])
}

func TestClosingAConnectionGivesTheReason(t *testing.T) {
	x := start(t)
	for reason, text := range map[string]string{"": "CONNECTION_FORCED - Closed via management plugin", "enough ~p%s": "CONNECTION_FORCED - enough ~p%s"} {
		c, err := amqp091.Dial(x.amqp)
		require.NoError(t, err)
		closed := c.NotifyClose(make(chan *amqp091.Error, 1))
		name := x.ask("GET", "/api/connections", nil).list()[0].(map[string]any)["name"].(string)
		req, err := http.NewRequest("DELETE", x.http.URL+"/api/connections/"+strings.ReplaceAll(name, " ", "%20"), nil)
		require.NoError(t, err)
		req.SetBasicAuth("guest", "guest")
		if reason != "" {
			req.Header.Set("X-Reason", reason)
		}
		x.do(req).is(204, "")
		assert.Equal(t, text, (<-closed).Reason)
		require.Eventually(t, func() bool { return len(x.ask("GET", "/api/connections", nil).list()) == 0 }, time.Minute, time.Millisecond)
	}
}

func TestPagesColumnsAndOrder(t *testing.T) {
	x := start(t)
	for _, name := range []string{"b", "a1", "a2", "c"} {
		x.ask("PUT", "/api/queues/%2F/"+name, `{"arguments":{"x-max-length":10}}`).is(201, "")
	}
	x.ask("GET", "/api/queues?columns=name&sort=name&sort_reverse=true", nil).is(200, `[{"name":"c"},{"name":"b"},{"name":"a2"},{"name":"a1"}]`)
	x.ask("GET", "/api/queues?columns=name,arguments.x-max-length,message_stats.publish_details.rate&page=1&page_size=1", nil).is(200,
		`{"page":1,"page_count":4,"page_size":1,"filtered_count":4,"item_count":1,"total_count":4,"items":[
			{"name":"a1","arguments":{"x-max-length":10},"message_stats":{"publish_details":{"rate":0.0}}}]}`)
	x.ask("GET", "/api/queues/%2F/?page=1&use_regex=true&pagination=false&name=%5Ea&page_size=100&columns=name", nil).is(200,
		`{"page":1,"page_count":1,"page_size":100,"filtered_count":2,"item_count":2,"total_count":4,"items":[{"name":"a1"},{"name":"a2"}]}`)
	x.ask("GET", "/api/queues?page=9", nil).is(400, errorOf("page_out_of_range", "Page out of range, page: 9 page size: 100, len: 4"))
	x.ask("GET", "/api/queues?page=a", nil).is(400, errorOf("bad_request", "Pagination parameters are invalid"))
	x.ask("GET", "/api/queues?page=0", nil).is(400, errorOf("invalid_pagination_parameters", "Invalid pagination parameters: page number 0, page size undefined"))
	x.ask("GET", "/api/queues?page=1&page_size=501", nil).is(400, errorOf("invalid_pagination_parameters", "Invalid pagination parameters: page number 1, page size 501"))
	x.ask("GET", "/api/queues?page=1&name=(&use_regex=true", nil).is(400, errorOf("bad_request", "Pagination parameters are invalid"))
	x.ask("GET", "/api/connections?page=1", nil).is(200, `{"page":1,"page_count":0,"page_size":100,"filtered_count":0,"item_count":0,"total_count":0,"items":[]}`)
}

func TestRatesComeWithTheSecondSample(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	rateOf := func() any {
		o := x.ask("GET", "/api/queues/%2F/q", nil)
		assert.Contains(t, o.body, `"ack_details":{"rate":0.0}`)
		return o.object()["message_stats"].(map[string]any)["publish_details"].(map[string]any)["rate"]
	}
	assert.Equal(t, 0.0, rateOf())
	for range 20 {
		x.ask("POST", "/api/exchanges/%2F/amq.default/publish", publishing("q", "m")).is(200, "")
	}
	assert.Equal(t, 0.0, rateOf(), "there is one sample")
	x.now = x.now.Add(10 * time.Second)
	assert.Equal(t, 2.0, rateOf())
	x.now = x.now.Add(2 * time.Second)
	assert.InDelta(t, 20.0/12, rateOf(), 1e-9, "the older sample stays the baseline until the newer one is old enough")
	x.now = x.now.Add(5 * time.Second)
	assert.Equal(t, 0.0, rateOf(), "nothing since")
	assert.EqualValues(t, 20, x.ask("GET", "/api/overview", nil).object()["message_stats"].(map[string]any)["publish"])
}

func TestUsersPermissionsAndLimits(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/users/u", `{}`).is(400, errorOf("bad_request", "tags_not_present"))
	x.ask("PUT", "/api/users/u", `{"password":"p","tags":"management,foo"}`).is(201, "")
	x.ask("PUT", "/api/users/u", `{"password":"p2","tags":["management"]}`).is(204, "")
	x.ask("PUT", "/api/users/u2", `{"password_hash":"!!","tags":""}`).is(400, `{"error":"bad_request","reason":["not_base64","!!"]}`)
	assert.Equal(t, []any{"management"}, x.ask("GET", "/api/users/u/", nil).object()["tags"])
	x.askAs("u", "p2", "GET", "/api/whoami", nil).is(200, "")
	assert.Len(t, x.ask("GET", "/api/users/without-permissions", nil).list(), 1)
	x.ask("PUT", "/api/permissions/%2F/u", `{}`).is(400, errorOf("bad_request", "[{key_missing,configure},{key_missing,write},{key_missing,read}]"))
	x.ask("PUT", "/api/permissions/%2F/u", `{"configure":"^a","write":"","read":".*"}`).is(201, "")
	x.ask("PUT", "/api/permissions/%2F/none", `{"configure":"^a","write":"","read":".*"}`).is(400, errorOf("bad_request", "vhost_or_user_not_found"))
	x.ask("GET", "/api/permissions/%2F/u", nil).is(200, `{"user":"u","vhost":"/","configure":"^a","write":"","read":".*"}`)
	x.ask("PUT", "/api/topic-permissions/%2F/u", `{"exchange":"amq.topic","write":"^a","read":".*"}`).is(201, "")
	x.ask("GET", "/api/topic-permissions/%2F/u", nil).is(200, `[{"user":"u","vhost":"/","exchange":"amq.topic","write":"^a","read":".*"}]`)
	x.ask("DELETE", "/api/topic-permissions/%2F/u/amq.topic", nil).is(204, "")
	x.ask("PUT", "/api/user-limits/u/max-connections", `{"value":"5"}`).is(204, "")
	x.ask("GET", "/api/user-limits/u", nil).is(200, `[{"user":"u","value":{"max-connections":5}}]`)
	x.ask("PUT", "/api/user-limits/u/none", `{"value":5}`).is(400, "")
	x.ask("PUT", "/api/vhosts/v", `{"description":"d","tags":"a,b"}`).is(201, "")
	x.ask("PUT", "/api/vhosts/v", `{"tracing":false}`).is(204, "")
	x.ask("PUT", "/api/vhosts/v", `{"tracing":true}`).is(400, errorOf("bad_request", "there is no firehose: tracing cannot be enabled"))
	x.ask("PUT", "/api/vhost-limits/v/max-queues", `{"value":1}`).is(204, "")
	x.ask("GET", "/api/vhost-limits/v", nil).is(200, `[{"vhost":"v","value":{"max-queues":1}}]`)
	x.ask("DELETE", "/api/vhost-limits/v/max-queues", nil).is(204, "")
	assert.Equal(t, []any{"a", "b"}, x.ask("GET", "/api/vhosts/v", nil).object()["tags"])
	x.ask("DELETE", "/api/vhosts/v", nil).is(204, "")
	x.ask("DELETE", "/api/permissions/%2F/u", nil).is(204, "")
	x.ask("POST", "/api/users/bulk-delete", `{"users":["u","none"]}`).is(204, "")
	x.ask("GET", "/api/users/u", nil).is(404, "")
}

func TestPoliciesParametersAndDefinitions(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", `{"durable":true}`).is(201, "")
	const p = "/api/policies/%2F/p"
	x.ask("PUT", p, `{}`).is(400, errorOf("bad_request", "[{key_missing,pattern},{key_missing,definition}]"))
	x.ask("PUT", p, `{"pattern":"^q$","definition":{"max-length":1000},"priority":"5"}`).is(400, errorOf("bad_request", "Validation failed\n\npriority should be a number, actually was &lt;&lt;\"5\"&gt;&gt;\n"))
	x.ask("PUT", p, `{"pattern":"^q$","definition":{"max-length":1000},"priority":5,"apply-to":"queues"}`).is(201, "")
	x.ask("GET", p, nil).is(200, `{"vhost":"/","name":"p","pattern":"^q$","apply-to":"queues","definition":{"max-length":1000},"priority":5}`)
	x.ask("PUT", "/api/operator-policies/%2F/o", `{"pattern":"^q$","definition":{"max-length":10}}`).is(201, "")
	x.ask("GET", "/api/queues/%2F/q?columns=policy,operator_policy,effective_policy_definition", nil).is(200,
		`{"policy":"p","operator_policy":"o","effective_policy_definition":{"max-length":10}}`)
	x.ask("PUT", "/api/parameters/shovel/%2F/x", `{"value":{}}`).is(400, errorOf("bad_request", "Validation failed\n\ncomponent shovel not found\n"))
	x.askAs("u-policymaker", "p", "PUT", "/api/parameters/operator_policy/%2F/x", `{"value":{"pattern":"","definition":{"max-length":1}}}`).is(401, "")
	x.ask("PUT", "/api/global-parameters/g", `{"value":{"a":1}}`).is(201, "")
	x.ask("GET", "/api/global-parameters/g", nil).is(200, `{"name":"g","value":{"a":1}}`)
	x.ask("PUT", "/api/cluster-name", `{"name":"c"}`).is(204, "")
	x.ask("GET", "/api/cluster-name/", nil).is(200, `{"name":"c"}`)

	exported := x.ask("GET", "/api/definitions", nil).is(200, "")
	for _, key := range []string{"rabbitmq_version", "users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters", "policies", "queues", "exchanges", "bindings"} {
		assert.Contains(t, exported.object(), key)
	}
	y := start(t)
	y.ask("POST", "/api/definitions", exported.body).is(204, "")
	y.ask("GET", "/api/queues/%2F/q?columns=policy", nil).is(200, `{"policy":"p"}`)
	y.ask("POST", "/api/definitions", `garbage`).is(400, "")
	y.ask("GET", "/api/definitions/%2F", nil).is(200, "")
}

func TestHealthChecks(t *testing.T) {
	x := start(t)
	for _, check := range []string{"alarms", "local-alarms", "virtual-hosts", "is-in-service", "ready-to-serve-clients", "certificate-expiration/1/days"} {
		x.ask("GET", "/api/health/checks/"+check, nil).is(200, `{"status":"ok"}`)
	}
	x.ask("GET", "/api/aliveness-test/%2F", nil).is(200, `{"status":"ok"}`)
	x.ask("GET", "/api/health/checks/port-listener/5672", nil).is(200, `{"status":"ok","port":5672}`)
	x.ask("GET", "/api/health/checks/port-listener/1", nil).is(503, `{"status":"failed","reason":"No active listener","missing":1,"ports":[5672,15672]}`)
	x.ask("GET", "/api/health/checks/protocol-listener/amqp091", nil).is(200, `{"status":"ok","protocol":"amqp091"}`)
	x.ask("GET", "/api/health/checks/protocol-listener/mqtt", nil).is(503, `{"status":"failed","reason":"No active listener","missing":"mqtt","protocols":["amqp","http"]}`)
	x.ask("GET", "/api/health/checks/certificate-expiration/1/x", nil).is(400, errorOf("bad_request", "Time unit not recognised. Supported units: days, weeks, months, years."))
}

func TestWhatHTTPAsksFor(t *testing.T) {
	x := start(t)
	anonymous := x.askAs("", "", "GET", "/api/overview", nil).is(401, errorOf("not_authorized", "Not_Authorized"))
	assert.Equal(t, `Basic realm="RabbitMQ Management"`, anonymous.header.Get("WWW-Authenticate"), ".NET gives credentials only when asked")
	wrong := x.askAs("guest", "wrong", "GET", "/api/overview", nil).is(401, errorOf("not_authorized", "Not_Authorized"))
	assert.Empty(t, wrong.header.Get("WWW-Authenticate"))
	x.askAs("u-", "p", "GET", "/api/whoami", nil).is(401, errorOf("not_authorised", "Not management user"))

	head := x.ask("HEAD", "/api/overview", nil).is(200, "")
	assert.Empty(t, head.body)
	for key, want := range map[string]string{"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "Access-Control-Allow-Origin": ""} {
		assert.Equal(t, want, head.header.Get(key))
	}
	assert.Contains(t, head.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")

	with := func(method, path, key, value string) reply {
		req, err := http.NewRequest(method, x.http.URL+path, strings.NewReader("{}"))
		require.NoError(t, err)
		req.SetBasicAuth("guest", "guest")
		req.Header.Set(key, value)
		return x.do(req)
	}
	with("GET", "/api/whoami", "Accept", "text/html").is(406, "")
	with("GET", "/api/whoami", "Accept", "text/html, */*;q=0.1").is(200, "")
	assert.Empty(t, with("GET", "/api/whoami", "Origin", "http://evil.example").header.Get("Access-Control-Allow-Origin"))
	with("PUT", "/api/queues/%2F/q", "Origin", "http://evil.example").is(403, "")
	with("PUT", "/api/queues/%2F/q", "Sec-Fetch-Site", "cross-site").is(403, "")
	x.ask("GET", "/api/queues/%2F/q", nil).is(404, "")
	x.ask("PUT", "/api/queues/%2F/q", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`).is(413, "")
	x.ask("GET", "/api/none", nil).is(404, errorOf("Object Not Found", "Not Found"))
	x.ask("GET", "/elsewhere", nil).is(404, "")
}

func TestNamesInPaths(t *testing.T) {
	x := start(t)
	for path, name := range map[string]string{"a%2Fb": "a/b", "q%25x": "q%x", "a%20b": "a b", "%C3%A4": "ä", "a+b": "a+b", "%2F": "/"} {
		x.ask("PUT", "/api/queues/%2F/"+path, `{}`).is(201, "")
		assert.Equal(t, name, x.ask("GET", "/api/queues/%2F/"+path, nil).object()["name"])
		assert.Equal(t, name, x.ask("GET", "/api/queues/%2F/"+path+"/", nil).object()["name"])
	}
	_, _, err := x.b.PutVHost("", "v", broker.VHostMetadata{})
	require.NoError(t, err)
	require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "guest", VHost: "v", Configure: ".*", Write: ".*", Read: ".*"}))
	x.ask("PUT", "/api/queues/v/q%25x", `{}`).is(201, "")
	assert.Equal(t, "q%x", x.ask("GET", "/api/queues/v/q%25x", nil).object()["name"])
}

func TestSingleActiveConsumersAndDeliveryLimits(t *testing.T) {
	x := start(t)
	ch := x.dial()
	_, err := ch.QueueDeclare("q", true, false, false, false, amqp091.Table{"x-queue-type": "quorum", "x-single-active-consumer": true})
	require.NoError(t, err)
	for _, tag := range []string{"first", "second"} {
		_, err = ch.Consume("q", tag, false, false, false, false, nil)
		require.NoError(t, err)
	}
	q := x.ask("GET", "/api/queues/%2F/q", nil).object()
	assert.Equal(t, "first", q["single_active_consumer_tag"])
	assert.EqualValues(t, 20, q["delivery_limit"], "RabbitMQ 4's, unless given")
	status := map[any]any{}
	for _, c := range q["consumer_details"].([]any) {
		o := c.(map[string]any)
		status[o["consumer_tag"]] = [2]any{o["active"], o["activity_status"]}
	}
	assert.Equal(t, map[any]any{"first": [2]any{true, "single_active"}, "second": [2]any{false, "waiting"}}, status)
	x.ask("PUT", "/api/queues/%2F/classic", `{}`).is(201, "")
	x.ask("GET", "/api/queues/%2F/classic?columns=delivery_limit", nil).is(200, `{"delivery_limit":"unlimited"}`)
}

// TestARightPasswordGetsInAmongGuesses: guesses come from the same address, by the hundred.
func TestARightPasswordGetsInAmongGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := broker.New(broker.Options{Clock: func() int64 { return time.Now().UnixNano() }})
		require.NoError(t, err)
		ops := operate.New(operate.Options{Broker: b})
		h := management.New(management.Options{Broker: b, Operations: ops}).Handler()
		ask := func(user, password string) int {
			r := httptest.NewRequest(http.MethodGet, "/api/whoami", http.NoBody)
			r.RemoteAddr = "127.0.0.1:1234"
			r.SetBasicAuth(user, password)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		var stop atomic.Bool
		var guessers sync.WaitGroup
		for g := range 100 {
			guessers.Go(func() {
				for i := 0; !stop.Load(); i++ {
					assert.Equal(t, http.StatusUnauthorized, ask([]string{"guest", fmt.Sprint(g, i)}[g%2], "wrong"))
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(time.Minute)
		for range 49 {
			start := time.Now()
			require.Equal(t, http.StatusOK, ask("guest", "guest"))
			require.LessOrEqual(t, time.Since(start), time.Second)
		}
		stop.Store(true)
		guessers.Wait()
		require.NoError(t, b.Close())
	})
}
