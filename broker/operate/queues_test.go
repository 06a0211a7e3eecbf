package operate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/deadline"
)

// TestLosses: queues in which an expiry is no loss do not count, and where there are no others nothing is known.
func TestLosses(t *testing.T) {
	hour := deadline.Hour{{"/", "gone"}: {Expired: 3, Dropped: 3}, {"/", "parked"}: {Expired: 30}, {"/", "saved"}: {Expired: 10}, {"/", "meant"}: {Expired: 7, Dropped: 7}, {"/", "was"}: {Expired: 12, Meant: 8, Dropped: 3}}
	queue := func(name string) *Queue { return &Queue{QueueInfo: broker.QueueInfo{VHost: "/", Name: name}} }
	meant, parked := queue("meant"), queue("parked")
	meant.Purpose, parked.ExchangeMissing = deadline.Telemetry, true
	require.Equal(t, Losses{Lost: -1, Rescued: -1}, LossesOfAll([]*Queue{meant, queue("new")}, hour, nil))
	require.Equal(t, Losses{Lost: 3, Rescued: 40, Parked: 30}, LossesOfAll([]*Queue{meant, queue("gone"), parked, queue("saved")}, hour, nil))
	require.Equal(t, Losses{Lost: 3, Rescued: 1, Meant: 8}, LossesOfAll([]*Queue{meant, queue("was")}, hour, nil), "it was for telemetry at first")
	all := []*Queue{meant, queue("gone"), parked, queue("saved"), queue("was")}
	require.Equal(t, LossesOfAll(all, hour, nil), LossesOfAll(all, hour, map[string]bool{"/": true}))
	require.Equal(t, Losses{Lost: 6, Rescued: 41, Parked: 30, Meant: 8}, LossesOfAll(all[:3], hour, map[string]bool{"/": true}), "deleting a queue gives nothing back")
	meant.Wait.Objective, _ = deadline.ParseObjective("none expires")
	require.Equal(t, Losses{Lost: 7}, meant.LossesIn(hour))
}
