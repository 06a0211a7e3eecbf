package commands

import (
	"bytes"
	"context"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDemoInterrupted(t *testing.T) {
	for after := 1; after <= 10; after++ { // also while it begins
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(10*after)*time.Millisecond)
		assert.EqualError(t, runDemo(ctx, new(bytes.Buffer), []time.Duration{time.Hour}), "demo: interrupted")
		cancel()
	}
}

// The client fails the demo when a message is early, late or unexpected, whatever the broker says.
func TestDemoClientJudges(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		id   string
		at   time.Time
		want string
	}{
		"on time":    {"order-1", now.Add(time.Millisecond), ""},
		"early":      {"order-1", now.Add(-2 * time.Millisecond), "order-1 came 2.0 ms early"},
		"late":       {"order-1", now.Add(5500 * time.Millisecond), "order-1 came 5500.0 ms late"},
		"unexpected": {"the-hour", now, "the-hour came back and should not have"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &watcher{w: new(bytes.Buffer), due: map[string]promised{"order-1": {now, time.Second}}}
			s.check(&amqp091.Delivery{MessageId: c.id, Headers: amqp091.Table{"x-first-death-reason": "expired"}}, c.at)
			if c.want == "" {
				assert.Empty(t, s.wrong)
				return
			}
			require.Len(t, s.wrong, 1)
			assert.EqualError(t, s.wrong[0], c.want)
		})
	}
}
