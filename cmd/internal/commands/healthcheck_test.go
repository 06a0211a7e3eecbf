package commands

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/integration/testenv"
)

// TestHealthcheck asks a process that is starting, then one that is ready.
func TestHealthcheck(t *testing.T) {
	var ready atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/readyz", r.URL.Path)
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":"starting"}`))
		}
	}))
	defer s.Close()
	setenv(t, "CURFEW_OPS_ADDR="+s.Listener.Addr().String())

	code, _, errOut := runCommand(t, "healthcheck")
	assert.Equal(t, 1, code)
	assert.Contains(t, errOut, "not ready")
	assert.Contains(t, errOut, "starting")

	ready.Store(true)
	code, out, _ := runCommand(t, "healthcheck")
	assert.Zero(t, code)
	assert.Equal(t, "ready\n", out)
}

func TestHealthcheckWithoutAnswer(t *testing.T) {
	setenv(t, "CURFEW_OPS_ADDR="+testenv.FreeAddr())
	code, _, errOut := runCommand(t, "healthcheck")
	assert.Equal(t, 1, code)
	assert.Contains(t, errOut, "no answer")
}

func TestHealthcheckKnowsOnlyTwoCodes(t *testing.T) {
	setenv(t, "CURFEW_OPS_ADDR=nonsense")
	code, _, errOut := runCommand(t, "healthcheck")
	assert.Equal(t, 1, code)
	assert.Contains(t, errOut, "CURFEW_OPS_ADDR")
}
