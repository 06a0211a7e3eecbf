package amqp10_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp10"
)

func TestValuesRoundTrip(t *testing.T) {
	for _, v := range []any{
		nil, true, false, uint8(7), int8(-7), uint16(300), int16(-300), uint32(0), uint32(9), uint32(1 << 30), uint64(0), uint64(9), uint64(1 << 60),
		int32(-5), int64(-5), float32(1.5), 2.5, amqp10.Char('ä'), amqp10.Timestamp(-1), amqp10.UUID{1, 15: 2}, []byte("b"), bytes.Repeat([]byte("b"), 300), "text",
		amqp10.Symbol("s"), amqp10.List{}, amqp10.List{"a", amqp10.List{uint8(1)}}, amqp10.Map{{Key: "k", Value: int32(1)}, {Key: amqp10.Symbol("s"), Value: nil}},
		amqp10.Array{amqp10.Symbol("PLAIN"), amqp10.Symbol("EXTERNAL")}, amqp10.Described{Descriptor: amqp10.Symbol("x:y"), Value: "v"},
		amqp10.Decimal{Code: 0x74, Data: [16]byte{1, 2, 3, 4}}, amqp10.Decimal{Code: 0x84, Data: [16]byte{7: 1}}, amqp10.Decimal{Code: 0x94, Data: [16]byte{15: 1}},
	} {
		got, rest, err := amqp10.Parse(append(amqp10.Append(nil, v), 0xff))
		require.NoError(t, err, "%T %v", v, v)
		assert.Equal(t, v, got)
		assert.Equal(t, []byte{0xff}, rest, "%T %v", v, v)
	}
}

// TestValuesOfOthers: encodings that are not written here, from the tables of AMQP 1.0 §1.6.
func TestValuesOfOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		wire []byte
		want any
	}{
		{"boolean octet", []byte{0x56, 1}, true},
		{"smallint", []byte{0x54, 0xff}, int32(-1)},
		{"smalllong", []byte{0x55, 0xfe}, int64(-2)},
		{"ulong in full", []byte{0x80, 0, 0, 0, 0, 0, 0, 1, 0}, uint64(256)},
		{"short list", []byte{0xc0, 3, 1, 0x50, 9}, amqp10.List{uint8(9)}},
		{"short map", []byte{0xc1, 5, 2, 0xa1, 1, 'k', 0x41}, amqp10.Map{{Key: "k", Value: true}}},
		{"array of longs", []byte{0xe0, 4, 2, 0x55, 1, 2}, amqp10.Array{int64(1), int64(2)}},
		{"long string", []byte{0xb1, 0, 0, 0, 1, 'x'}, "x"},
	} {
		got, rest, err := amqp10.Parse(c.wire)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
		assert.Empty(t, rest, c.name)
	}
}

func TestHostileValues(t *testing.T) {
	deep := bytes.Repeat([]byte{0x00}, 64)
	lists := []byte{0x45}
	for range 20 {
		lists = append([]byte{0xc0, byte(len(lists) + 1), 1}, lists...)
	}
	for name, wire := range map[string][]byte{
		"nothing":                    {},
		"descriptors of descriptors": deep,
		"too deep":                   lists,
		"four billion nulls":         {0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40},
		"a million nulls":            {0xf0, 0, 0, 0, 5, 0, 0x0f, 0x42, 0x40, 0x40},
		"longer than its frame":      {0xb0, 0xff, 0xff, 0xff, 0xff, 1},
		"a key without a value":      {0xc1, 3, 1, 0x50, 1},
		"octets behind the list":     {0xc0, 3, 0, 0x50, 1},
		"no such constructor":        {0x57, 1},
		"a list without a count":     {0xd0, 0, 0, 0, 0},
	} {
		_, _, err := amqp10.Parse(wire)
		assert.ErrorIs(t, err, amqp10.ErrMalformed, name)
	}
}

