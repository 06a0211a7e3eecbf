package node

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/monitor/alert"
	"curfew/monitor/history"
)

// TestChangesOverTheAPI: what requests ask for is done, and the answer to what is wrong says what.
func TestChangesOverTheAPI(t *testing.T) {
	alerts, err := alert.New(alert.Options{})
	require.NoError(t, err)
	n := &Node{alerts: alerts, history: history.New(history.Options{}), metrics: prometheus.NewRegistry()}
	openChanges(n)
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
	made := ask(admin, http.MethodPost, "/silences", `{"queue": "orders", "duration": "1h", "comment": "why"}`, 201)
	require.Equal(t, "ann", made["author"])
	require.Len(t, ask(admin, http.MethodGet, "/silences", "", 200)["silences"], 1)
	ask(operate.Actor{}, http.MethodDelete, "/silences/"+made["id"].(string), "", 401)
	ask(admin, http.MethodDelete, "/silences/"+made["id"].(string), "", 204)
	require.Equal(t, "there is no such silence", ask(admin, http.MethodDelete, "/silences/"+made["id"].(string), "", 404)["reason"])
	for body, reason := range map[string]string{
		`{"queue": "a"}`:                      "say when it ends",
		`{"duration": "long"}`:                "want a duration such as",
		`{"duration": "1h", "que": "a"}`:      "unknown field",
		`{"duration": "1h", "event": "x"}`:    "unknown event",
		`{"duration": "1h", "queue": 5}`:      "cannot unmarshal",
		`{"duration": "-1h", "queue": "all"}`: "in the past",
	} {
		require.Contains(t, ask(admin, http.MethodPost, "/silences", body, 400)["reason"], reason)
	}
	ask(admin, http.MethodPost, "/silences", `{"comment": "`+strings.Repeat("x", maxChange)+`"}`, 413)
	require.Equal(t, map[string]any{"log": "ok"}, ask(admin, http.MethodPost, "/alerts/test", `{"sink": "log"}`, 200)["sinks"])
	require.Contains(t, ask(admin, http.MethodPost, "/alerts/test", `{"sink": "mail"}`, 400)["reason"], `unknown sink "mail"`)
	require.Empty(t, ask(admin, http.MethodPost, "/alerts/test", "", 200)["sinks"], "the log is not tested with the others")
}
