package reference

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/cmd/internal/node"
)

func init() { openapi3filter.RegisterBodyDecoder("application/jsonl", openapi3filter.PlainBodyDecoder) }

// caller calls a running node, and holds what goes both ways to the document that it serves.
type caller struct {
	*running
	document *openapi3.T
	called   map[string]bool // with success, by the operation's ID
}

func newCaller(r *running) *caller {
	_, answer, text := r.ask(http.MethodGet, "/api/curfew/openapi.json", "")
	require.Equal(r.t, http.StatusOK, answer.StatusCode)
	document, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(r.t, err)
	require.NoError(r.t, document.Validate(r.t.Context()))
	none := false
	for _, schema := range document.Components.Schemas { // a field that the document does not have is a mistake here; clients have to bear it
		if schema.Value.Properties != nil {
			schema.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &none}
		}
	}
	return &caller{r, document, map[string]bool{}}
}

// call sends a request to a path of the document, whose parameters are replaced in order, and returns the answer, which has to have the status.
// query may be in the last of the values, after "?".
func (c *caller) call(want int, method, path string, body string, values ...string) (answered map[string]any) {
	c.t.Helper()
	item := c.document.Paths.Value(path)
	require.NotNil(c.t, item, path)
	op := item.GetOperation(method)
	require.NotNil(c.t, op, "%s %s", method, path)
	filled, query, parameters := path, "", map[string]string{}
	for i, p := range op.Parameters {
		if p.Value.In == "path" {
			parameters[p.Value.Name] = values[i]
			filled = strings.Replace(filled, "{"+p.Value.Name+"}", url.PathEscape(values[i]), 1)
		}
	}
	if n := len(values); n > 0 && strings.HasPrefix(values[n-1], "?") {
		query = values[n-1]
	}
	request, response, text := c.ask(method, filled+query, body)
	require.Equal(c.t, want, response.StatusCode, "%s %s: %s", method, filled+query, text)
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: parameters, QueryParams: request.URL.Query(),
		Route:   &routers.Route{Spec: c.document, Path: path, PathItem: item, Method: method, Operation: op},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if want < http.StatusBadRequest && op.RequestBody != nil {
		request.Body = io.NopCloser(strings.NewReader(body))
		if op.RequestBody.Value.Content["application/json"] == nil {
			request.Header.Set("Content-Type", "application/jsonl")
		}
		assert.NoError(c.t, openapi3filter.ValidateRequest(c.t.Context(), input), "%s %s", method, path)
	}
	output := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: response.StatusCode, Header: response.Header, Options: input.Options}
	assert.NoError(c.t, openapi3filter.ValidateResponse(c.t.Context(), output.SetBodyBytes(text)), "%s %s: %s", method, path, text)
	if want < http.StatusBadRequest {
		c.called[op.OperationID] = true
	}
	if bytes.HasPrefix(text, []byte("{")) && json.Unmarshal(text, &answered) == nil {
		return answered
	}
	return map[string]any{"text": string(text)}
}

// checkRoutes compares the document with the routes that are served: it has all of them, and no other is served.
func (c *caller) checkRoutes() {
	all := map[string]bool{}
	for _, one := range node.APIRoutes() {
		all[one.Method+" "+one.Path] = true
		item := c.document.Paths.Value(one.Path)
		if item != nil {
			assert.NotNil(c.t, item.GetOperation(one.Method), "%s %s is not in the document", one.Method, one.Path)
			continue
		}
		_, answer, _ := c.ask(one.Method, filled(&one), "{}")
		assert.Equal(c.t, http.StatusNotFound, answer.StatusCode, "%s %s is served, and is not in the document", one.Method, one.Path)
	}
	for path, item := range c.document.Paths.Map() {
		for method := range item.Operations() {
			assert.True(c.t, all[method+" "+path], "%s %s is in the document, and is not a route", method, path)
		}
	}
}

func filled(one *rest.Route) string {
	path := one.Path
	for name := range pathParameters {
		path = strings.ReplaceAll(path, "{"+name+"}", "none")
	}
	return path
}

// checkRefusals: a path that does not exist, and a method that a path does not take, are answered with an Error.
func (c *caller) checkRefusals() {
	want := c.document.Components.Schemas["Error"].Value
	for path, status := range map[string]int{"/incidents/none": 404, "/none": 404, "/status": 405, "/maintenance": 405, "/maintenance/none": 405} {
		_, answer, text := c.ask(http.MethodPut, "/api/curfew"+path, "{}")
		assert.Equal(c.t, status, answer.StatusCode, path)
		assert.Equal(c.t, status == 405, answer.Header.Get("Allow") != "", path)
		var body any
		require.NoError(c.t, json.Unmarshal(text, &body), "%s: %s", path, text)
		assert.NoError(c.t, want.VisitJSON(body, openapi3.EnableJSONSchema2020()), "%s: %s", path, text)
	}
}

