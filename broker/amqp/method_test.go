package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var (
	args    = Table{"x-message-ttl": int32(5000)}
	tuning  = Tuning{ChannelMax: 2047, FrameMax: 131072, Heartbeat: 60}
	closing = Closing{ReplyCode: NotFound, ReplyText: "NOT_FOUND - no queue 'q'", ClassID: ClassQueue, MethodID: 10}
	binding = ExchangeBinding{Destination: "d", Source: "s", RoutingKey: "k", NoWait: true, Arguments: args}
)

// samples has every method, with no field at its zero value.
var samples = []Method{
	&ConnectionStart{VersionMajor: 0, VersionMinor: 9, ServerProperties: everyType(), Mechanisms: "PLAIN AMQPLAIN", Locales: "en_US"},
	&ConnectionStartOk{ClientProperties: Table{"product": "x"}, Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest"), Locale: "en_US"},
	&ConnectionSecure{Challenge: []byte{1, 0, 0xff}},
	&ConnectionSecureOk{Response: []byte{}},
	&ConnectionTune{tuning},
	&ConnectionTuneOk{tuning},
	&ConnectionOpen{VirtualHost: "/"},
	&ConnectionOpenOk{},
	&ConnectionClose{closing},
	&ConnectionCloseOk{},
	&ConnectionBlocked{Reason: "low on disk"},
	&ConnectionUnblocked{},
	&ConnectionUpdateSecret{NewSecret: []byte("s3cret"), Reason: "refresh"},
	&ConnectionUpdateSecretOk{},
	&ChannelOpen{},
	&ChannelOpenOk{},
	&ChannelFlow{Active: true},
	&ChannelFlowOk{Active: true},
	&ChannelClose{closing},
	&ChannelCloseOk{},
	&ExchangeDeclare{Exchange: "e", Type: "topic", Passive: true, Internal: true, Arguments: args},
	&ExchangeDeclare{Exchange: "e", Type: "topic", Durable: true, AutoDelete: true, NoWait: true, Arguments: Table{}},
	&ExchangeDeclareOk{},
	&ExchangeDelete{Exchange: "e", IfUnused: true},
	&ExchangeDelete{Exchange: "e", NoWait: true},
	&ExchangeDeleteOk{},
	&ExchangeBind{binding},
	&ExchangeBindOk{},
	&ExchangeUnbind{binding},
	&ExchangeUnbindOk{},
	&QueueDeclare{Queue: "q", Passive: true, Exclusive: true, NoWait: true, Arguments: args},
	&QueueDeclare{Queue: strings.Repeat("q", 255), Durable: true, AutoDelete: true, Arguments: Table{}},
	&QueueDeclareOk{Queue: "q", MessageCount: math.MaxUint32, ConsumerCount: 2},
	&QueueBind{Queue: "q", Exchange: "e", RoutingKey: "a.#", NoWait: true, Arguments: args},
	&QueueBindOk{},
	&QueuePurge{Queue: "q", NoWait: true},
	&QueuePurgeOk{MessageCount: 3},
	&QueueDelete{Queue: "q", IfUnused: true, NoWait: true},
	&QueueDelete{Queue: "q", IfEmpty: true},
	&QueueDeleteOk{MessageCount: 4},
	&QueueUnbind{Queue: "q", Exchange: "e", RoutingKey: "k", Arguments: args},
	&QueueUnbindOk{},
	&BasicQos{PrefetchSize: 1, PrefetchCount: 10, Global: true},
	&BasicQosOk{},
	&BasicConsume{Queue: "q", ConsumerTag: "c", NoLocal: true, Exclusive: true, Arguments: args},
	&BasicConsume{Queue: "q", ConsumerTag: "c", NoAck: true, NoWait: true, Arguments: Table{}},
	&BasicConsumeOk{ConsumerTag: "c"},
	&BasicCancel{ConsumerTag: "c", NoWait: true},
	&BasicCancelOk{ConsumerTag: "c"},
	&BasicPublish{Exchange: "e", RoutingKey: "\xff", Mandatory: true},
	&BasicPublish{Exchange: "e", RoutingKey: "k", Immediate: true},
	&BasicReturn{ReplyCode: NoRoute, ReplyText: "NO_ROUTE", Exchange: "e", RoutingKey: "k"},
	&BasicDeliver{ConsumerTag: "c", DeliveryTag: math.MaxUint64, Redelivered: true, Exchange: "e", RoutingKey: "k"},
	&BasicGet{Queue: "q", NoAck: true},
	&BasicGetOk{DeliveryTag: 1, Redelivered: true, Exchange: "e", RoutingKey: "k", MessageCount: 5},
	&BasicGetEmpty{},
	&BasicAck{DeliveryTag: 1 << 40, Multiple: true},
	&BasicReject{DeliveryTag: 2, Requeue: true},
	&BasicRecoverAsync{Requeue: true},
	&BasicRecover{Requeue: true},
	&BasicRecoverOk{},
	&BasicNack{DeliveryTag: 3, Multiple: true},
	&BasicNack{DeliveryTag: 3, Requeue: true},
	&ConfirmSelect{NoWait: true},
	&ConfirmSelectOk{},
	&TxSelect{},
	&TxSelectOk{},
	&TxCommit{},
	&TxCommitOk{},
	&TxRollback{},
	&TxRollbackOk{},
}

func TestEveryMethodRoundTrips(t *testing.T) {
	seen := map[MethodID]bool{}
	for _, m := range samples {
		t.Run(IDOf(m).String(), func(t *testing.T) {
			seen[IDOf(m)] = true
			frame := AppendMethod([]byte("before"), 0x1234, m)[len("before"):]
			f, _, err := ParseFrame(frame, math.MaxUint32)
			require.NoError(t, err)
			require.Equal(t, uint8(FrameMethod), f.Type)
			require.Equal(t, uint16(0x1234), f.Channel)
			got, err := ParseMethod(f.Payload, Limits{})
			require.NoError(t, err)
			require.Equal(t, m, got)
		})
	}
	for id := range methods {
		require.True(t, seen[id], "no sample of %s", id)
	}
}

func TestMethodCutAnywhereIsRefused(t *testing.T) {
	for _, m := range samples {
		payload := payloadOf(t, AppendMethod(nil, 1, m))
		for cut := range payload {
			_, err := ParseMethod(payload[:cut], Limits{})
			if cut < 4 {
				requireCode(t, FrameError, err, IDOf(m), cut)
				continue
			}
			e := requireCode(t, SyntaxError, err, IDOf(m), cut)
			require.Equal(t, IDOf(m), MethodID(uint32(e.Class)<<16|uint32(e.Method)))
		}
		_, err := ParseMethod(append(payload[:len(payload):len(payload)], 0), Limits{})
		requireCode(t, SyntaxError, err, IDOf(m), "one octet more")
	}
}

func TestMethodDoesNotAliasItsPayload(t *testing.T) {
	for _, m := range samples {
		payload := payloadOf(t, AppendMethod(nil, 1, m))
		got, err := ParseMethod(payload, Limits{})
		require.NoError(t, err)
		clear(payload)
		require.Equal(t, m, got)
	}
}

func TestUnknownMethod(t *testing.T) {
	for _, id := range []MethodID{0, 30<<16 | 10, ClassBasic<<16 | 41, ClassExchange<<16 | 41, math.MaxUint32} {
		_, err := ParseMethod(binary.BigEndian.AppendUint32(nil, uint32(id)), Limits{})
		e := requireCode(t, NotImplemented, err)
		want := fmt.Sprintf("NOT_IMPLEMENTED - unknown method %d.%d", id.Class(), id.Method())
		require.Equal(t, want, e.Text)
		require.Equal(t, id.Class(), e.Class)
		require.Equal(t, id.Method(), e.Method)
	}
}

func TestReservedFieldsAreIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		want    Method
	}{
		"channel.open":     {"\x00\x14\x00\x0a\x03oob", &ChannelOpen{}},
		"channel.open-ok":  {"\x00\x14\x00\x0b\x00\x00\x00\x02id", &ChannelOpenOk{}},
		"connection.open":  {"\x00\x0a\x00\x28\x01/\x04caps\x01", &ConnectionOpen{VirtualHost: "/"}},
		"queue.purge":      {"\x00\x32\x00\x1e\x12\x34\x01q\xfe", &QueuePurge{Queue: "q"}},
		"basic.ack":        {"\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x07\xfe", &BasicAck{DeliveryTag: 7}},
		"basic.get-empty":  {"\x00\x3c\x00\x48\x01c", &BasicGetEmpty{}},
		"exchange.declare": {"\x00\x28\x00\x0a\xff\xff\x01e\x06fanout\xe0\x00\x00\x00\x00", &ExchangeDeclare{Exchange: "e", Type: "fanout", Arguments: Table{}}},
	} {
		got, err := ParseMethod([]byte(c.payload), Limits{})
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestNamesMustBeUTF8(t *testing.T) {
	_, err := ParseMethod([]byte("\x00\x32\x00\x1e\x00\x00\x01\xff\x00"), Limits{})
	e := requireCode(t, FrameError, err)
	require.Equal(t, "FRAME_ERROR - Malformed UTF-8 in shortstr", e.Text)
	require.Equal(t, uint16(ClassQueue), e.Class)
}

func TestMethodTableLimits(t *testing.T) {
	deep := Table{}
	for range defaultDepth - 1 {
		deep = Table{"t": deep}
	}
	payload := payloadOf(t, AppendMethod(nil, 0, &ConnectionStartOk{ClientProperties: deep}))
	_, err := ParseMethod(payload, Limits{})
	require.NoError(t, err)
	_, err = ParseMethod(payload, Limits{Depth: 4})
	e := requireCode(t, SyntaxError, err)
	require.Equal(t, "SYNTAX_ERROR - malformed table: nested deeper than 4 levels", e.Text)
	require.Equal(t, ConnectionStartOkID.Method(), e.Method)
}

func TestTextsAreCutToAShortString(t *testing.T) {
	long := strings.Repeat("x", 254) + "é and more"
	for _, m := range []Method{
		&ConnectionClose{Closing{ReplyText: long}}, &ChannelClose{Closing{ReplyText: long}},
		&BasicReturn{ReplyText: long}, &ConnectionBlocked{Reason: long},
	} {
		got, err := ParseMethod(payloadOf(t, AppendMethod(nil, 1, m)), Limits{})
		require.NoError(t, err)
		text := reflect.ValueOf(got).Elem().FieldByName("ReplyText")
		if !text.IsValid() {
			text = reflect.ValueOf(got).Elem().FieldByName("Reason")
		}
		require.Equal(t, long[:254], text.String(), "cut before the rune that does not fit")
		require.True(t, utf8.ValidString(text.String()))
	}
	require.Equal(t, long[:255], cutText(long[:255]))
	require.Len(t, cutText(strings.Repeat("\x80", 300)), 251)
}

func TestLongNamePanics(t *testing.T) {
	long := strings.Repeat("x", 256)
	require.Panics(t, func() { AppendMethod(nil, 1, &QueueDeclare{Queue: long}) })
	require.Panics(t, func() { AppendDeliver(nil, 1, long, 1, false, nil, nil) })
	require.Panics(t, func() { AppendGetOk(nil, 1, 1, false, []byte(long), nil, 0) })
	require.Panics(t, func() { AppendReturn(nil, 1, NoRoute, "", nil, []byte(long)) })
}
