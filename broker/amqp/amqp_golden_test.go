package amqp

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func octets(t *testing.T, spaced string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(spaced, " ", ""))
	require.NoError(t, err)
	return b
}

// The frames are written from the grammar of AMQP 0-9-1 §4.2, with a space between fields,
// so that a mistake made in both parse and append is found.
func TestGoldenMethods(t *testing.T) {
	for spaced, m := range map[string]Method{
		"01 0001 00000005 0014 000a 00 ce":                           &ChannelOpen{},
		"01 0001 00000008 0014 000b 00000000 ce":                     &ChannelOpenOk{},
		"01 0000 0000000c 000a 001f 07ff 00020000 003c ce":           &ConnectionTuneOk{tuning},
		"01 0000 00000008 000a 0028 01 2f 00 00 ce":                  &ConnectionOpen{VirtualHost: "/"},
		"01 0000 0000000e 000a 0032 0140 03 627965 0000 0000 ce":     &ConnectionClose{Closing{ReplyCode: 320, ReplyText: "bye"}},
		"01 0001 0000000d 003c 0050 0000000000000007 01 ce":          &BasicAck{DeliveryTag: 7, Multiple: true},
		"01 0001 0000000d 003c 0078 0000000000000007 02 ce":          &BasicNack{DeliveryTag: 7, Requeue: true},
		"01 0001 0000000d 003c 005a 0000000000000007 01 ce":          &BasicReject{DeliveryTag: 7, Requeue: true},
		"01 0001 0000000a 003c 0028 0000 00 01 71 01 ce":             &BasicPublish{RoutingKey: "q", Mandatory: true},
		"01 0001 0000000b 003c 000a 00000000 000a 00 ce":             &BasicQos{PrefetchCount: 10},
		"01 0001 00000005 0055 000a 01 ce":                           &ConfirmSelect{NoWait: true},
		"01 0001 00000004 0028 0033 ce":                              &ExchangeUnbindOk{},
		"01 0001 0000000e 0032 000b 01 71 00000003 00000002 ce":      &QueueDeclareOk{Queue: "q", MessageCount: 3, ConsumerCount: 2},
		"01 0001 00000020 0032 000a 0000 01 71 12 00000013" + xttl:   &QueueDeclare{Queue: "q", Durable: true, NoWait: true, Arguments: args},
		"01 0001 0000000e 003c 0014 0000 01 71 00 02 00000000 ce":    &BasicConsume{Queue: "q", NoAck: true, Arguments: Table{}},
		"01 0001 0000000d 0028 0014 0000 05 616c657274 00 ce":        &ExchangeDelete{Exchange: "alert"},
		"01 0000 00000010 000a 003c 0b 6c6f77206f6e206469736b ce":    &ConnectionBlocked{Reason: "low on disk"},
		"01 0001 0000000e 003c 0032 0138 00 01 65 04 61 2e 62 63 ce": &BasicReturn{ReplyCode: 312, Exchange: "e", RoutingKey: "a.bc"},
	} {
		frame := octets(t, spaced)
		channel := uint16(frame[2])
		require.Equal(t, frame, AppendMethod(nil, channel, m), IDOf(m))
		got, err := ParseMethod(payloadOf(t, frame), Limits{})
		require.NoError(t, err, IDOf(m))
		require.Equal(t, m, got)
	}
}

// xttl is the entry x-message-ttl = int32 5000, and a frame-end.
const xttl = " 0d 782d6d6573736167652d74746c 49 00001388 ce"

func TestGoldenTable(t *testing.T) {
	for spaced, table := range map[string]Table{
		"00000000":                              {},
		"00000004 01 61 74 01":                  {"a": true},
		"00000004 01 61 62 ff":                  {"a": int8(-1)},
		"00000004 01 61 42 ff":                  {"a": uint8(255)},
		"00000005 01 61 73 fffe":                {"a": int16(-2)},
		"00000005 01 61 75 fffe":                {"a": uint16(65534)},
		"00000007 01 61 49 fffffffe":            {"a": int32(-2)},
		"00000007 01 61 69 fffffffe":            {"a": uint32(math.MaxUint32 - 1)},
		"0000000b 01 61 6c fffffffffffffffe":    {"a": int64(-2)},
		"00000007 01 61 66 3fc00000":            {"a": float32(1.5)},
		"0000000b 01 61 64 3ff8000000000000":    {"a": 1.5},
		"00000008 01 61 44 02 ffffff85":         {"a": Decimal{Scale: 2, Value: -123}},
		"0000000a 01 61 53 00000003 ff0062":     {"a": "\xff\x00b"},
		"0000000a 01 61 78 00000003 ff0062":     {"a": []byte("\xff\x00b")},
		"0000000b 01 61 54 000000006553f100":    {"a": Timestamp(1_700_000_000)},
		"00000003 01 61 56":                     {"a": nil},
		"0000000b 01 61 46 00000004 01 62 7400": {"a": Table{"b": false}},
		"0000000a 01 61 41 00000003 56 7401":    {"a": []any{nil, true}},
		"00000008 01 61 7401 01 62 7400":        {"a": true, "b": false},
		"00000003 00 7401":                      {"": true},
	} {
		raw := octets(t, spaced)
		require.Equal(t, raw, AppendTable(nil, table), spaced)
		got, rest, err := ParseTable(append(raw, 1, 2), Limits{})
		require.NoError(t, err, spaced)
		require.Equal(t, table, got)
		require.Equal(t, []byte{1, 2}, rest)
		require.NoError(t, ValidateTable(raw, Limits{}))
	}
}

func TestGoldenContent(t *testing.T) {
	props := octets(t, "1900 02 09 04 35303030") // delivery-mode, priority, expiration
	p := Properties{DeliveryMode: 2, Priority: 9, Expiration: "5000"}
	require.Equal(t, props, p.Append(nil))
	want := octets(t, "02 0001 00000015 003c 0000 0000000000000003"+hex.EncodeToString(props)+"ce"+
		"03 0001 00000003 616263 ce")
	require.Equal(t, want, AppendContent(nil, 1, props, []byte("abc"), MinFrameSize))
}

func TestGoldenDeliveries(t *testing.T) {
	name := []byte("e")
	key := []byte("k")
	require.Equal(t,
		octets(t, "01 0001 00000013 003c 003c 01 63 0000000000000002 01 01 65 01 6b ce"),
		AppendDeliver(nil, 1, "c", 2, true, name, key))
	require.Equal(t,
		octets(t, "01 0001 00000015 003c 0047 0000000000000002 00 01 65 01 6b 00000009 ce"),
		AppendGetOk(nil, 1, 2, false, name, key, 9))
	require.Equal(t,
		octets(t, "01 0001 00000013 003c 0032 0138 08 4e4f5f524f555445 01 65 01 6b ce"),
		AppendReturn(nil, 1, NoRoute, "NO_ROUTE", name, key))
}