// checkCalled: each route was called, but for those that are derived from an operation: their document is made of what answers.
func (c *caller) checkCalled() {
	for _, one := range node.APIRoutes() {
		if operate.Defined[one.Op] != nil {
			if item := c.document.Paths.Value(one.Path); item != nil {
				c.called[item.GetOperation(one.Method).OperationID] = true
			}
		}
	}
	for path, item := range c.document.Paths.Map() {
		for method, op := range item.Operations() {
			assert.True(c.t, c.called[op.OperationID], "nothing calls %s %s (%s)", method, path, op.OperationID)
		}
	}
}

func field[T any](c *caller, of map[string]any, name string) T {
	c.t.Helper()
	v, ok := of[name].(T)
	require.True(c.t, ok, "%s in %v", name, of)
	return v
}

// first is the first object in a list.
func first(c *caller, of map[string]any, list string) map[string]any {
	c.t.Helper()
	items := field[[]any](c, of, list)
	require.NotEmpty(c.t, items, list)
	return items[0].(map[string]any)
}

func number(c *caller, of map[string]any, name string) string {
	c.t.Helper()
	text, err := json.Marshal(field[float64](c, of, name))
	require.NoError(c.t, err)
	return string(text)
}

// TestAnswersAreAsDocumented calls every route of a running broker.
func TestAnswersAreAsDocumented(t *testing.T) {
	r := startNode(t, false)
	r.fill()
	c := newCaller(r)
	c.checkRoutes()
	c.checkRefusals()
	const api, dead = "/api/curfew", "/api/curfew/deadletters/{vhost}/{queue}"

	c.call(200, "GET", api+"/status", "")
	c.call(200, "GET", api+"/forecasts", "")
	c.call(200, "GET", api+"/history", "", "?span=1h&points=10")
	c.call(400, "GET", api+"/history", "", "?span=1s")
	c.call(200, "GET", api+"/audit", "", "?queue=orders&limit=10")
	c.call(200, "GET", api+"/audit", "", "?format=csv")
	c.call(200, "GET", api+"/audit", "", "?format=jsonl&order=newest")
	c.call(400, "GET", api+"/audit", "", "?path=none")
	c.call(200, "GET", api+"/openapi.json", "")

	c.call(200, "GET", api+"/clock", "")
	c.call(409, "POST", api+"/clock", `{"advance":"1h"}`)
	c.call(400, "POST", api+"/clock", `{}`)

	c.call(200, "GET", api+"/consumers", "")
	c.call(200, "GET", api+"/consumers", "", "?page=1&page_size=1&sort=kind")
	c.call(200, "GET", api+"/consumers/{vhost}", "", "/")
	c.call(200, "GET", api+"/consumers/{vhost}/{queue}", "", "/", "locked")
	c.call(404, "GET", api+"/consumers/{vhost}", "", "none")

	c.call(200, "GET", api+"/deadlines", "")
	c.call(200, "GET", api+"/deadlines/{vhost}", "", "/", "?overdue=true")
	seq := number(c, first(c, c.call(200, "GET", api+"/deadlines/{vhost}/{queue}", "", "/", "orders", "?count=1&after=1"), "items"), "seq")
	c.call(200, "POST", api+"/deadlines/{vhost}/{queue}/{seq}", `{"by_millis":1000}`, "/", "orders", seq)
	c.call(409, "POST", api+"/deadlines/{vhost}/{queue}/{seq}", `{"cancel":true,"was":1}`, "/", "orders", seq)
	c.call(400, "POST", api+"/deadlines/{vhost}/{queue}/{seq}", `{}`, "/", "orders", seq)
	c.call(404, "POST", api+"/deadlines/{vhost}/{queue}", `{"message_id":"none","fire":true}`, "/", "orders")
	c.call(200, "POST", api+"/deadlines/{vhost}/{queue}/{seq}", `{"fire":true,"drop":true}`, "/", "orders", seq)
	c.call(200, "POST", api+"/locks/{vhost}/{queue}/{token}", "", "/", "locked", r.token)
	c.call(404, "POST", api+"/locks/{vhost}/{queue}/{token}", "", "/", "locked", "none")
	id := field[string](c, first(c, c.call(200, "GET", api+"/delayed/{vhost}", "", "/"), "items"), "id")
	c.call(204, "DELETE", api+"/delayed/{vhost}/{id}", "", "/", id)
	c.call(404, "DELETE", api+"/delayed/{vhost}/{id}", "", "/", id)

	const mine = api + "/scheduled/{vhost}/{exchange}/{message_id}"
	c.call(200, "GET", api+"/scheduled", "")
	c.call(200, "GET", api+"/scheduled/{vhost}", "", "/", "?count=1")
	c.call(204, "PUT", mine, `{"in":"2h"}`, "/", "amq.default", "mine")
	c.call(400, "PUT", mine, `{"in":"soon"}`, "/", "amq.default", "mine")
	c.call(204, "DELETE", mine, "", "/", "amq.default", "mine")
	c.call(404, "DELETE", mine, "", "/", "amq.default", "none")
	c.call(404, "POST", mine+"/now", "", "/", "amq.default", "none")
	c.call(204, "POST", mine+"/now", "", "/", "amq.default", "due")

	var retries []struct{ ID string }
	require.NoError(c.t, json.Unmarshal([]byte(field[string](c, c.call(200, "GET", api+"/retries/{vhost}/{queue}", "", "/", "retried"), "text")), &retries))
	require.Len(c.t, retries, 2)
	c.call(204, "POST", api+"/retries/{vhost}/{queue}/{id}", "", "/", "retried", retries[0].ID)
	c.call(204, "DELETE", api+"/retries/{vhost}/{queue}/{id}", "", "/", "retried", retries[1].ID)
	c.call(404, "DELETE", api+"/retries/{vhost}/{queue}/{id}", "", "/", "retried", retries[0].ID)

	const policy = `{"pattern":"^orders$","definition":{"message-ttl":3600000},"apply-to":"queues"}`
	c.call(200, "PUT", api+"/policies/{vhost}/{policy}", policy, "/", "p", "?dry_run=true")
	c.call(200, "PUT", api+"/policies/{vhost}/{policy}", policy, "/", "p")
	c.call(400, "PUT", api+"/policies/{vhost}/{policy}", `{"pattern":"x"}`, "/", "p")
	c.call(200, "PUT", api+"/operator-policies/{vhost}/{policy}", policy, "/", "p", "?dry_run=true")

	c.callDeadLetters(api, dead)

	c.call(200, "GET", api+"/incidents/rules", "")
	c.call(200, "POST", api+"/incidents/test", `{"sink":"hook"}`)
	c.call(400, "POST", api+"/incidents/test", `{"sink":"none"}`)
	made := c.call(201, "POST", api+"/maintenance", `{"queue":"orders*","duration":"1h","author":"me","comment":"test"}`)
	c.call(400, "POST", api+"/maintenance", `{}`)
	c.call(200, "GET", api+"/maintenance", "")
	c.call(204, "DELETE", api+"/maintenance/{id}", "", field[string](c, made, "id"))
	c.call(404, "DELETE", api+"/maintenance/{id}", "", "none")
	c.acknowledge()
	c.checkCalled()
}

