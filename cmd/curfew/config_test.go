package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// setenv clears every CURFEW_ and OTEL_ variable and sets the given ones ("NAME=value") for the test.
func setenv(t *testing.T, settings ...string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "CURFEW_") || strings.HasPrefix(name, "OTEL_") || strings.HasPrefix(name, "RABBITMQ_DEFAULT_") {
			t.Setenv(name, "") // so that it is restored
			os.Unsetenv(name)
		}
	}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv(name, value)
	}
}

func TestConfigDefaults(t *testing.T) {
	setenv(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	c, err := loadConfig()
	require.NoError(t, err)
	assert.Equal(t, config{
		AMQPAddr: "127.0.0.1:5672", HTTPAddr: "127.0.0.1:15672", OpsAddr: "127.0.0.1:15692", DataDir: "./curfew-data", StoreSync: "group",
		AlertPagerdutyURL: "https://events.pagerduty.com/v2/enqueue", AlertCloudeventsMode: "structured", AlertGroupBy: "event", AlertGroupWait: 10 * time.Second,
		AlertGroupInterval: time.Minute, AlertRepeatInterval: 4 * time.Hour, AlertRateLimit: 60, HeartbeatInterval: 30 * time.Second,
		RedisShards: 4, Monitor: true, IdleMinimum: 5 * time.Minute, MissThreshold: time.Second, RiskPercent: 50, TTL: "on", ScheduleWindow: 20 * time.Millisecond, TTLPrecedence: "min", Unroutable: "park",
		User: "guest", Password: "guest", GuestLoopbackOnly: true, MaxQueues: 50000, MaxExchanges: 10000, MaxBindings: 200000, Audit: true, AuditSize: 512 << 20, TLSClientAuth: "none", TLSLoginFrom: "distinguished_name", Instance: instance(host), FrameMax: 131072, ChannelMax: 2047,
		Heartbeat: seconds(time.Minute), MaxMessageSize: 16 << 20, MaxConnections: 1024, ConsumerTimeout: ackTimeout(30 * time.Minute), MemoryLimit: memoryLimit{percent: 60}, DiskFreeLimit: 50 << 20, CompatRabbitmqVersion: "4.1.0", LogLevel: "info", LogFormat: "auto",
	}, c)
}

func TestConfigReadsEveryVariable(t *testing.T) {
	setenv(t, "CURFEW_AMQP_ADDR=:0", "CURFEW_HTTP_ADDR=:1", "CURFEW_COMPAT_RABBITMQ_VERSION=3.13.7", "CURFEW_AMQPS_ADDR=:1", "CURFEW_HTTPS_ADDR=:2", "CURFEW_GUEST_LOOPBACK_ONLY=false", "CURFEW_MAX_QUEUES=2", "CURFEW_MAX_EXCHANGES=3", "CURFEW_MAX_BINDINGS=4", "CURFEW_AUDIT=false", "CURFEW_AUDIT_SIZE=1MiB",
		"CURFEW_TLS_CERT=c", "CURFEW_TLS_KEY=k", "CURFEW_TLS_CLIENT_CA=ca", "CURFEW_TLS_CLIENT_AUTH=require", "CURFEW_TLS_LOGIN_FROM=common_name",
		"CURFEW_OPS_ADDR=[::1]:99", "CURFEW_DATA_DIR=", "CURFEW_STORE_SYNC=never",
		"CURFEW_REDIS_URL=redis://h", "CURFEW_REDIS_SHARDS=3", "CURFEW_MONITOR=false", "CURFEW_IDLE_MINIMUM=1s", "CURFEW_MISS_THRESHOLD=250ms", "CURFEW_RISK_PERCENT=80",
		"CURFEW_TTL=off", "CURFEW_SCHEDULE_WINDOW=1s", "CURFEW_TTL_PRECEDENCE=message", "CURFEW_UNROUTABLE=drop", "CURFEW_ALERT_WEBHOOK_URL=https://h/x", "CURFEW_USER=u",
		"CURFEW_ALERT_RULES=r.yaml", "CURFEW_ALERT_WEBHOOK_SECRET=s", "CURFEW_ALERT_ALERTMANAGER_URL=http://a:9093, http://b:9093", "CURFEW_ALERT_SLACK_URL=https://s/x",
		"CURFEW_ALERT_PAGERDUTY_ROUTING_KEY=k", "CURFEW_ALERT_PAGERDUTY_URL=https://p/x", "CURFEW_ALERT_CLOUDEVENTS_URL=https://c/x", "CURFEW_ALERT_CLOUDEVENTS_MODE=binary",
		"CURFEW_ALERT_AMQP=json", "CURFEW_ALERT_ALLOW=h, 10.0.0.0/8", "CURFEW_ALERT_GROUP_BY=queue", "CURFEW_ALERT_GROUP_WAIT=1s", "CURFEW_ALERT_GROUP_INTERVAL=2s",
		"CURFEW_ALERT_REPEAT_INTERVAL=3s", "CURFEW_ALERT_RATE_LIMIT=5", "CURFEW_ALERT_EXTERNAL_URL=https://e", "CURFEW_ALERT_RUNBOOK_BASE=https://r/",
		"CURFEW_HEARTBEAT_URL=https://b/x", "CURFEW_HEARTBEAT_INTERVAL=1m",
		"CURFEW_PASSWORD=p", "CURFEW_INSTANCE=i-1", "CURFEW_FRAME_MAX=4096", "CURFEW_CHANNEL_MAX=9", "CURFEW_HEARTBEAT=0s",
		"CURFEW_MAX_MESSAGE_SIZE=1MiB", "CURFEW_MAX_CONNECTIONS=7", "CURFEW_MEMORY_LIMIT=1GiB", "CURFEW_DISK_FREE_LIMIT=1MiB", "CURFEW_CONSUMER_TIMEOUT=0s", "CURFEW_LOG_LEVEL=debug", "CURFEW_LOG_FORMAT=json")
	c, err := loadConfig()
	require.NoError(t, err)
	assert.Equal(t, config{
		AMQPAddr: ":0", HTTPAddr: ":1", CompatRabbitmqVersion: "3.13.7", AMQPSAddr: ":1", HTTPSAddr: ":2", MaxQueues: 2, MaxExchanges: 3, MaxBindings: 4, AuditSize: 1 << 20, TLSCert: "c", TLSKey: "k", TLSClientCA: "ca", TLSClientAuth: "require", TLSLoginFrom: "common_name",
		OpsAddr: "[::1]:99", StoreSync: "never", RedisURL: "redis://h", RedisShards: 3,
		IdleMinimum: time.Second, MissThreshold: 250 * time.Millisecond, RiskPercent: 80, TTL: "off", ScheduleWindow: time.Second, TTLPrecedence: "message", Unroutable: "drop", AlertWebhookURL: "https://h/x",
		AlertRules: "r.yaml", AlertWebhookSecret: "s", AlertAlertmanagerURL: "http://a:9093, http://b:9093", AlertSlackURL: "https://s/x",
		AlertPagerdutyRoutingKey: "k", AlertPagerdutyURL: "https://p/x", AlertCloudeventsURL: "https://c/x", AlertCloudeventsMode: "binary",
		AlertAMQP: "json", AlertAllow: "h, 10.0.0.0/8", AlertGroupBy: "queue", AlertGroupWait: time.Second, AlertGroupInterval: 2 * time.Second,
		AlertRepeatInterval: 3 * time.Second, AlertRateLimit: 5, AlertExternalURL: "https://e", AlertRunbookBase: "https://r/",
		HeartbeatURL: "https://b/x", HeartbeatInterval: time.Minute,
		User: "u", Password: "p", Instance: "i-1", FrameMax: 4096, ChannelMax: 9, MaxMessageSize: 1 << 20, MaxConnections: 7, MemoryLimit: memoryLimit{size: 1 << 30}, DiskFreeLimit: 1 << 20,
		LogLevel: "debug", LogFormat: "json",
	}, c)
}

func TestConfigWrongValues(t *testing.T) {
	for setting, allowed := range map[string]string{
		"CURFEW_AMQP_ADDR=5672":                    "host:port",
		"CURFEW_AMQP_ADDR=":                        "host:port",
		"CURFEW_AMQP_ADDR=h:amqp":                  "host:port",
		"CURFEW_AMQPS_ADDR=5671":                   "host:port, or nothing",
		"CURFEW_TLS_CLIENT_AUTH=maybe":             "none or request or require",
		"CURFEW_HTTP_ADDR=h":                       "host:port",
		"CURFEW_COMPAT_RABBITMQ_VERSION=4":         "4.1.0",
		"CURFEW_OPS_ADDR=h:70000":                  "host:port",
		"CURFEW_STORE_SYNC=always":                 "group or interval or never",
		"CURFEW_REDIS_SHARDS=0":                    "1 to 1024",
		"CURFEW_REDIS_SHARDS=many":                 "1 to 1024",
		"CURFEW_MONITOR=on":                        "true or false",
		"CURFEW_MISS_THRESHOLD=0s":                 "1ms to 24h",
		"CURFEW_MISS_THRESHOLD=5":                  "1ms to 24h",
		"CURFEW_TTL_PRECEDENCE=max":                "min or message",
		"CURFEW_TTL_PRECEDENCE=":                   "min or message",
		"CURFEW_TTL=false":                         "on or off",
		"CURFEW_SCHEDULE_WINDOW=2s":                "0s to 1s",
		"CURFEW_SCHEDULE_WINDOW=20":                "0s to 1s",
		"CURFEW_UNROUTABLE=keep":                   "park or drop",
		"CURFEW_CONSUMER_TIMEOUT=59s":              "0s for never, or from 1m to 10 years",
		"CURFEW_IDLE_MINIMUM=0s":                   "1ms to 24h",
		"CURFEW_IDLE_MINIMUM=five minutes":         "1ms to 24h",
		"CURFEW_INSTANCE=a b":                      "letters, digits",
		"CURFEW_INSTANCE={x}":                      "letters, digits",
		"CURFEW_FRAME_MAX=4095":                    "4096 to 16777216",
		"CURFEW_CHANNEL_MAX=65536":                 "1 to 65535",
		"CURFEW_HEARTBEAT=1500ms":                  "whole seconds",
		"CURFEW_HEARTBEAT=-1s":                     "whole seconds",
		"CURFEW_MAX_MESSAGE_SIZE=16MB":             "1KiB to 128MiB",
		"CURFEW_MAX_MESSAGE_SIZE=1GiB":             "1KiB to 128MiB",
		"CURFEW_MAX_MESSAGE_SIZE=-1":               "1KiB to 128MiB",
		"CURFEW_MAX_CONNECTIONS=0":                 "1 to 1000000",
		"CURFEW_MEMORY_LIMIT=0":                    "1% to 90%",
		"CURFEW_MEMORY_LIMIT=95%":                  "1% to 90%",
		"CURFEW_MEMORY_LIMIT=1MiB":                 "64MiB or more",
		"CURFEW_LOG_LEVEL=INFO":                    "debug or info or warn or error",
		"CURFEW_USER=":                             "any text but none",
		"CURFEW_LOG_FORMAT=text":                   "auto or console or json",
		"CURFEW_REDIS_URL=redis-sentinel://h:1":    "master_name",
		"CURFEW_REDIS_URL=redis://h?typo=1":        "redis://",
		"CURFEW_REDIS_URL=http://h:1":              `scheme "http"`,
		"CURFEW_ALERT_WEBHOOK_URL=hooks.example/x": "http:// or https://",
		"CURFEW_ALERT_WEBHOOK_URL=ftp://h/x":       "http:// or https://",
		"CURFEW_ALERT_ALERTMANAGER_URL=http://a,b": "with commas between",
		"CURFEW_ALERT_AMQP=xml":                    "json or cloudevents",
		"CURFEW_ALERT_ALLOW=http://h":              "hosts, addresses and networks",
		"CURFEW_ALERT_GROUP_BY=rule":               "event or vhost or queue or none",
		"CURFEW_ALERT_RATE_LIMIT=0":                "1 to 6000",
	} {
		t.Run(setting, func(t *testing.T) {
			setenv(t, setting)
			_, err := loadConfig()
			var usage usageError
			require.True(t, errors.As(err, &usage), "got %v", err)
			name, value, _ := strings.Cut(setting, "=")
			assert.ErrorContains(t, err, name+": ")
			assert.ErrorContains(t, err, allowed)
			if name == "CURFEW_REDIS_URL" || name == "CURFEW_ALERT_WEBHOOK_URL" || name == "CURFEW_ALERT_ALERTMANAGER_URL" {
				assert.NotContains(t, err.Error(), value, "a secret")
			} else {
				assert.ErrorContains(t, err, `"`+value+`"`)
			}
		})
	}
}

func TestConfigReportsAllThatIsWrong(t *testing.T) {
	setenv(t, "CURFEW_LOG_LEVEL=loud", "CURFEW_CHANNEL_MAX=0", "CURFEW_NO_SUCH=1")
	_, err := loadConfig()
	for _, name := range []string{"CURFEW_LOG_LEVEL", "CURFEW_CHANNEL_MAX", "CURFEW_NO_SUCH"} {
		assert.ErrorContains(t, err, name)
	}
}

// Only CURFEW_ names count, whatever else the surroundings define.
func TestConfigIgnoresNamesWithoutPrefix(t *testing.T) {
	setenv(t, "USER=root", "PASSWORD=p", "INSTANCE=i", "MONITOR=maybe", "AMQP_ADDR=x", "LOG_LEVEL=loud", "DATA_DIR=/nowhere")
	c, err := loadConfig()
	require.NoError(t, err)
	assert.EqualValues(t, "guest", c.User)
	assert.Equal(t, "./curfew-data", c.DataDir)
	assert.True(t, c.Monitor)
}

func TestConfigUnknownVariables(t *testing.T) {
	for name, nearest := range map[string]string{
		"CURFEW_AMQP_ADRR":    "CURFEW_AMQP_ADDR",
		"CURFEW_AMQP":         "CURFEW_AMQP_ADDR",
		"CURFEW_REDIS":        "CURFEW_REDIS_URL",
		"CURFEW_LOGLEVEL":     "CURFEW_LOG_LEVEL",
		"CURFEW_PASSWORDFILE": "CURFEW_PASSWORD_FILE",
		"CURFEW_USER_FILE":    "CURFEW_USER",
		"CURFEW_MAX_CONN":     "CURFEW_MAX_CONNECTIONS",
		"CURFEW_MONITOR_PORT": "CURFEW_MONITOR",
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, name+"=1")
			_, err := loadConfig()
			var usage usageError
			require.True(t, errors.As(err, &usage), "got %v", err)
			assert.ErrorContains(t, err, name+": there is no such variable; did you mean "+nearest+"?")
		})
	}
}

