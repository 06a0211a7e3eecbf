package rabbitmq

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUndeliveredMessages: what no queue takes is told once nothing has been delivered for a while; messages that are only many are not.
func TestUndeliveredMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u undelivered
		for _, step := range []struct {
			left      int64
			discarded uint64
			told      int64
			why       string
		}{
			{1000, 1000, 0, "they may only be many"},
			{900, 1500, 0, "600 were delivered"},
			{600, 1500, 0, "300 more"},
			{40, 1500, 0, "these are left"},
			{40, 1500, 0, "for 30 seconds"},
			{41, 1501, 41, "and for a minute, with one more behind them"},
			{41, 20, 41, "another keeper counts from 0"},
			{41, 21, 0, "and then one is delivered"},
			{41, 21, 0, "or RabbitMQ's count was old"},
			{42, 21, 42, "for nothing has been since"},
			{0, 21, 0, "until all are gone"},
			{5, 26, 0, "what comes later is judged again"},
		} {
			u.look(step.left, step.discarded)
			require.Equal(t, step.told, u.messages(), step.why)
			time.Sleep(refreshEvery)
		}
	})
}
