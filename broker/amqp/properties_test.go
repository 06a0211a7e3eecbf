package amqp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func everyProperty() Properties {
	return Properties{
		Has:             ^undefinedProperties,
		ContentType:     "text/plain",
		ContentEncoding: "gzip",
		Headers:         everyType(),
		DeliveryMode:    2,
		Priority:        9,
		CorrelationID:   "corr",
		ReplyTo:         "amq.rabbitmq.reply-to",
		Expiration:      "5000",
		MessageID:       "id",
		Timestamp:       1_700_000_000,
		Type:            "order",
		UserID:          "guest",
		AppID:           "app",
		ClusterID:       "cluster",
	}
}

func TestEveryPropertyRoundTrips(t *testing.T) {
	want := everyProperty()
	raw := want.Append(nil)
	got, err := ParseProperties(raw, Limits{})
	require.NoError(t, err)
	require.Equal(t, want, got)

	v, err := ViewProperties(raw)
	require.NoError(t, err)
	require.Equal(t, PropertyView{
		Has:             want.Has,
		DeliveryMode:    2,
		Priority:        9,
		Timestamp:       want.Timestamp,
		Headers:         AppendTable(nil, want.Headers),
		ContentType:     []byte("text/plain"),
		ContentEncoding: []byte("gzip"),
		CorrelationID:   []byte("corr"),
		ReplyTo:         []byte("amq.rabbitmq.reply-to"),
		Expiration:      []byte("5000"),
		MessageID:       []byte("id"),
		Type:            []byte("order"),
		UserID:          []byte("guest"),
		AppID:           []byte("app"),
		ClusterID:       []byte("cluster"),
	}, v)

	want.Has = 0
	require.Equal(t, raw, want.Append(nil), "what is not zero is written without being named")
}

func TestEachPropertyAloneKeepsAbsentFromZero(t *testing.T) {
	for flag := HasContentType; flag > undefinedProperties; flag >>= 1 {
		want := Properties{Has: flag}
		if flag == HasHeaders {
			want.Headers = Table{}
		}
		raw := want.Append(nil)
		require.Equal(t, []byte{byte(flag >> 8), byte(flag)}, raw[:2])
		got, err := ParseProperties(raw, Limits{})
		require.NoError(t, err)
		require.Equal(t, want, got)

		v, err := ViewProperties(raw)
		require.NoError(t, err)
		require.Equal(t, flag == HasExpiration, v.Expiration != nil)
		require.Equal(t, flag == HasHeaders, v.Headers != nil)
	}
	var none Properties
	require.Equal(t, []byte{0, 0}, none.Append(nil))
}

func TestMalformedProperties(t *testing.T) {
	p := everyProperty()
	raw := p.Append(nil)
	for cut := range raw {
		_, err := ViewProperties(raw[:cut])
		requireCode(t, SyntaxError, err, cut)
		_, err = ParseProperties(raw[:cut], Limits{})
		requireCode(t, SyntaxError, err, cut)
	}
	for name, bad := range map[string]string{
		"one more":      string(raw) + "\x00",
		"undefined":     "\x00\x02",
		"more flags":    "\x00\x01\x00\x00",
		"headers lie":   "\x20\x00\xff\xff\xff\xff",
		"past the end":  "\x80\x00\x05abc",
		"no expiration": "\x01\x00",
	} {
		_, err := ViewProperties([]byte(bad))
		e := requireCode(t, SyntaxError, err, name)
		require.Equal(t, "SYNTAX_ERROR - malformed content properties", e.Text)
		require.Equal(t, uint16(ClassBasic), e.Class)
	}
	headers := append([]byte{0x20, 0}, lengthed("\x01aZ")...)
	v, err := ViewProperties(headers)
	require.NoError(t, err, "the entries are left to ValidateTable")
	requireCode(t, SyntaxError, ValidateTable(v.Headers, Limits{}))
	_, err = ParseProperties(headers, Limits{})
	requireCode(t, SyntaxError, err)
}

func TestPropertyViewAliasesAndEndsAtItsSlices(t *testing.T) {
	raw := (&Properties{MessageID: "id", Expiration: "60"}).Append(nil)
	v, err := ViewProperties(raw)
	require.NoError(t, err)
	require.Equal(t, len(v.Expiration), cap(v.Expiration))
	raw[3] = '7'
	require.Equal(t, "70", string(v.Expiration))
}

func TestLongPropertyPanics(t *testing.T) {
	p := Properties{ReplyTo: strings.Repeat("x", 256)}
	require.Panics(t, func() { p.Append(nil) })
}