// acknowledge takes over the first incident: there is no Redis.
func (c *caller) acknowledge() {
	const ack = "/api/curfew/incidents/{incident}/ack"
	var id string
	require.Eventually(c.t, func() bool {
		all := field[[]any](c, c.call(200, "GET", "/api/curfew/incidents", ""), "incidents")
		if len(all) > 0 {
			id = field[string](c, all[0].(map[string]any), "id")
		}
		return id != ""
	}, time.Minute, 100*time.Millisecond)
	c.call(204, "POST", ack, `{"duration":"1h","comment":"on it"}`, id)
	c.call(200, "GET", "/api/curfew/incidents", "")
	c.call(204, "DELETE", ack, "", id)
	c.call(404, "POST", ack, `{}`, "none")
}

func (c *caller) callDeadLetters(api, dead string) {
	c.call(200, "GET", api+"/deadletters", "")
	c.call(200, "GET", api+"/deadletters/{vhost}", "", "/")
	c.call(200, "POST", dead+"/groups", `{}`, "/", "orders.dead")
	letter := first(c, c.call(200, "POST", dead+"/search", `{"filter":"reason == 'expired'","count":2}`, "/", "orders.dead"), "items")
	c.call(400, "POST", dead+"/search", `{"count":0}`, "/", "orders.dead")
	c.call(404, "POST", dead+"/search", `{}`, "/", "none")
	seq := number(c, letter, "seq")
	c.call(200, "GET", dead+"/messages/{seq}", "", "/", "orders.dead", seq)
	c.call(404, "GET", dead+"/messages/{seq}", "", "/", "orders.dead", "123456")
	lines := c.call(200, "POST", dead+"/export", `{}`, "/", "orders.dead")
	c.call(200, "POST", dead+"/import", field[string](c, lines, "text"), "/", "orders.dead")
	c.call(400, "POST", dead+"/import", "none\n", "/", "orders.dead")
	c.call(204, "PUT", dead+"/filters/{name}", `{"filter":"reason == 'expired'"}`, "/", "orders.dead", "night")
	c.call(200, "GET", dead+"/filters", "", "/", "orders.dead")
	c.call(204, "DELETE", dead+"/filters/{name}", "", "/", "orders.dead", "night")

	draft := c.call(200, "POST", dead+"/draft", `{"seq":`+seq+`}`, "/", "orders.dead")
	draft["payload"], draft["dry_run"] = "changed", true
	c.call(200, "POST", dead+"/resend", jsonOf(c, draft), "/", "orders.dead")
	draft["dry_run"] = false
	c.call(204, "POST", dead+"/resend", jsonOf(c, draft), "/", "orders.dead")
	c.call(404, "POST", dead+"/resend", jsonOf(c, draft), "/", "orders.dead")

	c.call(200, "POST", dead+"/replay", `{"dry_run":true}`, "/", "orders.dead")
	run := field[string](c, c.call(202, "POST", dead+"/replay", `{"to":"queue","ttl":"none","rate":0.001}`, "/", "orders.dead"), "id")
	c.call(200, "GET", api+"/replays", "")
	c.call(200, "GET", api+"/replays/{replay}", "", run)
	c.call(409, "POST", api+"/replays/{replay}/resume", "", run)
	c.call(200, "DELETE", api+"/replays/{replay}", "", run)
	c.call(200, "POST", api+"/replays/{replay}/resume", "", run)
	c.call(200, "DELETE", api+"/replays/{replay}", "", run)
	c.call(404, "GET", api+"/replays/{replay}", "", "none")
	c.call(200, "GET", api+"/runs", "")
	c.call(200, "GET", api+"/runs/{run}", "", run)
	c.call(200, "DELETE", api+"/runs/{run}", "", run)
	c.call(404, "GET", api+"/runs/{run}", "", "none")

	asked := c.call(409, "POST", dead+"/purge", `{}`, "/", "orders.dead")
	c.call(200, "POST", dead+"/purge", jsonOf(c, map[string]any{"confirm": asked["matched"], "position": asked["position"]}), "/", "orders.dead")
}

