package management_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
)

const dlq = "/api/curfew/deadletters/%2F/dlq"

// deadLetters makes n of them, with the bodies 0, 1, ...
func (x *site) deadLetters(n int) *broker.Queue {
	vh, _ := x.b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"}})
	require.NoError(x.t, err)
	dlq, err := vh.Queues.Declare(nil, "dlq", broker.QueueDeclare{})
	require.NoError(x.t, err)
	p := vh.OwnPublisher()
	for i := range n {
		properties := amqp.Properties{MessageID: fmt.Sprint("id", i)}
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil), Body: []byte(fmt.Sprint(i))})
		require.NoError(x.t, err)
	}
	p.Flush(nil)
	found, err := q.Messages.Browse(broker.Browse{Count: n})
	require.NoError(x.t, err)
	for i := range found {
		x.b.FireNow(q.Messages.Ref(&found[i]), false)
	}
	return dlq
}

func TestDeadLettersOverHTTP(t *testing.T) {
	x := start(t)
	dead := x.deadLetters(4)
	assert.JSONEq(t, `[{"vhost":"/","queue":"dlq","ready":4,"unacked":0,"bytes":4,"from":["q"],"parked":false,"purpose":""}]`, x.ask("GET", "/api/curfew/deadletters", nil).body)
	groups := x.ask("POST", dlq+"/groups", nil).body
	for _, part := range []string{`"reason":"expired"`, `"queue":"q"`, `"exchange":""`, `"messages":4`} {
		assert.Contains(t, groups, part)
	}
	assert.NotContains(t, groups, `"type"`)
	assert.Contains(t, x.ask("POST", dlq+"/groups", map[string]any{"by_type": true}).body, `"type":""`)
	found := x.ask("POST", dlq+"/search", map[string]any{"filter": `message_id == "id2"`}).body
	assert.Contains(t, found, `"payload":"2"`)
	assert.Contains(t, found, `"deaths":[{"queue":"q","reason":"expired"`)
	assert.Contains(t, found, `"next":0`)
	assert.Contains(t, x.ask("POST", dlq+"/search?filter="+url.QueryEscape(`message_id == "id2"`), map[string]any{"filter": `reason == "expired"`}).body, `"payload":"2"`)
	x.ask("POST", dlq+"/search", map[string]any{"filter": `body matches "("`}).is(400, errorOf("bad_request", "filter, character 14: the pattern is not an RE2 expression: error parsing regexp: missing closing ): `(`"))
	x.ask("POST", dlq+"/search", map[string]any{"filter": `reason == "expire"`}).is(400, errorOf("bad_request", `filter, character 11: there is no reason "expire": want one of expired, rejected, maxlen, delivery_limit`))
	x.ask("POST", dlq+"/search", map[string]any{"filter": map[string]any{"reason": "expired"}}).is(400, "")
	x.ask("POST", dlq+"/search", map[string]any{"filtre": 1}).is(400, "")
	x.ask("POST", "/api/curfew/deadletters/%2F/nothing/search", nil).is(404, "")

	file := x.ask("POST", dlq+"/export", map[string]any{"filter": `body contains "3"`}).body
	assert.Equal(t, 1, strings.Count(file, "\n"))
	assert.Contains(t, x.ask("POST", dlq+"/purge", map[string]any{"filter": `body contains "3"`}).body, `"matched":1`)
	x.ask("POST", dlq+"/purge", map[string]any{"filter": `body contains "3"`, "confirm": 1}).is(200, "")
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(file), &line))
	assert.JSONEq(t, `{"imported":1}`, x.ask("POST", dlq+"/import", line).body)

	assert.Contains(t, x.ask("POST", dlq+"/replay", map[string]any{"dry_run": true}).body, `"replayed":4`)
	ready, _, _ := dead.Messages.Counts()
	assert.Equal(t, 4, ready)
	var run struct {
		ID, State string
		Replayed  int
	}
	require.NoError(t, json.Unmarshal([]byte(x.ask("POST", dlq+"/replay", map[string]any{"to": "queue"}).body), &run))
	require.Eventually(t, func() bool {
		require.NoError(t, json.Unmarshal([]byte(x.ask("GET", "/api/curfew/replays/"+run.ID, nil).body), &run))
		return run.State == "done"
	}, time.Minute, time.Millisecond)
	assert.Equal(t, 4, run.Replayed)
	assert.Contains(t, x.ask("GET", "/api/curfew/replays", nil).body, run.ID)
	x.ask("DELETE", "/api/curfew/replays/"+run.ID, nil).is(200, "")
	x.ask("POST", "/api/curfew/replays/"+run.ID+"/resume", nil).is(409, "")
	x.ask("DELETE", "/api/curfew/replays/none", nil).is(404, "")
	x.ask("POST", dlq+"/replay", map[string]any{"ttl": "long"}).is(400, errorOf("bad_request", `the replay cannot be started: ttl: "long" is not fresh, remaining, none or a time such as 10m, of ten years at most`))
}

