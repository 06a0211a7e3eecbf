package commands

import (
	"encoding/json"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHistoryCommand(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(3)
	r.send(ch, amqp091.Publishing{Expiration: "3600000"})
	var past struct {
		Depth   []*float64 `json:"depth"`
		Expired []*float64 `json:"expired"`
	}
	require.Eventually(t, func() bool { // the seconds have to be over
		require.NoError(t, json.Unmarshal([]byte(r.ok("history", "orders", "--span", "1m", "-o", "json")), &past))
		sum := 0.0
		for _, n := range past.Expired {
			if n != nil {
				sum += *n
			}
		}
		return sum == 3 && past.Depth[len(past.Depth)-1] != nil && *past.Depth[len(past.Depth)-1] == 1
	}, time.Minute, 100*time.Millisecond)
	shown := r.ok("history", "orders", "--span", "1m")
	for _, text := range []string{"WHAT", "TREND", "depth ", "lateness p99, ms", "Each row is ", "FROM", "AT RISK", "WHAT HAPPENED", "█"} {
		assert.Contains(t, shown, text)
	}
	assert.Contains(t, r.ok("history", "--span", "24h", "--points", "3"), "Each row is ")
	assert.Contains(t, r.ok("history", "--points", "1"), "Each row is 1h0m0s")
	assert.Contains(t, r.fails("history", "none"), "nothing has happened in a queue of that name")
	assert.Contains(t, r.fails("history", "--span", "48h"), "want 1m to 24h")
	r.exits(exitUsage, "history", "a", "b")
}