func jsonOf(c *caller, v any) string {
	text, err := json.Marshal(v)
	require.NoError(c.t, err)
	return string(text)
}

// TestAnswersWithRabbitMQ calls every route that Curfew serves without a broker. RabbitMQ is not there, so nothing can be paused.
func TestAnswersWithRabbitMQ(t *testing.T) {
	c := newCaller(startNode(t, true))
	c.checkRoutes()
	c.checkRefusals()
	for _, path := range []string{"/status", "/forecasts", "/history", "/audit", "/openapi.json", "/incidents/rules", "/maintenance", "/rabbitmq"} {
		c.call(200, "GET", "/api/curfew"+path, "")
	}
	c.call(200, "POST", "/api/curfew/incidents/test", `{}`)
	made := c.call(201, "POST", "/api/curfew/maintenance", `{"duration":"1h"}`)
	c.call(204, "DELETE", "/api/curfew/maintenance/{id}", "", field[string](c, made, "id"))
	c.acknowledge()
	c.call(503, "POST", "/api/curfew/rabbitmq/pause", "") // it is not known yet which cluster this is
	c.call(503, "POST", "/api/curfew/rabbitmq/resume", "")
	c.checkCalled()
}

// TestDocumentIsCached: a client that has it gets it again only when it has changed. Who may not look around may not have it.
func TestDocumentIsCached(t *testing.T) {
	r := startNode(t, false)
	_, answer, text := r.ask(http.MethodGet, "/api/curfew/openapi.json", "")
	require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
	require.Equal(t, "no-cache", answer.Header.Get("Cache-Control"))
	require.Contains(t, string(text), `"openapi":"3.1.0"`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.web+"/api/curfew/openapi.json", http.NoBody)
	require.NoError(t, err)
	for want, ask := range map[int]func(){
		http.StatusUnauthorized: func() {},
		http.StatusNotModified: func() {
			request.SetBasicAuth("guest", "guest")
			request.Header.Set("If-None-Match", answer.Header.Get("ETag"))
		},
	} {
		request.Header = http.Header{}
		ask()
		again, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		again.Body.Close()
		assert.Equal(t, want, again.StatusCode)
	}
}