func TestDeadLettersTakePermissions(t *testing.T) {
	x := start(t)
	x.deadLetters(1)
	require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "u-management", VHost: "/", Read: "^q$", Write: "dlq"}))
	for _, what := range []string{"groups", "search", "replay", "purge", "export", "import"} {
		assert.Equal(t, 401, x.askAs("u-management", "p", "POST", dlq+"/"+what, nil).status, what)
	}
	assert.JSONEq(t, `[]`, x.askAs("u-management", "p", "GET", "/api/curfew/deadletters", nil).body)
}

// TestReplaysAreTheirOwners: who may read the queue, or monitor, has nothing to do with another's replay.
func TestReplaysAreTheirOwners(t *testing.T) {
	x := start(t)
	x.deadLetters(4)
	begin := func(user string) string {
		id, ok := x.askAs(user, "p", "POST", dlq+"/replay", map[string]any{"rate": 0.01}).is(202, "").object()["id"].(string)
		require.True(t, ok)
		return "/api/curfew/replays/" + id
	}
	admins, own := begin("u-administrator"), begin("u-management")
	for _, user := range []string{"u-management", "u-policymaker", "u-monitoring"} {
		x.askAs(user, "p", "GET", admins, nil).is(404, "")
		x.askAs(user, "p", "DELETE", admins, nil).is(404, "")
		x.askAs(user, "p", "POST", admins+"/resume", nil).is(404, "")
	}
	for user, sees := range map[string]int{"u-administrator": 2, "u-management": 1, "u-policymaker": 0, "u-monitoring": 0} {
		assert.Len(t, x.askAs(user, "p", "GET", "/api/curfew/replays", nil).list(), sees, user)
	}
	x.askAs("u-management", "p", "DELETE", own, nil).is(200, "")
	x.askAs("u-management", "p", "POST", own+"/resume", nil).is(200, "")
	x.askAs("u-administrator", "p", "DELETE", own, nil).is(200, "")
	require.NoError(t, x.b.Accounts.DeleteUser("u-management"))
	assert.Contains(t, x.askAs("u-administrator", "p", "POST", own+"/resume", nil).is(409, "").body, "is deleted; start another replay")
}