func TestConfigIgnoresKubernetesServiceLinks(t *testing.T) {
	setenv(t, "CURFEW_PORT=tcp://10.0.0.1:5672", "CURFEW_SERVICE_HOST=10.0.0.1", "CURFEW_SERVICE_PORT=5672",
		"CURFEW_SERVICE_PORT_AMQP=5672", "CURFEW_PORT_5672_TCP=tcp://10.0.0.1:5672", "CURFEW_PORT_5672_TCP_PROTO=tcp",
		"CURFEW_PORT_5672_TCP_PORT=5672", "CURFEW_PORT_5672_TCP_ADDR=10.0.0.1",
		"CURFEW_REDIS_PORT=tcp://10.0.0.2:6379", "CURFEW_REDIS_SERVICE_HOST=10.0.0.2")
	_, err := loadConfig()
	assert.NoError(t, err)

	setenv(t, "CURFEW_PORT=5672")
	_, err = loadConfig()
	assert.ErrorContains(t, err, "CURFEW_PORT", "a person's mistake")
}

func TestConfigSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	password, redis, hook := file("p", "s3cret\n"), file("r", "redis://:x@h:1\r\n"), file("w", "https://h/t")
	setenv(t, "CURFEW_PASSWORD_FILE="+password, "CURFEW_REDIS_URL_FILE="+redis, "CURFEW_ALERT_WEBHOOK_URL_FILE="+hook)
	c, err := loadConfig()
	require.NoError(t, err)
	assert.EqualValues(t, "s3cret", c.Password)
	assert.EqualValues(t, "redis://:x@h:1", c.RedisURL)
	assert.EqualValues(t, "https://h/t", c.AlertWebhookURL)

	setenv(t, "CURFEW_PASSWORD_FILE="+password, "CURFEW_PASSWORD=p")
	_, err = loadConfig()
	assert.ErrorContains(t, err, "CURFEW_PASSWORD and CURFEW_PASSWORD_FILE are both set")

	setenv(t, "CURFEW_PASSWORD_FILE="+dir+"/absent")
	_, err = loadConfig()
	assert.ErrorContains(t, err, "CURFEW_PASSWORD_FILE: open")

	setenv(t, "CURFEW_PASSWORD_FILE="+file("empty", "\n"))
	_, err = loadConfig()
	assert.ErrorContains(t, err, "CURFEW_PASSWORD_FILE: the value (a secret, not shown) is not allowed; it takes any text but none")

	setenv(t, "CURFEW_REDIS_URL_FILE="+hook)
	_, err = loadConfig()
	assert.ErrorContains(t, err, "CURFEW_REDIS_URL_FILE: the value (a secret, not shown) is not allowed")
}

