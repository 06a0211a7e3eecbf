package rabbitmq

import (
	"os"
	"regexp"
	"slices"
	"strings"
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

// TestAlertLeavesOutReasons: the alert about releases leaves out only reasons that exist.
func TestAlertLeavesOutReasons(t *testing.T) {
	rules, err := os.ReadFile("../../deploy/prometheus/curfew.rules.yml")
	require.NoError(t, err)
	all := []string{}
	for _, code := range []keeper.Code{keeper.LostLease, keeper.Consumer, keeper.Settings, keeper.Unknown, keeper.Budget, keeper.FewDeadlines,
		keeper.DeliveryLimit, keeper.Harm, keeper.Permission, keeper.Stop} {
		all = append(all, releaseReason(code))
	}
	found := regexp.MustCompile(`curfew_rabbitmq_releases_total\{reason!~"([^"]*)"`).FindAllStringSubmatch(string(rules), -1)
	require.Len(t, found, 2)
	for _, one := range found {
		for _, reason := range strings.Split(one[1], "|") {
			require.True(t, slices.Contains(all, reason), reason)
		}
	}
}
