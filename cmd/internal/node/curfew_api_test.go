package node

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/management"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/monitor/changes"
	"curfew/monitor/history"
	"curfew/monitor/incident"
)

// TestCurfewAPITakesRoles: every mutating request an administrator, others monitoring.
func TestCurfewAPITakesRoles(t *testing.T) {
	b, err := broker.New(broker.Options{User: "admin", Password: "p"})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	for _, tag := range []string{access.Monitoring, access.Management} {
		require.NoError(t, b.Accounts.PutUser(access.User{Name: tag, PasswordHash: access.Hash("p"), Algorithm: access.SHA256, Tags: []string{tag}}))
	}
	list, err := incident.New(incident.Options{})
	require.NoError(t, err)
	operations := operate.New(operate.Options{Broker: b})
	n := &Node{incidents: list, history: history.New(history.Options{}), metrics: prometheus.NewRegistry()}
	n.changes = changes.New(changes.Options{Incidents: list, Recorder: operate.NewRecorder(operate.RecorderOptions{})})
	api := management.New(management.Options{Broker: b, Operations: operations}).Guard(n.curfewAPI(newOpsEndpoints(prometheus.NewRegistry())))
	for _, request := range [][2]string{{"GET", "/incidents"}, {"GET", "/incidents/rules"}, {"GET", "/maintenance"}, {"GET", "/history"}, {"POST", "/incidents/test"}, {"POST", "/incidents/x/ack"}, {"DELETE", "/incidents/x/ack"}, {"POST", "/maintenance"}, {"DELETE", "/maintenance/x"}} {
		for _, who := range []string{"", "nobody", access.Management, access.Monitoring, "admin"} {
			r := httptest.NewRequest(request[0], "/api/curfew"+request[1], strings.NewReader("{}"))
			if who != "" {
				r.SetBasicAuth(who, "p")
			}
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			allowed := who == "admin" || who == access.Monitoring && request[0] == "GET"
			assert.Equal(t, allowed, w.Code != http.StatusUnauthorized, "%v by %q: %d", request, who, w.Code)
		}
	}
	foreign := httptest.NewRequest("POST", "/api/curfew/maintenance", strings.NewReader("{}"))
	foreign.SetBasicAuth("admin", "p")
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, foreign)
	assert.Equal(t, http.StatusForbidden, w.Code)
}

// TestChangesOverTheAPI: what requests ask for is done, and the answer to what is wrong says what.
func TestChangesOverTheAPI(t *testing.T) {
	list, err := incident.New(incident.Options{Look: func(now *incident.State) { now.Blocked = "low on disk" }})
	require.NoError(t, err)
	n := &Node{incidents: list, history: history.New(history.Options{}), metrics: prometheus.NewRegistry()}
	n.changes = changes.New(changes.Options{Incidents: list, Recorder: operate.NewRecorder(operate.RecorderOptions{})})
	api := n.curfewAPI(newOpsEndpoints(n.metrics))
	admin := operate.Actor{Name: "ann", Tags: []string{access.Administrator}}
	ask := func(by operate.Actor, method, path, body string, want int) (answer map[string]any) {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, curfewPrefix+path, strings.NewReader(body))
		api.ServeHTTP(w, r.WithContext(operate.WithActor(r.Context(), by)))
		require.Equal(t, want, w.Code, w.Body.String())
		if w.Body.Len() > 0 {
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
		}
		return answer
	}
	made := ask(admin, http.MethodPost, "/maintenance", `{"queue": "orders", "duration": "1h", "comment": "why"}`, 201)
	require.Equal(t, "ann", made["author"])
	require.Len(t, ask(admin, http.MethodGet, "/maintenance", "", 200)["maintenance"], 1)
	id := list.View().Open[0].ID
	ask(admin, http.MethodPost, "/incidents/"+id+"/ack", `{"duration": "1h", "comment": "on it"}`, 204)
	require.Equal(t, "ann", list.View().Open[0].Ack.By)
	ask(admin, http.MethodDelete, "/incidents/"+id+"/ack", "", 204)
	ask(admin, http.MethodPost, "/incidents/"+id+"/ack", "", 204)
	ask(admin, http.MethodPost, "/incidents/"+id+"/ack", `{"duration": "long"}`, 400)
	ask(admin, http.MethodPost, "/incidents/none/ack", "", 404)
	ask(operate.Actor{}, http.MethodDelete, "/incidents/"+id+"/ack", "", 401)
	require.Equal(t, "critical", ask(admin, http.MethodGet, "/incidents", "", 200)["verdict"])
	ask(operate.Actor{}, http.MethodDelete, "/maintenance/"+made["id"].(string), "", 401)
	ask(admin, http.MethodDelete, "/maintenance/"+made["id"].(string), "", 204)
	require.Contains(t, ask(admin, http.MethodDelete, "/maintenance/"+made["id"].(string), "", 404)["reason"], "there is no such incident or maintenance window")
	for body, reason := range map[string]string{
		`{"queue": "a"}`:                       "say when it ends",
		`{"duration": "long"}`:                 "want a duration such as",
		`{"duration": "1h", "que": "a"}`:       "unknown field",
		`{"duration": "1h", "condition": "x"}`: "unknown condition",
		`{"duration": "1h", "queue": 5}`:       "not_string",
		`{"duration": "-1h", "queue": "all"}`:  "want a duration such as",
		`{"until": "2020-01-01T00:00:00Z"}`:    "in the past",
	} {
		require.Contains(t, ask(admin, http.MethodPost, "/maintenance", body, 400)["reason"], reason)
	}
	ask(admin, http.MethodPost, "/maintenance", `{"comment": "`+strings.Repeat("x", rest.MaxBody)+`"}`, 413)
	require.Equal(t, map[string]any{"log": "ok"}, ask(admin, http.MethodPost, "/incidents/test", `{"sink": "log"}`, 200)["sinks"])
	require.Contains(t, ask(admin, http.MethodPost, "/incidents/test", `{"sink": "mail"}`, 400)["reason"], `unknown sink "mail"`)
	require.Empty(t, ask(admin, http.MethodPost, "/incidents/test", "", 200)["sinks"], "the log is not tested with the others")
}
