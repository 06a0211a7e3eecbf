package printable

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"orders.dead ü 日本 -":       "orders.dead ü 日本 -",
		"\x1b[2J\x1b]0;title\a":    `\x1b[2J\x1b]0;title\a`,
		"a\tb\r\nc":                `a\tb\r\nc`,
		"\u009b31m\u202eabc\u2028": `\u009b31m\u202eabc\u2028`,
		"\xff\xfe":                 `\xff\xfe`,
		`a\b "c"`:                  `a\b "c"`,
	} {
		assert.Equal(t, want, Text(text, ""))
	}
	assert.Equal(t, "one\n\ttwo\\x1b", Text("one\n\ttwo\x1b", "\n\t"))
}

// TestPlainly: errors as Go has them become sentences; other texts stay.
func TestPlainly(t *testing.T) {
	for text, want := range map[string]string{
		"inspect: redisstore: check: INFO: dial tcp 127.0.0.1:6379: connect: connection refused":                                              "nothing listens on 127.0.0.1:6379",
		`not looked at for 5 s (inventory: Get "http://rabbit:15672/api/queues": dial tcp 10.0.0.1:15672: connect: connection refused)`:       "not looked at for 5 s (nothing listens on 10.0.0.1:15672)",
		`not looked at for 5 s (ask the management API: Get "http://rabbit:15672/api": dial tcp 10.0.0.1:15672: connect: connection refused)`: "not looked at for 5 s (ask the management API: nothing listens on 10.0.0.1:15672)",
		"dial tcp: lookup rabbit on 10.0.0.2:53: no such host":                                                                                "the name rabbit is not known",
		"dial tcp 10.0.0.1:5672: i/o timeout":                                                                              "10.0.0.1:5672 cannot be reached",
		"read tcp 10.0.0.2:4000->10.0.0.1:6379: read: connection reset by peer":                                            "10.0.0.1:6379 has cut the connection",
		`identity: Exception (403) Reason: "no access to this vhost"`:                                                      "RabbitMQ says: no access to this vhost",
		`Get "http://rabbit:15672/api/queues": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`: "it does not answer in time",
		"redisstore: check: WRONGPASS invalid username-password pair or user is disabled.":                                 "the password is refused",
		"write /var/curfew/topology: no space left on device":                                                              "the disk is full",
		"Redis evicts keys: set maxmemory-policy noeviction":                                                               "Redis evicts keys: set maxmemory-policy noeviction",
	} {
		require.Equal(t, want, Plainly(text))
	}
}

// TestClock: what is of another day says which.
func TestClock(t *testing.T) {
	now := time.Now()
	assert.Regexp(t, `^\d\d:\d\d:\d\d$`, Clock(now))
	assert.Regexp(t, `^\d+ [A-Z][a-z][a-z] \d\d:\d\d:\d\d$`, Clock(now.AddDate(0, 0, -1)))
	assert.Equal(t, "29 Feb 14:03:00", Clock(time.Date(2024, 2, 29, 15, 3, 0, 0, time.FixedZone("CET", 3600))))
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 629 * time.Millisecond: "629 ms", 9100 * time.Millisecond: "9.1 s", 90 * time.Second: "1 min 30 s", 26 * time.Hour: "1 d 2 h", -time.Second: "-1 s",
	} {
		assert.Equal(t, want, Span(d))
	}
}
