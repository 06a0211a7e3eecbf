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

// TestUpdates: what an update leaves out stays, and what cannot be changed is named.
func TestUpdates(t *testing.T) {
	yes, no := true, false
	was := entity{XMLName: xml.Name{Local: "QueueDescription"}, LockDuration: "PT1M", MaxDeliveryCount: 10, DeadLetteringOnMessageExpiration: &yes, RequiresSession: &no}
	was.settings(amqp.Table{"x-message-ttl": int64(3_600_000), servicebus.CreatedArg: int64(1_795_824_900_007)})
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
		{"RequiresSession", entity{RequiresSession: &yes}, "false"},
		{"RequiresDuplicateDetection", entity{RequiresDuplicateDetection: &yes}, "false"},
		{"EnablePartitioning", entity{EnablePartitioning: &yes}, "false"},
		{"Status", entity{Status: "Disabled"}, "Active"},
		{"ForwardTo", entity{ForwardTo: "q"}, "not set"},
		{"ForwardDeadLetteredMessagesTo", entity{ForwardDeadLetteredMessagesTo: "q"}, "not set"},
	} {
		x.change.XMLName.Local = "QueueDescription"
		args, err := x.change.changes(&was)
		if assert.Empty(t, args); x.name == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, "The value for the "+x.name+" property of an existing Queue cannot be changed. It is "+x.is+".")
		}
	}
	topic := entity{XMLName: xml.Name{Local: "TopicDescription"}}
	_, err := topic.changes(&was)
	assert.EqualError(t, err, "the entity is a Queue")
	change := entity{XMLName: was.XMLName, LockDuration: "PT2M", DefaultMessageTimeToLive: forever, AutoDeleteOnIdle: "PT10M", MaxDeliveryCount: 11, DeadLetteringOnMessageExpiration: &no}
	args, err := change.changes(&was)
	require.NoError(t, err)
	assert.Equal(t, amqp.Table{
		"x-lock-duration": int64(120_000), "x-message-ttl": nil, "x-auto-delete-on-idle": int64(600_000), "x-max-delivery-count": int64(11), "x-dead-lettering-on-message-expiration": false,
	}, args)
	was.DeadLetteringOnMessageExpiration = &no
	args, err = (&entity{XMLName: was.XMLName, DeadLetteringOnMessageExpiration: &yes}).changes(&was)
	require.NoError(t, err)
	assert.Equal(t, amqp.Table{"x-dead-lettering-on-message-expiration": nil}, args)
	_, err = (&entity{XMLName: was.XMLName, LockDuration: "soon"}).changes(&was)
	assert.EqualError(t, err, `"soon" is not a duration such as PT1M or P14D`)
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