func TestConfigAliases(t *testing.T) {
	setenv(t, "RABBITMQ_DEFAULT_USER=ann", "RABBITMQ_DEFAULT_PASS=pw", "RABBITMQ_DEFAULT_VHOST=/")
	c, err := loadConfig()
	require.NoError(t, err)
	assert.Equal(t, []string{"ann", "pw"}, []string{string(c.User), string(c.Password)})

	t.Setenv("CURFEW_USER", "bob")
	t.Setenv("CURFEW_PASSWORD", "own")
	c, err = loadConfig()
	require.NoError(t, err)
	assert.Equal(t, []string{"bob", "own"}, []string{string(c.User), string(c.Password)}, "our own name goes first")
}

// What a variable is called is envconfig's to say.
func TestConfigVariablesAreNamedAsEnvconfigReadsThem(t *testing.T) {
	var names strings.Builder
	require.NoError(t, envconfig.Usagef(prefix, new(config), &names, "{{range .}}{{usage_key .}} {{end}}"))
	var ours []string
	for _, s := range settingsOf(new(config)) {
		ours = append(ours, s.name)
	}
	assert.Equal(t, strings.Fields(names.String()), ours)
}

func TestConfigEveryFieldIsDescribed(t *testing.T) {
	for _, s := range settingsOf(new(config)) {
		assert.NotEmpty(t, s.desc, s.name)
		assert.NotEmpty(t, s.group, s.name)
		assert.NotContains(t, s.desc, "|", "%s: would break the table", s.name)
	}
}