// performatives are one of each, with every kind of field.
var performatives = []amqp10.Performative{
	&amqp10.Open{ContainerID: "c", Hostname: "vhost:v", MaxFrameSize: 65536, ChannelMax: 9, IdleTimeout: amqp10.Uint(30000), Properties: amqp10.Map{{Key: amqp10.Symbol("product"), Value: "p"}}},
	&amqp10.Open{MaxFrameSize: amqp10.Unlimited, ChannelMax: 65535},
	&amqp10.Begin{RemoteChannel: amqp10.Uint(0), NextOutgoingID: 1, IncomingWindow: 2, OutgoingWindow: 3, HandleMax: 255, Properties: amqp10.Map{}},
	&amqp10.Attach{
		Name: "l", Handle: 1, Role: amqp10.RoleReceiver, SenderMode: amqp10.SendSettled, ReceiverMode: amqp10.ReceiveSecond,
		Source: &amqp10.Source{Address: "/queues/q", DefaultOutcome: amqp10.Described{Descriptor: amqp10.StateReleased, Value: amqp10.List{}}, Outcomes: amqp10.Array{amqp10.Symbol("amqp:accepted:list")}},
		Target: &amqp10.Target{}, InitialDeliveryCount: amqp10.Uint(0), MaxMessageSize: 1 << 40,
	},
	&amqp10.Attach{Name: "refused", SenderMode: amqp10.SendMixed},
	&amqp10.Flow{NextIncomingID: amqp10.Uint(0), IncomingWindow: 1, Handle: amqp10.Uint(0), LinkCredit: amqp10.Uint(100), Drain: true, Echo: true},
	&amqp10.Transfer{Handle: 3, DeliveryID: amqp10.Uint(0), DeliveryTag: []byte{}, MessageFormat: amqp10.Uint(0), Settled: true, More: true, State: &amqp10.State{Kind: amqp10.StateAccepted}},
	&amqp10.Disposition{Role: true, First: 1, Last: amqp10.Uint(5), Settled: true, State: &amqp10.State{Kind: amqp10.StateRejected, Error: &amqp10.Error{Condition: "amqp:not-found", Description: "no"}}},
	&amqp10.Disposition{First: 1, State: &amqp10.State{Kind: amqp10.StateModified, DeliveryFailed: true, UndeliverableHere: true, Annotations: amqp10.Map{{Key: amqp10.Symbol("x-a"), Value: "b"}}}},
	&amqp10.Detach{Closed: true, Error: &amqp10.Error{Condition: "amqp:not-found"}},
	&amqp10.End{}, &amqp10.Close{Ending: amqp10.Ending{Error: &amqp10.Error{Condition: "amqp:connection:forced", Description: "x"}}},
	&amqp10.SASLMechanisms{Mechanisms: amqp10.Array{amqp10.Symbol("PLAIN")}},
	&amqp10.SASLInit{Mechanism: "PLAIN", Response: []byte("\x00u\x00p"), Hostname: "h"},
	&amqp10.SASLOutcome{Code: 1},
}

func TestPerformativesRoundTrip(t *testing.T) {
	for _, p := range performatives {
		wire := amqp10.AppendFrame(nil, 5, p, []byte("payload"))
		f, n, err := amqp10.ParseFrame(wire, amqp10.MinFrameSize)
		require.NoError(t, err)
		require.Equal(t, len(wire), n)
		assert.Equal(t, uint16(5), f.Channel)
		got, payload, err := amqp10.ParsePerformative(f.Body)
		require.NoError(t, err, "%T", p)
		assert.Equal(t, p, got)
		assert.Equal(t, "payload", string(payload))
		var fast amqp10.Transfer
		payload, is, err := amqp10.ParseTransfer(f.Body, &fast)
		require.NoError(t, err)
		if want, transfer := p.(*amqp10.Transfer); transfer {
			require.True(t, is)
			assert.Equal(t, *want, fast)
			assert.Equal(t, "payload", string(payload))
			b, start := amqp10.AppendTransfer(nil, 5, want)
			assert.Equal(t, wire, amqp10.EndFrame(append(b, payload...), start))
		} else {
			assert.False(t, is)
		}
	}
}

// TestEachMessageAllocatesNothing: what the codec does for each message.
func TestEachMessageAllocatesNothing(t *testing.T) {
	sent := amqp10.Transfer{Handle: 1, DeliveryID: amqp10.Uint(1 << 20), DeliveryTag: make([]byte, 8), MessageFormat: amqp10.Uint(0)}
	b := make([]byte, 0, 1024)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b, start := amqp10.AppendTransfer(b[:0], 0, &sent)
		at := len(b)
		h := amqp10.Header{Durable: true, Priority: 4}
		b = amqp10.EndFrame(append(amqp10.BeginData(h.Append(b), 2), "ab"...), start)
		var got amqp10.Transfer
		amqp10.ParseTransfer(b[8:], &got)
		m, _ := amqp10.Split(b[at:])
		h.Read(m.Header)
		var p amqp10.Properties
		p.Read(m.Properties)
	}))
}

