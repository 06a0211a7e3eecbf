package convert_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
)

// across is a message after it was stored and delivered.
func across(t *testing.T, message []byte) (back []byte, p wire.Properties, body []byte) {
	t.Helper()
	properties, body, _, err := convert.Publish(nil, message, false, false)
	require.NoError(t, err)
	p, err = wire.ParseProperties(properties, wire.Limits{})
	require.NoError(t, err)
	return convert.Append(nil, &convert.Delivery{Exchange: []byte("x"), RoutingKey: []byte("k"), Properties: properties, Body: body}), p, body
}

// TestBareMessage: it comes back octet by octet, however a client has written it.
func TestBareMessage(t *testing.T) {
	subject, contentType := "s", "text/plain"
	properties := &amqp.MessageProperties{MessageID: uint64(7), Subject: &subject, ContentType: &contentType, GroupSequence: new(uint32)}
	for name, m := range map[string]*amqp.Message{
		"data":     {Properties: properties, Data: [][]byte{[]byte("body")}, ApplicationProperties: map[string]any{"k": int64(1)}},
		"long":     {Data: [][]byte{bytes.Repeat([]byte("x"), 1000)}},
		"empty":    {Data: [][]byte{{}}},
		"parts":    {Properties: properties, Data: [][]byte{[]byte("a"), []byte("b")}},
		"value":    {Properties: properties, Value: map[string]any{"a": []any{int32(1), "b"}}},
		"sequence": {Sequence: [][]any{{"a", int64(2)}}},
		"header":   {Header: &amqp.MessageHeader{Durable: true, Priority: 7}, Annotations: amqp.Annotations{"x-a": "b"}, Data: [][]byte{[]byte("body")}},
	} {
		sent, err := m.MarshalBinary()
		require.NoError(t, err, name)
		back, _, _ := across(t, sent)
		was, err := amqp10.Split(sent)
		require.NoError(t, err, name)
		is, err := amqp10.Split(back)
		require.NoError(t, err, name)
		assert.Equal(t, was.Bare, is.Bare, name)
		var read amqp.Message
		assert.NoError(t, read.UnmarshalBinary(back), name)
	}
}

// TestTimesOfOthersClocks: a time to live counts from when the message is enqueued, whatever the clock of its sender says. Only where it is the
// one thing that is said is an instant the deadline, and for Service Bus it never is.
func TestTimesOfOthersClocks(t *testing.T) {
	const day = 24 * time.Hour
	made := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for name, c := range map[string]struct {
		ttl, after time.Duration // after: of absolute-expiry-time; 0: none of the two properties
		bus        bool
		expiration string
		absolute   bool
	}{
		"ttl":                            {ttl: time.Minute, expiration: "60000"},
		"instant":                        {after: time.Minute, absolute: true},
		"both":                           {ttl: time.Minute, after: time.Minute, expiration: "60000"},
		"both, long":                     {ttl: math.MaxUint32 * time.Millisecond, after: 100 * day, expiration: "4294967295"},
		"Service Bus":                    {ttl: time.Minute, after: time.Minute, bus: true, expiration: "60000"},
		"Service Bus, instant":           {after: time.Minute, bus: true},
		"Service Bus, long":              {ttl: math.MaxUint32 * time.Millisecond, after: 100 * day, bus: true, expiration: "8640000000"},
		"Service Bus, as long as can be": {ttl: math.MaxUint32 * time.Millisecond, bus: true, expiration: "4294967295"},
		"Service Bus, longest":           {ttl: math.MaxUint32 * time.Millisecond, after: 100 * 365 * day, bus: true, expiration: "315360000000"},
	} {
		m := amqp.Message{Header: &amqp.MessageHeader{TTL: c.ttl}, Properties: &amqp.MessageProperties{}, Data: [][]byte{nil}}
		if c.after != 0 {
			expiry := made.Add(c.after)
			m.Properties.CreationTime, m.Properties.AbsoluteExpiryTime = &made, &expiry
		}
		sent, err := m.MarshalBinary()
		require.NoError(t, err, name)
		properties, _, _, err := convert.Publish(nil, sent, c.bus, false)
		require.NoError(t, err, name)
		p, err := wire.ParseProperties(properties, wire.Limits{})
		require.NoError(t, err, name)
		assert.Equal(t, c.expiration, p.Expiration, name)
		var want any
		if c.absolute {
			want = made.Add(c.after).UnixMilli()
		}
		assert.Equal(t, want, p.Headers["x-expires-at"], name)
	}
}

// TestAppendCopiesNoBody: the body of a message whose head is kept goes into the frame, and nowhere else.
func TestAppendCopiesNoBody(t *testing.T) {
	subject := "kept"
	m := &amqp.Message{Properties: &amqp.MessageProperties{MessageID: "a", Subject: &subject}, Data: [][]byte{make([]byte, 1<<20)}}
	sent, err := m.MarshalBinary()
	require.NoError(t, err)
	properties, body, _, err := convert.Publish(nil, sent, false, false)
	require.NoError(t, err)
	frames := [2][]byte{make([]byte, 0, 2<<20), make([]byte, 0, 2<<20)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	generic := convert.Append(frames[0], &convert.Delivery{Properties: properties, Body: body})
	bus := convert.ServiceBus{Properties: properties, Body: body}
	whole := bus.Append(frames[1])
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<19))
	for _, b := range [][]byte{generic, whole} {
		back, err := amqp10.Split(b)
		require.NoError(t, err)
		assert.Len(t, back.Data, 1<<20)
	}
}

// TestModifyOfWhatIsNotOneMessage: a client of 0-9-1 can say of any body that it is one of AMQP 1.0. It stays as it is, and so does a
// message that would get more headers than a client may give it.
func TestModifyOfWhatIsNotOneMessage(t *testing.T) {
	change := amqp10.Map{{Key: "a", Value: "b"}}
	for _, body := range []string{"", "\x00\x53\x73\x45", "\x00\x53\x73\x45\x00\x53\x75\xa0\x01x\x00\x53\x78\xc1\x01\x00", "\x00\x53\x75\xa0\x01x\x00\x53\x78\xc1\x01\x00", "\x00"} {
		for _, p := range []wire.Properties{{Type: "amqp-1.0"}, {Type: "amqp-1.0", MessageID: "m"}, {MessageID: "m"}} {
			require.NotPanics(t, func() { convert.Modify(p.Append(nil), []byte(body), change) }, "%x %+v", body, p)
		}
	}
	plain := wire.Properties{MessageID: "m"}
	require.NotNil(t, convert.Modify(plain.Append(nil), []byte("x"), change))
	var many amqp10.Map
	for i := range 1100 {
		many = append(many, amqp10.Entry{Key: fmt.Sprint(i)})
	}
	require.Nil(t, convert.Modify(plain.Append(nil), []byte("x"), many))
}
