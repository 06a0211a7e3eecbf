package amqp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
)

func TestAppendWithLong(t *testing.T) {
	for _, p := range []amqp.Properties{
		{},
		{MessageID: "id", DeliveryMode: 2},
		{ContentType: "text/plain", ContentEncoding: "gzip", Expiration: "5"},
		{ContentType: "text/plain", Headers: amqp.Table{"a": "b", "z": amqp.Table{"n": int64(1)}}, AppID: "app"},
		{Has: amqp.HasHeaders | amqp.HasContentType, Headers: amqp.Table{}},
	} {
		raw := p.Append(nil)
		got, err := amqp.ParseProperties(amqp.AppendWithLong([]byte{}, raw, "x-count", 7), amqp.Limits{})
		require.NoError(t, err)
		want, err := amqp.ParseProperties(raw, amqp.Limits{})
		require.NoError(t, err)
		if want.Headers == nil {
			want.Headers = amqp.Table{}
		}
		want.Headers["x-count"], want.Has = int64(7), want.Has|amqp.HasHeaders
		assert.Equal(t, want, got)
	}
	scratch := make([]byte, 0, 128)
	raw := (&amqp.Properties{Headers: amqp.Table{"a": "b"}}).Append(nil)
	assert.Zero(t, testing.AllocsPerRun(100, func() { scratch = amqp.AppendWithLong(scratch[:0], raw, "x-count", 1) }))
}
