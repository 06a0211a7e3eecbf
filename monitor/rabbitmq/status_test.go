package rabbitmq

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/keeper"
)

// TestReleaseReason: everything that other consumers do is one reason, about which there is no alert.
func TestReleaseReason(t *testing.T) {
	for code, want := range map[keeper.Code]string{keeper.Consumer: "consumer", keeper.Flapping: "consumer", keeper.StuckConsumers: "consumer",
		keeper.Harm: "harm", keeper.Budget: "budget", keeper.LostLease: "lost_lease", keeper.Stop: "stop", keeper.Settings: "settings"} {
		require.Equal(t, want, releaseReason(code))
	}
}
