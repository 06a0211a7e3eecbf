package node

import (
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
