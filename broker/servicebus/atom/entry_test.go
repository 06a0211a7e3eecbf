package atom

import (
	"encoding/xml"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/servicebus"
)

func TestDurations(t *testing.T) {
	for millis, text := range map[int64]string{
		0: "PT0S", 1: "PT0.001S", 1500: "PT1.500S", 60_000: "PT1M", 90_000: "PT1M30S", 3_600_000: "PT1H",
		86_400_000: "P1D", 93_600_000: "P1DT2H", 86_400_001: "P1DT0.001S",
	} {
		assert.Equal(t, text, duration(millis, forever))
		back, err := servicebus.ParseDuration(text)
		require.NoError(t, err)
		assert.Equal(t, millis, back, text)
	}
	assert.Equal(t, forever, duration(nil, forever))
}

func TestInstants(t *testing.T) {
	assert.Equal(t, zeroTime, instant(0))
	assert.Equal(t, "2026-11-28T00:15:00.007Z", instant(1_795_824_900_007))
}

// TestUpdates: what an update leaves out stays, what it would change is named.
func TestUpdates(t *testing.T) {
	yes, no := true, false
	was := entity{XMLName: xml.Name{Local: "QueueDescription"}, LockDuration: "PT1M", MaxDeliveryCount: 10, DeadLetteringOnMessageExpiration: &yes, RequiresSession: &no}
	was.settings(amqp.Table{"x-message-ttl": int64(3_600_000), createdArg: int64(1_795_824_900_007)})
	assert.Equal(t, "2026-11-28T00:15:00.007Z", was.CreatedAt)
	assert.Equal(t, was.CreatedAt, was.UpdatedAt)
	for _, x := range []struct {
		name   string
		change entity
		is     string
	}{
		{"", entity{}, ""},
		{"", was, ""},
		{"", entity{LockDuration: "PT60S", DefaultMessageTimeToLive: "PT60M0S", AutoDeleteOnIdle: "P4000D", DeadLetteringOnMessageExpiration: &yes, RequiresSession: &no}, ""},
		{"LockDuration", entity{LockDuration: "PT2M"}, "PT1M"},
		{"LockDuration", entity{LockDuration: "soon"}, "PT1M"},
		{"DefaultMessageTimeToLive", entity{DefaultMessageTimeToLive: forever}, "PT1H"},
		{"AutoDeleteOnIdle", entity{AutoDeleteOnIdle: "PT10M"}, forever},
		{"MaxDeliveryCount", entity{MaxDeliveryCount: 11}, "10"},
		{"DeadLetteringOnMessageExpiration", entity{DeadLetteringOnMessageExpiration: &no}, "true"},
		{"RequiresSession", entity{RequiresSession: &yes}, "false"},
		{"RequiresDuplicateDetection", entity{RequiresDuplicateDetection: &yes}, "false"},
		{"EnablePartitioning", entity{EnablePartitioning: &yes}, "false"},
		{"Status", entity{Status: "Disabled"}, "Active"},
		{"ForwardTo", entity{ForwardTo: "q"}, "not set"},
		{"ForwardDeadLetteredMessagesTo", entity{ForwardDeadLetteredMessagesTo: "q"}, "not set"},
	} {
		x.change.XMLName.Local = "QueueDescription"
		want := ""
		if x.name != "" {
			want = "The value for the " + x.name + " property of an existing Queue cannot be changed. It is " + x.is + "."
		}
		assert.Equal(t, want, x.change.changes(&was))
	}
	topic := entity{XMLName: xml.Name{Local: "TopicDescription"}}
	assert.Equal(t, "the entity is a Queue", topic.changes(&was))
}

func TestWhoIsAnAdministrationClient(t *testing.T) {
	for url, want := range map[string]bool{"/q?api-version=2021-05": true, "/q": false} {
		r := httptest.NewRequest("GET", url, nil)
		assert.False(t, Mine(r))
		r.Header.Set("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
		assert.False(t, Mine(r))
		r.Header.Set("Authorization", "SharedAccessSignature sr=x")
		assert.Equal(t, want, Mine(r))
	}
}
