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
	"curfew/monitor/alert"
	"curfew/monitor/history"
)

// TestCurfewAPITakesRoles: every mutating request an administrator, others monitoring.
func TestCurfewAPITakesRoles(t *testing.T) {
	b, err := broker.New(broker.Options{User: "admin", Password: "p"})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	for _, tag := range []string{access.Monitoring, access.Management} {
		require.NoError(t, b.Accounts.PutUser(access.User{Name: tag, PasswordHash: access.Hash("p"), Algorithm: access.SHA256, Tags: []string{tag}}))
	}
	alerts, err := alert.New(alert.Options{})
	require.NoError(t, err)
	operations := operate.New(operate.Options{Broker: b})
	n := &Node{alerts: alerts, history: history.New(history.Options{}), metrics: prometheus.NewRegistry()}
	openChanges(n)
	api := management.New(management.Options{Broker: b, Operations: operations}).Guard(n.curfewAPI(newOpsEndpoints(prometheus.NewRegistry())))
	for _, request := range [][2]string{{"GET", "/alerts"}, {"GET", "/alerts/rules"}, {"GET", "/silences"}, {"GET", "/history"}, {"POST", "/alerts/test"}, {"POST", "/silences"}, {"DELETE", "/silences/x"}} {
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
	foreign := httptest.NewRequest("POST", "/api/curfew/silences", strings.NewReader("{}"))
	foreign.SetBasicAuth("admin", "p")
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, foreign)
	assert.Equal(t, http.StatusForbidden, w.Code)
}