// TestEditAndResend: a draft that is changed arrives, and the dead letter is gone; what leads nowhere stays.
func TestEditAndResend(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", `{}`).is(201, "")
	x.ask("PUT", "/api/queues/%2F/dlq", `{}`).is(201, "")
	x.ask("POST", "/api/exchanges/%2F/amq.default/publish", `{"routing_key":"dlq","payload":"wrong","payload_encoding":"string","properties":{"message_id":"m"}}`).is(200, "")
	const letters = "/api/curfew/deadletters/%2F/dlq/"
	draft := x.ask("POST", letters+"draft", `{"seq":1}`).is(200, "").object()
	assert.Equal(t, "wrong", draft["payload"])
	assert.Equal(t, "m", draft["properties"].(map[string]any)["message_id"])
	x.ask("POST", letters+"draft", `{"seq":2}`).is(404, "")
	x.ask("POST", letters+"resend", draft).is(409, errorOf("skipped", "the message stays where it is: leads_back"))
	draft["routing_key"], draft["payload"], draft["payload_encoding"] = "q", "cmlnaHQ=", "base64"
	draft["queue_id"] = "99"
	x.ask("POST", letters+"resend", draft).is(404, "")
	delete(draft, "queue_id")
	draft["properties"] = map[string]any{"unknown": 1}
	assert.Contains(t, x.ask("POST", letters+"resend", draft).is(400, "").body, "the draft cannot be sent")
	x.ask("POST", letters+"resend", `{"seq":1,"routing_key":"q","payload":"right","payload_encoding":"string","properties":{"message_id":"n","headers":{"version":1.0,"count":1}}}`).is(204, "")
	arrived := x.ask("POST", "/api/queues/%2F/q/peek", `{}`)
	assert.Equal(t, "right", arrived.list()[0].(map[string]any)["payload"])
	vh, _ := x.b.VHost("/")
	q, _ := vh.Queues.Get("q")
	found, err := q.Messages.Browse(broker.Browse{Count: 1})
	require.NoError(t, err)
	properties, err := found[0].Decode()
	require.NoError(t, err)
	assert.Equal(t, amqp.Table{"count": int64(1), "version": 1.0}, properties.Headers, "numbers stay as they were written")
	assert.Equal(t, "n", properties.MessageID)
	assert.Empty(t, x.ask("POST", "/api/queues/%2F/dlq/peek", `{}`).list())
}

// TestOneDeadLetterOverHTTP: a message by itself, saved filters, where a try goes, and the review of a draft.
func TestOneDeadLetterOverHTTP(t *testing.T) {
	x := start(t)
	x.deadLetters(3)
	one := x.ask("GET", dlq+"/messages/2", nil).is(200, "").body
	assert.Contains(t, one, `"payload":"1"`)
	assert.Contains(t, one, `"reason":"expired"`)
	assert.Regexp(t, `"queue_id":"[0-9]+"`, one, "no JSON reader has numbers that large")
	for _, seq := range []string{"9", "x", "-1"} {
		x.ask("GET", dlq+"/messages/"+seq, nil).is(404, "")
	}
	newest := x.ask("POST", dlq+"/search", map[string]any{"newest": true, "count": 1}).body
	assert.Contains(t, newest, `"payload":"2"`)
	assert.Contains(t, x.ask("POST", dlq+"/search", map[string]any{"filter": `message_id == "id1"`}).body, `"payload":"1"`)

	x.ask("PUT", dlq+"/filters/the%20night", map[string]any{"filter": `died > ago("2h")`}).is(204, "")
	assert.JSONEq(t, `[{"name":"the night","filter":"died > ago(\"2h\")","by":"guest"}]`, x.ask("GET", dlq+"/filters", nil).body)
	for _, filter := range []string{"", `colour == "red"`, `died > ago("yesterday")`, "%"} {
		x.ask("PUT", dlq+"/filters/wrong", map[string]any{"filter": filter}).is(400, "")
	}
	x.ask("DELETE", dlq+"/filters/the%20night", nil).is(204, "")
	x.ask("DELETE", dlq+"/filters/the%20night", nil).is(404, "")

	assert.Contains(t, x.ask("POST", dlq+"/replay", map[string]any{"dry_run": true, "ttl": "5s"}).body,
		`"targets":[{"queue":"q","messages":3,"consumers":0,"expiring":3,"first_expiry_millis":`)
	draft := x.ask("POST", dlq+"/draft", map[string]any{"seq": 1}).object()
	draft["payload"], draft["dry_run"] = "changed", true
	review := x.ask("POST", dlq+"/resend", draft).is(200, "").object()
	assert.Contains(t, review["diff"], "-0\n+changed")
	assert.Contains(t, review["not_json"], "line 1, column 1")
	ready := x.ask("GET", "/api/curfew/deadletters", nil).body
	assert.Contains(t, ready, `"ready":3`, "a review changes nothing")
}

