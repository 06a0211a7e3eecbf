package atom

import (
	"encoding/xml"
	"errors"
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
		assert.Equal(t, text, duration(millis, servicebus.Forever))
		back, err := servicebus.ParseDuration(text)
		require.NoError(t, err)
		assert.Equal(t, millis, back, text)
	}
	assert.Equal(t, "never", duration(nil, "never"))
}

func TestInstants(t *testing.T) {
	assert.Equal(t, zeroTime, instant(0))
	assert.Equal(t, "2026-11-28T00:15:00.007Z", instant(1_795_824_900_007))
}

// TestUpdates: what an update leaves out stays, and what cannot be changed is named.
func TestUpdates(t *testing.T) {
	yes, no := true, false
	was := entity{XMLName: xml.Name{Local: "QueueDescription"}, LockDuration: "PT1M", MaxDeliveryCount: new(int64(10)), MaxSizeInMegabytes: maxSize, DeadLetteringOnMessageExpiration: &yes, RequiresSession: &no}
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
		{"", entity{LockDuration: "PT60S", DefaultMessageTimeToLive: "PT60M0S", AutoDeleteOnIdle: "P10675199D", DeadLetteringOnMessageExpiration: &yes, RequiresSession: &no}, ""},
		{"RequiresSession", entity{RequiresSession: &yes}, "false"},
		{"RequiresDuplicateDetection", entity{RequiresDuplicateDetection: &yes}, "false"},
		{"EnablePartitioning", entity{EnablePartitioning: &yes}, "false"},
		{"Status", entity{Status: "Disabled"}, "Active"},
		{"MaxSizeInMegabytes", entity{MaxSizeInMegabytes: 4096}, "1024"},
		{"MaxMessageSizeInKilobytes", entity{MaxMessageSizeInKilobytes: 512}, "that of Curfew"},
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
	foreign := entity{XMLName: was.XMLName, LockDuration: "PT0S", DefaultMessageTimeToLive: "PT0S"} // declared over AMQP
	args, err := foreign.changes(&foreign)
	assert.NoError(t, err)
	assert.Empty(t, args)
	topic := entity{XMLName: xml.Name{Local: "TopicDescription"}, MaxDeliveryCount: new(int64(5))}
	_, err = topic.changes(&entity{XMLName: topic.XMLName})
	assert.NoError(t, err)
	_, err = topic.changes(&was)
	assert.EqualError(t, err, "the entity is a Queue")
	change := entity{XMLName: was.XMLName, LockDuration: "PT2M", DefaultMessageTimeToLive: servicebus.Forever, AutoDeleteOnIdle: "PT10M", MaxDeliveryCount: new(int64(11)), UserMetadata: "of the shop", EnableBatchedOperations: &no, DeadLetteringOnMessageExpiration: &no}
	args, err = change.changes(&was)
	require.NoError(t, err)
	assert.Equal(t, amqp.Table{
		"x-lock-duration": int64(120_000), "x-message-ttl": nil, "x-auto-delete-on-idle": int64(600_000), "x-max-delivery-count": int64(11), servicebus.MetadataArg: "of the shop", servicebus.BatchedArg: false, "x-dead-lettering-on-message-expiration": false,
	}, args)
	was.DeadLetteringOnMessageExpiration = &no
	args, err = (&entity{XMLName: was.XMLName, DeadLetteringOnMessageExpiration: &yes}).changes(&was)
	require.NoError(t, err)
	assert.Equal(t, amqp.Table{"x-dead-lettering-on-message-expiration": nil}, args)
	for want, change := range map[string]entity{
		`LockDuration: "soon" is not a duration such as PT1M or P14D`:                                                            {LockDuration: "soon"},
		"DefaultMessageTimeToLive: PT0S is too short":                                                                            {DefaultMessageTimeToLive: "PT0S"},
		"AutoDeleteOnIdle: P4000D is more than ten years, P3650D; leave it out for no limit, or give P10675199DT2H48M5.4775807S": {AutoDeleteOnIdle: "P4000D"},
		"MaxDeliveryCount: at least 1":                                                                                           {MaxDeliveryCount: new(int64)},
		"DeadLetteringOnFilterEvaluationExceptions: it cannot be turned on":                                                      {DeadLetteringOnFilterEvaluationExceptions: &yes},
	} {
		change.XMLName = was.XMLName
		_, err = change.changes(&was)
		assert.EqualError(t, err, want)
	}
}

// TestWordsOfProperties: a refusal of the broker names the property that a client knows.
func TestWordsOfProperties(t *testing.T) {
	for is, want := range map[string]string{
		"PRECONDITION_FAILED - invalid arg 'x-auto-delete-on-idle' for queue 'q' in vhost '/': 60000 is less than 300000": "AutoDeleteOnIdle: 60000 is less than 300000",
		"PRECONDITION_FAILED - invalid arg 'x-max-delivery-count' for queue 'q' in vhost '/': {value_too_large,70000}":    "MaxDeliveryCount: 70000 is too much",
		"PRECONDITION_FAILED - invalid arg 'x-max-length' for queue 'q' in vhost '/': {value_negative,-1}":                "PRECONDITION_FAILED - invalid arg 'x-max-length' for queue 'q' in vhost '/': {value_negative,-1}",
		"anything": "anything",
	} {
		assert.EqualError(t, inProperties(errors.New(is)), want)
	}
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