func TestConfigCommandRedactsSecrets(t *testing.T) {
	setenv(t, "CURFEW_PASSWORD=s3cret", "CURFEW_REDIS_URL=rediss://ann:s3cret@h:6379/2?client_name=s3cret",
		"CURFEW_ALERT_WEBHOOK_URL=https://ann:s3cret@hooks.example/s3cret?k=s3cret", "CURFEW_LOG_LEVEL=warn")
	code, out, errOut := runCommand(t, "config")
	require.Zero(t, code, errOut)
	assert.NotContains(t, out+errOut, "s3cret")
	for _, want := range []string{"********", "rediss://h:6379/2 ", "https://hooks.example/... ", "warn"} {
		assert.Contains(t, out, want)
	}
	for _, s := range settingsOf(new(config)) {
		assert.Contains(t, out, s.name+" ")
		assert.Contains(t, out, s.desc)
	}
}

func TestConfigCommandRefusesWrongValues(t *testing.T) {
	setenv(t, "CURFEW_MONITOR=perhaps")
	code, _, errOut := runCommand(t, "config")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, `CURFEW_MONITOR: "perhaps" is not allowed; it takes true or false`)
}

// README.md's tables of variables are those that `curfew config --markdown` prints.
func TestReadmeListsEveryVariable(t *testing.T) {
	content, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(content), "<!-- config -->\n")
	tables, _, ended := strings.Cut(after, "<!-- /config -->")
	require.True(t, found && ended, "README.md has to have the tables between <!-- config --> and <!-- /config -->")
	assert.Equal(t, strings.Join(markdownTables(), "\n")+"\n", tables, "put there what `curfew config --markdown` prints")
}

