package message

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// TestFirstDeathIsWrittenAsRecorded: the short way gives the octets of the general one.
func TestFirstDeathIsWrittenAsRecorded(t *testing.T) {
	text := rapid.StringN(0, 20, 60)
	rapid.Check(t, func(t *rapid.T) {
		p := amqp.Properties{
			Has:         amqp.PropertySet(rapid.Uint16().Draw(t, "has")) &^ 3 &^ amqp.HasHeaders,
			ContentType: text.Draw(t, "type"), ContentEncoding: text.Draw(t, "encoding"),
			DeliveryMode: rapid.Uint8Range(0, 2).Draw(t, "mode"), Priority: rapid.Uint8Range(0, 9).Draw(t, "priority"),
			CorrelationID: text.Draw(t, "correlation"), ReplyTo: text.Draw(t, "reply"), Expiration: text.Draw(t, "expiration"),
			MessageID: text.Draw(t, "id"), Timestamp: amqp.Timestamp(rapid.Uint32().Draw(t, "time")), Type: text.Draw(t, "kind"),
			Headers: rapid.SampledFrom([]amqp.Table{nil, {}, {"traceparent": "00-4bf9", "retries": int32(3), "y": amqp.Table{"z": true}}}).Draw(t, "headers"),
			UserID:  text.Draw(t, "user"), AppID: text.Draw(t, "app"), ClusterID: text.Draw(t, "cluster"),
		}
		raw := p.Append(nil)
		view, err := amqp.ViewProperties(raw)
		require.NoError(t, err)
		src := store.Message{Exchange: []byte(text.Draw(t, "exchange")), RoutingKey: []byte(text.Draw(t, "key")), Properties: raw}
		name := text.Draw(t, "queue")
		reason := rapid.SampledFrom([]queue.Reason{queue.Expired, queue.Rejected, queue.MaxLength, queue.DeliveryLimit}).Draw(t, "reason").String()
		targets := rapid.IntRange(1, 3).Draw(t, "targets")

		parsed, err := amqp.ParseProperties(raw, StoredLimits)
		require.NoError(t, err)
		RecordDeath(&parsed, Death{
			Queue: name, Reason: reason, At: 1_700_000_000,
			Exchange: string(src.Exchange), Keys: OriginalKeys(src.RoutingKey, parsed.Headers, false),
		}, false)
		require.Empty(t, CountCopies(parsed.Headers, parsed.Headers["x-death"].([]any), targets, false))
		headers := AppendFirstDeath(nil, name, reason, src.Exchange, src.RoutingKey, &view, targets, 1_700_000_000)
		short := view.With(nil, raw, headers, nil)
		if p.Headers == nil {
			require.Equal(t, parsed.Append(nil), short)
			return
		}
		again, err := amqp.ParseProperties(short, StoredLimits)
		require.NoError(t, err)
		require.Equal(t, parsed.Append(nil), again.Append(nil), "but for the order of headers")
	})
}

func TestHeadersThatMeanSomething(t *testing.T) {
	for key, want := range map[string]bool{
		"traceparent": false, "retries": false, "CC": true, "BCC": true, "x-death": true, "x-first-death-queue": true,
		ReceiptHeader: true, ExpiresAtHeader: true,
	} {
		require.Equal(t, want, Meaningful(amqp.AppendTable(nil, amqp.Table{"a": int32(1), key: "v"})), key)
	}
	require.False(t, Meaningful(nil))
}
