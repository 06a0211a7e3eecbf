package settings

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

var setenv = testenv.Setenv

func TestDefaults(t *testing.T) {
	setenv(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	c, err := Load()
	require.NoError(t, err)
	assert.Equal(t, Settings{
		AMQPAddr: "127.0.0.1:5672", HTTPAddr: "127.0.0.1:15672", OpsAddr: "127.0.0.1:15692", DataDir: "./curfew-data", StoreSync: "group",
		Monitor: true, Clock: "system", TTL: "on", TTLPrecedence: "min", Unroutable: "park", IdleMinimum: 5 * time.Minute, ScheduleWindow: 20 * time.Millisecond,
		User: "guest", Password: "guest", GuestLoopbackOnly: true, Audit: "true", TLSClientAuth: "none", TLSLoginFrom: "distinguished_name", Instance: host,
		MaxMessageSize: 16 << 20, MaxConnections: 1024, ConsumerTimeout: ackTimeout{30 * time.Minute}, MemoryLimit: memoryLimit{percent: 60}, DiskFreeLimit: 50 << 20, LogLevel: "info", LogFormat: "auto",
	}, c)
}

// TestReadsEveryVariable but those about RabbitMQ, for which others are refused: they are read in primary_test.go.
func TestReadsEveryVariable(t *testing.T) {
	setenv(t, "CURFEW_AMQP_ADDR=:0", "CURFEW_HTTP_ADDR=:1", "CURFEW_AMQPS_ADDR=:1", "CURFEW_HTTPS_ADDR=:2", "CURFEW_HTTP_ON_AMQP=true", "CURFEW_GUEST_LOOPBACK_ONLY=false", "CURFEW_AUDIT=false",
		"CURFEW_TLS_CERT=c", "CURFEW_TLS_KEY=k", "CURFEW_TLS_CLIENT_CA=ca", "CURFEW_TLS_CLIENT_AUTH=require", "CURFEW_TLS_LOGIN_FROM=common_name",
		"CURFEW_OPS_ADDR=[::1]:99", "CURFEW_DATA_DIR=", "CURFEW_STORE_SYNC=never",
		"CURFEW_REDIS_URL=redis://h", "CURFEW_MONITOR=false", "CURFEW_IDLE_MINIMUM=1s", "CURFEW_SCHEDULE_WINDOW=0s",
		"CURFEW_CLOCK=manual", "CURFEW_TTL=off", "CURFEW_TTL_PRECEDENCE=message", "CURFEW_UNROUTABLE=drop", "CURFEW_ALERTS=a.yaml", "CURFEW_ALERT_URLS=webhook+https://h/x,ntfy://h/t", "CURFEW_USER=u",
		"CURFEW_PASSWORD=p", "CURFEW_INSTANCE=i-1",
		"CURFEW_MAX_MESSAGE_SIZE=1MiB", "CURFEW_MAX_CONNECTIONS=7", "CURFEW_MEMORY_LIMIT=1GiB", "CURFEW_DISK_FREE_LIMIT=1MiB", "CURFEW_CONSUMER_TIMEOUT=0s", "CURFEW_LOG_LEVEL=debug", "CURFEW_LOG_FORMAT=json")
	c, err := Load()
	require.NoError(t, err)
	assert.Equal(t, Settings{
		AMQPAddr: ":0", HTTPAddr: ":1", AMQPSAddr: ":1", HTTPSAddr: ":2", HTTPOnAMQP: true, TLSCert: "c", TLSKey: "k", TLSClientCA: "ca", TLSClientAuth: "require", TLSLoginFrom: "common_name",
		OpsAddr: "[::1]:99", StoreSync: "never", RedisURL: "redis://h",
		IdleMinimum: time.Second, Clock: "manual", Audit: "false", TTL: "off", TTLPrecedence: "message", Unroutable: "drop", Alerts: "a.yaml", AlertUrls: "webhook+https://h/x,ntfy://h/t",
		User: "u", Password: "p", Instance: "i-1", MaxMessageSize: 1 << 20, MaxConnections: 7, MemoryLimit: memoryLimit{size: 1 << 30}, DiskFreeLimit: 1 << 20,
		LogLevel: "debug", LogFormat: "json",
	}, c)
}

func TestWrongValues(t *testing.T) {
	for setting, allowed := range map[string]string{
		"CURFEW_AMQP_ADDR=5672":                       "host:port",
		"CURFEW_AMQP_ADDR=":                           "host:port",
		"CURFEW_AMQP_ADDR=h:amqp":                     "host:port",
		"CURFEW_AMQPS_ADDR=5671":                      "host:port, or nothing",
		"CURFEW_TLS_CLIENT_AUTH=maybe":                "none or request or require",
		"CURFEW_HTTP_ADDR=h":                          "host:port",
		"CURFEW_OPS_ADDR=h:70000":                     "host:port",
		"CURFEW_STORE_SYNC=always":                    "group or interval or never",
		"CURFEW_MONITOR=on":                           "true or false",
		"CURFEW_TTL_PRECEDENCE=max":                   "min or message",
		"CURFEW_TTL_PRECEDENCE=":                      "min or message",
		"CURFEW_TTL=false":                            "on or off",
		"CURFEW_UNROUTABLE=keep":                      "park or drop",
		"CURFEW_CONSUMER_TIMEOUT=59s":                 "0s for never, or from 1m to 10 years",
		"CURFEW_IDLE_MINIMUM=0s":                      "1ms to 24h",
		"CURFEW_IDLE_MINIMUM=five minutes":            "1ms to 24h",
		"CURFEW_SCHEDULE_WINDOW=2s":                   "0s to 1s",
		"CURFEW_SCHEDULE_WINDOW=20":                   "0s to 1s",
		"CURFEW_INSTANCE=a b":                         "letters, digits",
		"CURFEW_INSTANCE={x}":                         "letters, digits",
		"CURFEW_MAX_MESSAGE_SIZE=sixteen":             "1KiB to 128MiB",
		"CURFEW_MAX_MESSAGE_SIZE=200MiB":              "1KiB to 128MiB",
		"CURFEW_MAX_MESSAGE_SIZE=-1":                  "1KiB to 128MiB",
		"CURFEW_MAX_CONNECTIONS=0":                    "1 to 1000000",
		"CURFEW_MEMORY_LIMIT=0":                       "1% to 90%",
		"CURFEW_MEMORY_LIMIT=95%":                     "1% to 90%",
		"CURFEW_MEMORY_LIMIT=1MiB":                    "64MiB or more",
		"CURFEW_LOG_LEVEL=INFO":                       "debug or info or warn or error",
		"CURFEW_USER=":                                "a text that is not empty",
		"CURFEW_LOG_FORMAT=text":                      "auto or console or json",
		"CURFEW_REDIS_URL=redis-sentinel://h:1":       "master_name",
		"CURFEW_REDIS_URL=redis://h?typo=1":           "redis://",
		"CURFEW_REDIS_URL=http://h:1":                 `scheme "http"`,
		"CURFEW_PRIMARY_URL=http://h":                 "has to begin with amqp:// or amqps://",
		"CURFEW_PRIMARY_URL=amqp://ann:s3cret@h/%zz":  "percent sign",
		"CURFEW_PRIMARY_API_URL=h:15672":              "has to begin with http:// or https://",
		"CURFEW_WATCH=hold:*":                         "observe, keep, delay or off",
		"CURFEW_ALERT_URLS=https://hooks.example/x":   "say what https:// is",
		"CURFEW_ALERT_URLS=nowhere://hooks.example/x": "unknown kind of sink",
		"CURFEW_ALERT_URLS=ntfy://ntfy.sh":            "topic is required",
	} {
		t.Run(setting, func(t *testing.T) {
			setenv(t, setting)
			_, err := Load()
			var usage Error
			require.True(t, errors.As(err, &usage), "got %v", err)
			name, value, _ := strings.Cut(setting, "=")
			assert.ErrorContains(t, err, name+": ")
			assert.ErrorContains(t, err, allowed)
			if strings.HasSuffix(name, "_URL") || strings.HasSuffix(name, "_URLS") {
				assert.NotContains(t, err.Error(), value, "a secret")
			} else {
				assert.ErrorContains(t, err, `"`+value+`"`)
			}
		})
	}
}

func TestReportsAllThatIsWrong(t *testing.T) {
	setenv(t, "CURFEW_LOG_LEVEL=loud", "CURFEW_MAX_CONNECTIONS=0", "CURFEW_NO_SUCH=1", "CURFEW_AMQP_ADDR=5672", "CURFEW_WATCH=hold:*")
	_, err := Load()
	for _, name := range []string{"CURFEW_LOG_LEVEL", "CURFEW_MAX_CONNECTIONS", "CURFEW_NO_SUCH", "CURFEW_AMQP_ADDR", "CURFEW_WATCH"} {
		assert.ErrorContains(t, err, name)
	}
}

// Only CURFEW_ names count, whatever else the environment has.
func TestIgnoresNamesWithoutPrefix(t *testing.T) {
	setenv(t, "USER=root", "PASSWORD=p", "INSTANCE=i", "MONITOR=maybe", "AMQP_ADDR=x", "LOG_LEVEL=loud", "DATA_DIR=/nowhere")
	c, err := Load()
	require.NoError(t, err)
	assert.EqualValues(t, "guest", c.User)
	assert.Equal(t, "./curfew-data", c.DataDir)
	assert.True(t, c.Monitor)
}

// TestManualClock: what it does not go with is refused, and the default data folder is not used.
func TestManualClock(t *testing.T) {
	setenv(t, "CURFEW_CLOCK=manual")
	s, err := Load()
	require.NoError(t, err)
	require.NoError(t, s.CheckServe())
	assert.Empty(t, s.DataDir)
	for _, wrong := range []struct{ name, value string }{
		{"CURFEW_DATA_DIR", "d"}, {"CURFEW_REDIS_URL", "redis://h"}, {"CURFEW_PRIMARY_URL", "amqp://h"}, {"CURFEW_MONITOR", "false"},
	} {
		setenv(t, "CURFEW_CLOCK=manual", wrong.name+"="+wrong.value)
		s, err := Load()
		require.NoError(t, err)
		assert.ErrorContains(t, s.CheckServe(), wrong.name+": it does not go with a manual clock")
	}
	setenv(t, "CURFEW_CLOCK=sundial")
	_, err = Load()
	require.ErrorContains(t, err, "system or manual")
}

// TestSharedAddresses: two of Curfew's own cannot have the same port, whatever stands for the interface.
func TestSharedAddresses(t *testing.T) {
	setenv(t, "CURFEW_OPS_ADDR=:5672", "CURFEW_HTTP_ADDR=127.0.0.1:0", "CURFEW_HTTPS_ADDR=127.0.0.1:0")
	s, err := Load()
	require.NoError(t, err)
	require.EqualError(t, s.CheckServe(), "CURFEW_OPS_ADDR: :5672 is the address of CURFEW_AMQP_ADDR, too; set one of them to another port")
	s.PrimaryURL = "amqp://h"
	require.NoError(t, s.CheckServe(), "no AMQP address is used")
}

// TestUseClock: the flag of serve stands above the variable.
func TestUseClock(t *testing.T) {
	setenv(t, "CURFEW_CLOCK=system")
	s, err := Load()
	require.NoError(t, err)
	require.NoError(t, s.UseClock(""))
	assert.False(t, s.ManualClock())
	assert.Equal(t, "./curfew-data", s.DataDir)
	require.NoError(t, s.UseClock("manual"))
	assert.True(t, s.ManualClock())
	assert.Empty(t, s.DataDir)
	require.ErrorContains(t, s.UseClock("sundial"), "want system or manual")
}