// TestShortAndLong: lists and maps are written in the shorter encoding that they fit in.
func TestShortAndLong(t *testing.T) {
	for _, n := range []int{0, 1, 252, 253, 254, 255, 256, 1000} {
		for _, v := range []any{amqp10.List{string(make([]byte, n))}, amqp10.Map{{Key: "", Value: make([]byte, n)}}, amqp10.Array{"a", string(make([]byte, n+1))}} {
			wire := amqp10.Append(nil, v)
			got, rest, err := amqp10.Parse(wire)
			require.NoError(t, err)
			assert.Empty(t, rest)
			assert.Equal(t, v, got)
		}
	}
}

// TestWire holds octets to those of the specification, so that a mistake made both ways is seen.
func TestWire(t *testing.T) {
	got := amqp10.AppendPerformative(nil, &amqp10.Disposition{Role: true, First: 1, Settled: true, State: &amqp10.State{Kind: amqp10.StateAccepted}})
	assert.Equal(t, []byte{0, 0x53, 0x15, 0xc0, 10, 5, 0x41, 0x52, 1, 0x40, 0x41, 0, 0x53, 0x24, 0x45}, got)
	// A short list, a symbolic mechanism, trailing fields left out: as go-amqp and rhea write them.
	p, _, err := amqp10.ParsePerformative([]byte{0, 0x53, 0x41, 0xc0, 12, 2, 0xa3, 5, 'P', 'L', 'A', 'I', 'N', 0xa0, 2, 0, 'u'})
	require.NoError(t, err)
	assert.Equal(t, &amqp10.SASLInit{Mechanism: "PLAIN", Response: []byte{0, 'u'}}, p)
	p, _, err = amqp10.ParsePerformative([]byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x18, 0x45})
	require.NoError(t, err)
	assert.Equal(t, &amqp10.Close{}, p)
}

func TestWrongPerformatives(t *testing.T) {
	for name, wire := range map[string][]byte{
		"not described":          {0x45},
		"symbolic descriptor":    {0, 0xa3, 1, 'x', 0x45},
		"unknown":                {0, 0x53, 0x99, 0x45},
		"no list":                {0, 0x53, 0x18, 0x41},
		"fewer fields than told": {0, 0x53, 0x10, 0xc0, 1, 9},
		"a number for a name":    {0, 0x53, 0x10, 0xc0, 3, 1, 0x50, 1},
		"a text for a number":    {0, 0x53, 0x16, 0xc0, 4, 1, 0xa1, 1, 'x'},
		"another part":           {0, 0x53, 0x18, 0xc0, 5, 1, 0, 0x53, 0x28, 0x45},
	} {
		_, _, err := amqp10.ParsePerformative(wire)
		assert.ErrorIs(t, err, amqp10.ErrMalformed, name)
	}
}

func TestCoordinator(t *testing.T) {
	attach := amqp10.AppendPerformative(nil, &amqp10.Attach{Name: "tx", SenderMode: amqp10.SendMixed, Target: &amqp10.Target{}})
	at := bytes.Index(attach, []byte{0, 0x53, 0x29})
	attach[at+2] = 0x30
	p, _, err := amqp10.ParsePerformative(attach)
	require.NoError(t, err)
	assert.True(t, p.(*amqp10.Attach).Target.Coordinator)
}

func TestFrames(t *testing.T) {
	f, n, err := amqp10.ParseFrame(amqp10.Heartbeat, amqp10.MinFrameSize)
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	assert.Empty(t, f.Body)
	_, n, err = amqp10.ParseFrame([]byte{0, 0, 0, 20, 2, 0, 0, 0, 1}, amqp10.MinFrameSize)
	assert.NoError(t, err)
	assert.Zero(t, n, "it is not complete")
	for name, wire := range map[string][]byte{
		"too large":             {0, 0, 3, 0, 2, 0, 0, 0},
		"smaller than its head": {0, 0, 0, 7, 2, 0, 0, 0},
		"offset in the head":    {0, 0, 0, 8, 1, 0, 0, 0},
		"offset behind the end": {0, 0, 0, 8, 3, 0, 0, 0},
		"unknown type":          {0, 0, 0, 8, 2, 2, 0, 0},
	} {
		_, _, err := amqp10.ParseFrame(wire, amqp10.MinFrameSize)
		assert.ErrorIs(t, err, amqp10.ErrFrame, name)
	}
}

