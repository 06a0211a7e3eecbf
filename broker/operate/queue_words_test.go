package operate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
)

// TestSettingsInWords: what the settings of a queue come to, and what sets each.
func TestSettingsInWords(t *testing.T) {
	within, err := deadline.ParseObjective("99% consumed within 30s")
	require.NoError(t, err)
	of := func(args amqp.Table, effective policy.Definition, w deadline.Wait) QueueWords {
		d := QueueDetail{Policy: "p", OperatorPolicy: "o", Effective: effective, Queue: Queue{Purpose: deadline.Work, Wait: w}}
		d.Name, d.Args = "orders", args
		return d.InWords()
	}
	require.Equal(t, QueueWords{
		TimeToLive: "none: only each message's own applies", DeadLetters: "lost: it has no dead-letter exchange", Purpose: "work (inferred)",
		TimeInQueue: "nothing was consumed in the last minutes",
	}, of(nil, nil, deadline.Wait{Oldest: 9000}))
	require.Equal(t, QueueWords{
		TimeToLive:  "1h30m (argument x-message-ttl; policy p with operator policy o has 2h, and the lower one applies)",
		DeadLetters: "after the last try to queue orders.failed (policy p with operator policy o); others to exchange dlx with routing key k (argument x-dead-letter-exchange)",
		Purpose:     "work (argument x-curfew-purpose)", Objective: "99% consumed within 30s; 2.0 % missed it in the last minutes, 2.0 times what it allows",
		TimeInQueue: "half of what was consumed in the last minutes up to 1s, 99 in 100 up to 20s",
	}, of(
		amqp.Table{"x-message-ttl": int32(5_400_000), "x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "k", "x-curfew-purpose": "work"},
		policy.Definition{"message-ttl": int64(7_200_000), "retry-park": "{queue}.failed"},
		deadline.Wait{P50: 1000, P99: 20_000, Objective: within, Missed: 0.02, Burn: 2},
	))
	require.Equal(t, "500ms (policy p with operator policy o)", of(amqp.Table{"x-message-ttl": 5000}, policy.Definition{"message-ttl": int64(500)}, deadline.Wait{}).TimeToLive)
	require.Equal(t, "to queue orders/$deadletterqueue (policy p with operator policy o)", of(nil, policy.Definition{"dead-letter-queue": true}, deadline.Wait{}).DeadLetters)
}