// TestSubqueueInAnyCase: the API understands it as AMQP does, and dead letters are imported into it.
func TestSubqueueInAnyCase(t *testing.T) {
	x := start(t)
	ch := x.dial()
	_, err := ch.QueueDeclare("q", false, false, false, false, amqp091.Table{"x-dead-letter-queue": true})
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Body: []byte("m")}))
	got, ok, err := ch.Get("q", false)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, got.Reject(false))
	const path = "/api/queues/%2F/q%2F$DeadLetterQueue"
	require.Eventually(t, func() bool {
		return x.ask("GET", path, nil).object()["messages"] == 1.0
	}, time.Minute, time.Millisecond)
	letters := "/api/curfew/deadletters/%2F/q%2F$DeadLetterQueue/"
	line := x.ask("POST", letters+"export", "{}").is(200, "").body
	x.ask("POST", letters+"import", line).is(200, `{"imported":1}`)
	list := x.ask("POST", path+"/get", map[string]any{"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}).is(200, "").list()
	assert.Len(t, list, 2)
	x.ask("DELETE", path+"/contents", nil).is(204, "")
	x.ask("POST", "/api/exchanges/%2F/amq.default/publish", map[string]any{
		"routing_key": "q/$deadletterqueue", "properties": map[string]any{}, "payload": "m", "payload_encoding": "string",
	}).is(400, errorOf("bad_request", "403 ACCESS_REFUSED - queue 'q/$deadletterqueue' in vhost '/' takes the dead letters of queue 'q' and nothing else"))
}

// TestRunsOfTheAPI: an import and a purge that the client does not wait for are runs, with the answer that it would have got.
func TestRunsOfTheAPI(t *testing.T) {
	x := start(t)
	async := func(path string, body any) map[string]any {
		text, isText := body.(string)
		if !isText {
			object, err := json.Marshal(body)
			require.NoError(t, err)
			text = string(object)
		}
		req, err := http.NewRequest(http.MethodPost, x.http.URL+path, strings.NewReader(text))
		require.NoError(t, err)
		req.SetBasicAuth("u-administrator", "p")
		req.Header.Set("Prefer", "respond-async")
		answer := x.do(req)
		require.Equal(t, http.StatusAccepted, answer.status, answer.body)
		at := answer.header.Get("Location")
		require.Eventually(t, func() bool {
			return x.ask("GET", at, nil).is(200, "").object()["state"] != "running"
		}, time.Minute, time.Millisecond)
		x.askAs("u-management", "p", "GET", at, nil).is(404, "")
		assert.Contains(t, x.ask("GET", "/api/curfew/runs", nil).body, answer.object()["id"])
		return x.askAs("u-administrator", "p", "DELETE", at, nil).is(200, "").object()
	}
	run := async("/api/definitions", map[string]any{"queues": []any{map[string]any{"name": "q", "vhost": "/", "durable": true}}})
	assert.Equal(t, "import_definitions", run["operation"])
	assert.Equal(t, "done", run["state"])
	assert.NotContains(t, run, "failure")
	x.ask("GET", "/api/queues/%2F/q", nil).is(200, "")
	run = async("/api/definitions", map[string]any{"queues": []any{map[string]any{"name": "r", "vhost": "none"}}})
	assert.Equal(t, "failed", run["state"])
	assert.InDelta(t, 400, run["failure"].(map[string]any)["status"], 0)
	file := "{\"routing_key\":\"x\",\"payload\":\"YQ==\"}\n{\"routing_key\":\"x\",\"payload\":\"Yg==\"}\n"
	run = async("/api/curfew/deadletters/%2F/q/import", file)
	assert.Equal(t, "import_dead_letters", run["operation"])
	assert.Equal(t, map[string]any{"imported": 2.0}, run["result"])
	assert.InDelta(t, 2, run["done"], 0)
	run = async("/api/curfew/deadletters/%2F/q/import", file+"no JSON")
	assert.Equal(t, "failed", run["state"])
	assert.InDelta(t, 2, run["failure"].(map[string]any)["imported"], 0)
	assert.Contains(t, run["failure"].(map[string]any)["reason"], "line 3")
	x.ask("DELETE", "/api/queues/%2F/q/contents", nil).is(204, "")
	run = async("/api/curfew/deadletters/%2F/q/purge", map[string]any{"confirm": 5})
	failure := run["failure"].(map[string]any)
	assert.Equal(t, "unconfirmed", failure["error"])
	assert.InDelta(t, 0, failure["matched"], 0)
	assert.NotEmpty(t, failure["position"])
	x.ask("DELETE", "/api/curfew/runs/none", nil).is(404, "")
}