// whole is a message with every section.
func whole(body ...[]byte) []byte {
	b := amqp10.AppendPerformative(nil, &amqp10.Header{Durable: true, Priority: 9, TTL: amqp10.Uint(1000), DeliveryCount: 2})
	b = amqp10.AppendSection(b, amqp10.SectionDeliveryAnnotations, amqp10.Map{})
	b = amqp10.AppendSection(b, amqp10.SectionMessageAnnotations, amqp10.Map{{Key: amqp10.Symbol("x-a"), Value: "b"}})
	b = amqp10.AppendPerformative(b, &amqp10.Properties{MessageID: uint64(7), To: "/queues/q", ContentType: "text/plain", CreationTime: amqp10.Timestamp(5), GroupSequence: amqp10.Uint(0)})
	b = amqp10.AppendSection(b, amqp10.SectionApplicationProperties, amqp10.Map{{Key: "k", Value: int64(1)}})
	b = append(b, bytes.Join(body, nil)...)
	return amqp10.AppendSection(b, amqp10.SectionFooter, amqp10.Map{})
}

func TestSplit(t *testing.T) {
	data := amqp10.AppendSection(nil, amqp10.SectionData, []byte("body"))
	value := amqp10.AppendSection(nil, amqp10.SectionValue, "text")
	sequence := amqp10.AppendSection(nil, amqp10.SectionSequence, amqp10.List{"a"})
	for name, c := range map[string]struct {
		body [][]byte
		data []byte
	}{
		"data": {[][]byte{data}, []byte("body")}, "two of data": {[][]byte{data, data}, nil}, "value": {[][]byte{value}, nil},
		"sequences": {[][]byte{sequence, sequence}, nil}, "no body": {nil, nil},
	} {
		m, err := amqp10.Split(whole(c.body...))
		require.NoError(t, err, name)
		body := append(bytes.Join(c.body, nil), m.Footer...)
		assert.Equal(t, amqp10.AppendSection(nil, amqp10.SectionFooter, amqp10.Map{}), m.Footer, name)
		assert.Equal(t, string(body), string(m.Body), name)
		assert.Equal(t, c.data, m.Data, name)
		assert.True(t, bytes.HasPrefix(m.Bare, []byte{0, 0x53, 0x73}) && bytes.HasSuffix(m.Bare, body), name)
		var h amqp10.Header
		require.NoError(t, h.Read(m.Header))
		assert.Equal(t, amqp10.Header{Durable: true, Priority: 9, TTL: amqp10.Uint(1000), DeliveryCount: 2}, h)
		var p amqp10.Properties
		require.NoError(t, p.Read(m.Properties))
		assert.Equal(t, amqp10.Properties{MessageID: uint64(7), To: "/queues/q", ContentType: "text/plain", CreationTime: amqp10.Timestamp(5), GroupSequence: amqp10.Uint(0)}, p)
		v, _, err := amqp10.Parse(m.ApplicationProperties)
		require.NoError(t, err)
		assert.Equal(t, int64(1), v.(amqp10.Map).Get("k"))
	}
	var h amqp10.Header
	require.NoError(t, h.Read(nil))
	assert.Equal(t, amqp10.Header{Priority: 4}, h)
}

func TestWrongSections(t *testing.T) {
	data := amqp10.AppendSection(nil, amqp10.SectionData, []byte("body"))
	value := amqp10.AppendSection(nil, amqp10.SectionValue, "text")
	footer := amqp10.AppendSection(nil, amqp10.SectionFooter, amqp10.Map{})
	for name, wire := range map[string][]byte{
		"two values":          bytes.Join([][]byte{value, value}, nil),
		"two kinds of body":   bytes.Join([][]byte{data, value}, nil),
		"two footers":         bytes.Join([][]byte{footer, data, footer}, nil),
		"a body after it all": bytes.Join([][]byte{data, footer, data}, nil),
		"data that is a text": amqp10.AppendSection(nil, amqp10.SectionData, "text"),
		"no section":          amqp10.AppendSection(nil, 0x10, "text"),
		"cut off":             data[:len(data)-1],
	} {
		_, err := amqp10.Split(wire)
		assert.ErrorIs(t, err, amqp10.ErrMalformed, name)
	}
}

// TestSplitCopiesNothing: the body of a message is that of the frame.
func TestSplitCopiesNothing(t *testing.T) {
	wire := amqp10.AppendSection(nil, amqp10.SectionData, bytes.Repeat([]byte("x"), 1<<20))
	assert.Zero(t, testing.AllocsPerRun(10, func() { amqp10.Split(wire) }))
}
