package deadletters_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/queue"
)

// TestResend: what a person made of a dead letter is published, and the letter is gone; a mistake leaves it.
func TestResend(t *testing.T) {
	d := newDesk(t)
	d.publish("", "q", "wrong", amqp.Properties{Expiration: "60000", MessageID: "m", Headers: amqp.Table{"tenant": "a"}})
	d.expire(d.q)
	seq := d.queued(d.dlq)[0].Seq
	draft, ok, err := deadletters.DraftOf(d.b, d.dlq, seq)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, "q", draft.RoutingKey)
	assert.Equal(t, "wrong", string(draft.Body))
	assert.Contains(t, string(draft.Properties), `"expiration": "60000"`)
	assert.NotContains(t, string(draft.Properties), "death")

	resend := func(change func(*deadletters.Draft)) (deadletters.SkipReason, error) {
		one := draft
		change(&one)
		return deadletters.Resend(d.b, d.p, d.dlq, seq, &one)
	}
	for _, mistake := range []string{"", "{", `{"expiraton": "1"}`, `{"headers": {"a": {"no type": 1}}}`, `{"message_id": "` + strings.Repeat("x", 256) + `"}`, `{"expiration": "soon"}`} {
		_, err = resend(func(one *deadletters.Draft) { one.Properties = []byte(mistake) })
		assert.Error(t, err, mistake)
	}
	left, err := resend(func(one *deadletters.Draft) { one.RoutingKey = "nowhere" })
	assert.NoError(t, err)
	assert.Equal(t, deadletters.SkippedUnroutable, left)
	assert.Equal(t, []string{"wrong"}, d.bodies(d.dlq))

	left, err = resend(func(one *deadletters.Draft) {
		one.Body = []byte("right")
		one.Properties = []byte(strings.NewReplacer("60000", "70000", `"tenant"`, `"customer"`).Replace(string(one.Properties)))
	})
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Empty(t, d.bodies(d.dlq))
	assert.Equal(t, []string{"right"}, d.bodies(d.q))
	p, err := d.queued(d.q)[0].Decode()
	require.NoError(t, err)
	assert.Equal(t, "70000", p.Expiration)
	assert.Equal(t, amqp.Table{"customer": "a", "x-curfew-replays": int64(1)}, p.Headers)

	left, err = resend(func(*deadletters.Draft) {})
	require.NoError(t, err)
	assert.Equal(t, deadletters.SkippedGone, left, "once")
	_, ok, _ = deadletters.DraftOf(d.b, d.dlq, seq)
	assert.False(t, ok)
}

// TestResendOfDeflated: with zlib's header or without, as the body was.
func TestResendOfDeflated(t *testing.T) {
	for _, kind := range []string{"deflate", "raw"} {
		d := newDesk(t)
		d.publish("", "q", packed(t, kind, "wrong"), amqp.Properties{ContentEncoding: "deflate"})
		d.expire(d.q)
		seq := d.queued(d.dlq)[0].Seq
		draft, _, err := deadletters.DraftOf(d.b, d.dlq, seq)
		require.NoError(t, err)
		require.True(t, draft.Unpacked)
		require.Equal(t, "wrong", string(draft.Body))
		draft.Body = []byte("right")
		left, err := deadletters.Resend(d.b, d.p, d.dlq, seq, &draft)
		require.NoError(t, err)
		require.Empty(t, left)
		require.Equal(t, []string{packed(t, kind, "right")}, d.bodies(d.q), kind)
	}
}

// TestDraftOfWhatNeverDied goes to where it came from; one that a consumer holds stays with the consumer.
func TestDraftOfWhatNeverDied(t *testing.T) {
	d := newDesk(t)
	d.publish("", "dlq", "m", amqp.Properties{Headers: amqp.Table{"html": "<a>&b"}, Has: amqp.HasHeaders})
	seq := d.queued(d.dlq)[0].Seq
	draft, ok, err := deadletters.DraftOf(d.b, d.dlq, seq)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, "dlq", draft.RoutingKey)
	assert.Contains(t, string(draft.Properties), `"<a>&b"`, "as it was typed")
	left, err := deadletters.Resend(d.b, d.p, d.dlq, seq, &draft)
	require.NoError(t, err)
	assert.Equal(t, deadletters.SkippedBack, left)

	found, err := d.dlq.Messages.Get(false, func(*broker.Delivery) {})
	require.NoError(t, err)
	require.True(t, found)
	_, ok, err = deadletters.DraftOf(d.b, d.dlq, seq)
	require.NoError(t, err)
	assert.False(t, ok)
	assert.NotEqual(t, queue.Ready, d.queued(d.dlq)[0].State)
}
