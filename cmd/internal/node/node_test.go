package node

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/cmd/internal/settings"
	"curfew/integration/testenv"
)

// nodeOfRabbitMQ is a node whose RabbitMQ nobody reaches.
func nodeOfRabbitMQ(t *testing.T, more ...string) (*Node, error) {
	t.Helper()
	t.Setenv("CURFEW_PRIMARY_URL", "amqp://ann:s3cret@"+testenv.FreeAddr()+"/shop")
	for _, s := range more {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv(name, value)
	}
	c, err := settings.Load()
	require.NoError(t, err)
	n, err := Open(Options{Settings: &c, Metrics: prometheus.NewRegistry(), Log: zap.NewNop()})
	if err == nil {
		t.Cleanup(func() { assert.NoError(t, n.Close()) })
	}
	return n, err
}

// TestNoBrokerWithRabbitMQ: with CURFEW_PRIMARY_URL there is a monitor of that RabbitMQ and nothing that a broker has.
func TestNoBrokerWithRabbitMQ(t *testing.T) {
	n, err := nodeOfRabbitMQ(t)
	require.NoError(t, err)
	require.IsType(t, &rabbitmqPrimary{}, n.primary)
	require.Nil(t, n.audit, "no folder was named")
	require.NotNil(t, n.monitor)
	s := n.status(newOpsEndpoints(n.metrics))
	assert.Contains(t, s.Primary, "amqp://ann@")
	assert.Equal(t, "none", s.Schedule)
	assert.Equal(t, "RabbitMQ's own; Curfew observes, and keeps no queue", s.Fires)
	assert.Empty(t, n.stalled())

	_, err = nodeOfRabbitMQ(t, "CURFEW_WATCH=/does/not/exist")
	var wrong settings.Error
	require.ErrorAs(t, err, &wrong)
	assert.ErrorContains(t, err, "CURFEW_WATCH")
}

// TestPagesWithoutBroker: the one user of the settings may look at and change everything, and nobody else.
func TestPagesWithoutBroker(t *testing.T) {
	n, err := nodeOfRabbitMQ(t, "CURFEW_PASSWORD=right")
	require.NoError(t, err)
	ops := newOpsEndpoints(n.metrics)
	ui, pages, err := n.primary.pages(ops, nil)
	require.NoError(t, err)
	t.Cleanup(ui.Close)
	ask := func(method, path, password, from string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(""))
		r.RemoteAddr = from
		if password != "" {
			r.SetBasicAuth("guest", password)
		}
		if len(header) > 0 {
			r.Header.Set(header[0], header[1])
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		return w
	}
	const here, elsewhere = "127.0.0.1:1", "192.0.2.1:1"
	w := ask("GET", "/api/curfew/rabbitmq", "right", here)
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Contains(t, w.Body.String(), `"vhost":"shop"`)
	assert.NotContains(t, w.Body.String(), "s3cret")
	assert.Equal(t, http.StatusOK, ask("GET", "/api/curfew/status", "right", here).Code)
	assert.Equal(t, http.StatusOK, ask("GET", "/api/curfew/forecasts", "right", here).Code)
	for _, path := range []string{"/api/curfew/rabbitmq", "/api/curfew/status", "/api/curfew/incidents"} {
		assert.Equal(t, http.StatusUnauthorized, ask("GET", path, "", here).Code)
		assert.Equal(t, http.StatusUnauthorized, ask("GET", path, "wrong", here).Code)
		assert.Equal(t, http.StatusUnauthorized, ask("GET", path, "right", elsewhere).Code, "guest is let in from this machine only")
	}
	assert.Equal(t, http.StatusNotFound, ask("POST", "/api/curfew/rabbitmq/resume", "right", here).Code, "it was not paused")
	assert.Equal(t, http.StatusForbidden, ask("POST", "/api/curfew/rabbitmq/resume", "right", here, "Sec-Fetch-Site", "cross-site").Code)
	w = ask("GET", "/api/queues", "right", here)
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Contains(t, w.Body.String(), "no broker runs here")
	for _, path := range []string{"/", "/rabbitmq", "/incidents", "/audit"} {
		w = ask("GET", path, "right", here)
		assert.Equal(t, http.StatusOK, w.Code, path)
		assert.NotContains(t, w.Body.String(), "s3cret")
		assert.NotContains(t, w.Body.String(), `href="/queues"`, path)
	}
	w = ask("GET", "/queue?name=q", "right", here)
	assert.Equal(t, "/rabbitmq", w.Header().Get("Location"))
}
