package servicebus_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp10"
	"curfew/broker/servicebus"
)

func sign(name, key, resource string, until time.Time) string {
	sr, se := url.QueryEscape(resource), fmt.Sprint(until.Unix())
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(sr + "\n" + se))
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%s&skn=%s", sr, url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))), se, name)
}

// TestKeys: a signature counts if a known key made it, for the resource or one above it, until it expires.
func TestKeys(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	later := now.Add(time.Minute)
	keys, err := servicebus.ParseKeys("root=cm9vdA==, reader=abc:listen,both=x:listen+send")
	require.NoError(t, err)
	o := servicebus.Options{Keys: keys}
	const queue = "amqp://host:5672/Queue"
	for name, x := range map[string]struct {
		token, address string
		claims         servicebus.Claims
		why            string
	}{
		"all":            {sign("root", "cm9vdA==", queue, later), queue, servicebus.Listen | servicebus.Send | servicebus.Manage, ""},
		"listen":         {sign("reader", "abc", queue, later), queue, servicebus.Listen, ""},
		"two":            {sign("both", "x", queue, later), queue, servicebus.Listen | servicebus.Send, ""},
		"namespace":      {sign("reader", "abc", "sb://host/", later), queue + "/$management", servicebus.Listen, ""},
		"host":           {sign("reader", "abc", "host", later), queue, servicebus.Listen, ""},
		"other case":     {sign("reader", "abc", "sb://host/queue", later), queue, servicebus.Listen, ""},
		"other entity":   {sign("reader", "abc", "sb://host/que", later), queue, 0, "another entity"},
		"wrong key":      {sign("reader", "abd", queue, later), queue, 0, "signature"},
		"unknown key":    {sign("nobody", "abc", queue, later), queue, 0, "signature"},
		"expired":        {sign("reader", "abc", queue, now), queue, 0, "expired"},
		"a JSON token":   {"eyJ", queue, 0, "not a shared access signature"},
		"without expiry": {"SharedAccessSignature sr=x&sig=y&skn=reader", queue, 0, "not a shared access signature"},
	} {
		claims, until, err := o.Check(x.token, x.address, true, now)
		if x.why != "" {
			assert.ErrorContains(t, err, x.why, name)
			continue
		}
		assert.NoError(t, err, name)
		assert.Equal(t, x.claims, claims, name)
		assert.Equal(t, later, until, name)
	}
	o = servicebus.Options{Emulator: true}
	_, _, err = o.Check(sign("any", "any", queue, later), queue, true, now)
	assert.NoError(t, err)
	_, _, err = o.Check(sign("any", "any", queue, later), queue, false, now)
	assert.ErrorContains(t, err, "signature", "the emulator is for this machine only")
	for _, bad := range []string{"x", "=y", "x=", "x=y:read"} {
		_, err = servicebus.ParseKeys(bad)
		assert.Error(t, err, bad)
	}
}

// TestNamed: only names that nobody else can give to this machine count.
func TestNamed(t *testing.T) {
	o := servicebus.Options{Hosts: []string{"bus.test", ""}}
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:80": true, "127.0.0.77:80": true, "::1": true, "[::1]": true, "[::1]:80": true, "Bus.Test:5300": true,
		"": false, ":80": false, "localhost.page.example": false, "page.example:80": false, "10.0.0.1": false, "0.0.0.0": false,
	} {
		assert.Equal(t, want, o.Named(host), host)
	}
}

// TestLockToken: it goes to a client and back.
func TestLockToken(t *testing.T) {
	token := servicebus.LockToken(servicebus.TokenText(7, amqp10.UUID{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 1, 9}), 0x109)
	assert.Equal(t, amqp10.UUID{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 1, 9}, token)
	assert.Equal(t, [16]byte{4, 3, 2, 1, 6, 5, 8, 7, 0, 0, 0, 0, 0, 0, 1, 9}, servicebus.DeliveryTag(token))
	assert.Equal(t, amqp10.UUID{14: 1, 15: 9}, servicebus.LockToken("", 0x109))
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]int64{
		"PT1M": 60_000, "P14D": 14 * 86_400_000, "P1DT2H3M4.5S": 93_784_500, "PT0.0001S": 1, "P1Y2M": (365 + 60) * 86_400_000, "P10675199DT2H48M5.4775807S": 922_337_203_685_478,
	} {
		got, err := servicebus.ParseDuration(text)
		assert.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	for _, bad := range []string{"", "P", "PT", "1M", "P1W", "PT1", "P1DT"} {
		_, err := servicebus.ParseDuration(bad)
		assert.Error(t, err, bad)
	}
}

// TestRequest: a request is read, and its answer has what clients look for.
func TestRequest(t *testing.T) {
	b := amqp10.AppendPerformative(nil, &amqp10.Properties{MessageID: "id", ReplyTo: "here"})
	b = amqp10.AppendSection(b, amqp10.SectionApplicationProperties, amqp10.Map{{Key: "operation", Value: "com.microsoft:peek-message"}})
	b = amqp10.AppendSection(b, amqp10.SectionValue, amqp10.Map{{Key: "message-count", Value: int32(3)}, {Key: "numbers", Value: amqp10.Array{int64(1), int64(300)}}})
	r, err := servicebus.ParseRequest(b, false)
	require.NoError(t, err)
	assert.Equal(t, "peek-message", r.Operation())
	assert.Equal(t, int64(3), r.Number("message-count"))
	assert.Equal(t, []any{int64(1), int64(300)}, r.List("numbers"))
	assert.Equal(t, "here", r.ReplyTo)
	m, err := amqp10.Split(r.Message(servicebus.Answer{Status: 404, Description: "none", Condition: "amqp:not-found"}))
	require.NoError(t, err)
	fields, _, err := amqp10.Parse(m.ApplicationProperties)
	require.NoError(t, err)
	assert.Equal(t, amqp10.Map{
		{Key: "statusCode", Value: int32(404)}, {Key: "statusDescription", Value: "none"}, {Key: "errorCondition", Value: amqp10.Symbol("amqp:not-found")},
	}, fields)
	var p amqp10.Properties
	require.NoError(t, p.Read(m.Properties))
	assert.Equal(t, "id", p.CorrelationID)
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte{0, 0x53, 0x77, 0xa1, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := servicebus.ParseRequest(b, true); err == nil {
			_, err := amqp10.Split(r.Message(servicebus.Answer{Status: 200}))
			assert.NoError(t, err)
		}
	})
}
