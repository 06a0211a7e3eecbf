package management_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNodesGoByTheNamesThatMonitoringMakesUp tries names of the instance, which is test
// here, and of the machine.
func TestNodesGoByTheNamesThatMonitoringMakesUp(t *testing.T) {
	x := start(t)
	machine, err := os.Hostname()
	require.NoError(t, err)
	short, _, _ := strings.Cut(machine, ".")
	for _, name := range []string{"curfew@test", "rabbit@test", "rabbit@" + machine, "rabbit@" + short} {
		for _, path := range []string{"nodes/" + name, "nodes/" + name + "/memory", "nodes/" + name + "/memory/relative", "healthchecks/node/" + name} {
			x.ask("GET", "/api/"+path, nil).is(200, "")
		}
	}
	for _, name := range []string{"rabbit@other", "rabbit@", "rabbit", "curfew@other"} {
		x.ask("GET", "/api/nodes/"+name, nil).is(404, "")
	}
}