func TestConfigMarkdownNeedsNoEnvironment(t *testing.T) {
	setenv(t, "CURFEW_MONITOR=perhaps")
	code, out, _ := runCommand(t, "config", "--markdown")
	assert.Zero(t, code)
	assert.Equal(t, strings.Join(markdownTables(), "\n")+"\n", out)
}

func TestRedisURLRedacted(t *testing.T) {
	for text, want := range map[redisURL]string{
		"redis://h:6379/0":                                "redis://h:6379/0",
		"rediss://ann:s3cret@h:6379?password=s3cret":      "rediss://h:6379",
		"redis-cluster://:s3cret@a:1,b:2":                 "redis-cluster://a:1,b:2",
		"redis-sentinel://a:1?master_name=m&password=s3c": "redis-sentinel://a:1",
		"unix://ann:s3cret@/run/redis.sock?db=1":          "unix:///run/redis.sock",
		"ann:s3c@ret@a:1,b:2":                             "a:1,b:2",
	} {
		assert.Equal(t, want, text.redacted())
	}
}

func TestByteSizes(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "1023": 1023, "4KiB": 4096, "16MiB": 16 << 20, "1GiB": 1 << 30} {
		var b byteSize
		require.NoError(t, b.UnmarshalText([]byte(text)))
		assert.Equal(t, want, b)
	}
	assert.Equal(t, "16MiB", byteSize(16<<20).String())
	assert.Equal(t, "1025", byteSize(1025).String())
	assert.Equal(t, "3KiB", byteSize(3072).String())
}

func TestMemoryLimitOfAShare(t *testing.T) {
	whole := memoryLimit{percent: 90}.bytes()
	assert.Greater(t, whole, int64(minMemoryLimit))
	assert.InDelta(t, float64(whole)/90, float64(memoryLimit{percent: 1}.bytes()), 1000)
	assert.EqualValues(t, 5<<20, memoryLimit{size: 5 << 20}.bytes())
}
