package main

import (
	"context"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/scheduler/storetest"
)

// startOps serves o on a free port for the test and returns its address.
func startOps(t *testing.T, o *ops) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(ctx, o.server(), l) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	return l.Addr().String()
}

func TestHealthcheck(t *testing.T) {
	o := newOps(prometheus.NewRegistry())
	setenv(t, "CURFEW_OPS_ADDR="+startOps(t, o))

	code, _, errOut := runCommand(t, "healthcheck")
	assert.Equal(t, 1, code)
	assert.Contains(t, errOut, "not ready")
	assert.Contains(t, errOut, "starting")

	o.enter(ready)
	code, out, _ := runCommand(t, "healthcheck")
	assert.Zero(t, code)
	assert.Equal(t, "ready\n", out)
}

func TestHealthcheckWithoutAnswer(t *testing.T) {
	setenv(t, "CURFEW_OPS_ADDR="+storetest.FreeAddr())
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

func TestReachable(t *testing.T) {
	for addr, want := range map[string]string{
		":1": "127.0.0.1:1", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "[::1]:1",
		"127.0.0.1:1": "127.0.0.1:1", "[fe80::1]:1": "[fe80::1]:1", "host:1": "host:1",
	} {
		assert.Equal(t, want, reachable(addr))
	}
}
