package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/cluster"
)

func TestPrimary(t *testing.T) {
	password := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(password, []byte("amqp://ann:s3cret@a,b/shop\n"), 0o600))
	setenv(t, "CURFEW_PRIMARY_URL_FILE="+password, "CURFEW_PRIMARY_API_URL=http://a:15672")
	s, err := Load()
	require.NoError(t, err)
	assert.Equal(t, cluster.Options{URL: "amqp://ann:s3cret@a,b/shop", APIURL: "http://a:15672"}, s.Primary())
	rules, err := s.WatchRules()
	require.NoError(t, err)
	assert.Equal(t, cluster.DefaultWatch(), rules, "every queue is observed")
}

// TestPrimaryIsNeeded: a variable about RabbitMQ is a mistake where no RabbitMQ is named, for those who serve alone.
func TestPrimaryIsNeeded(t *testing.T) {
	for name, value := range map[string]string{"CURFEW_PRIMARY_API_URL": "http://h:15672", "CURFEW_WATCH": "keep:*"} {
		setenv(t, name+"="+value)
		s, err := Load()
		require.NoError(t, err)
		err = s.CheckServe()
		var wrong Error
		require.ErrorAs(t, err, &wrong)
		assert.ErrorContains(t, err, name+`: the value "`+value+`" is about RabbitMQ, but CURFEW_PRIMARY_URL names none; set CURFEW_PRIMARY_URL (amqp://`)
	}
	setenv(t, "CURFEW_PRIMARY_API_URL=http://ann:s3cret@h:15672")
	s, err := Load()
	require.NoError(t, err)
	assert.NotContains(t, s.CheckServe().Error(), "s3cret")
	setenv(t, "CURFEW_PRIMARY_API_URL=", "CURFEW_WATCH=")
	s, err = Load()
	require.NoError(t, err)
	assert.NoError(t, s.CheckServe(), "empty is not set")
}

// TestNoBrokerWithRabbitMQ: what only Curfew's own broker could do is refused, or reported as unused.
func TestNoBrokerWithRabbitMQ(t *testing.T) {
	for _, wrong := range []string{"CURFEW_AMQPS_ADDR=:5671", "CURFEW_HTTP_ON_AMQP=true", "CURFEW_DEFINITIONS=d.json", "CURFEW_TTL=off", "CURFEW_MONITOR=false"} {
		setenv(t, "CURFEW_PRIMARY_URL=amqp://h", wrong)
		s, err := Load()
		require.NoError(t, err)
		name, _, _ := strings.Cut(wrong, "=")
		assert.ErrorContains(t, s.CheckServe(), name+": it is about Curfew's own broker, which does not run with CURFEW_PRIMARY_URL")
	}
	setenv(t, "CURFEW_PRIMARY_URL=amqp://h", "CURFEW_AMQP_ADDR=:5672", "CURFEW_STORE_SYNC=never", "CURFEW_CONSUMER_TIMEOUT=5m")
	s, err := Load()
	require.NoError(t, err)
	assert.Equal(t, []string{"CURFEW_STORE_SYNC", "CURFEW_CONSUMER_TIMEOUT"}, s.Unused())
	assert.Empty(t, s.DataDir, "nothing is kept in a folder that nobody chose")
	setenv(t, "CURFEW_PRIMARY_URL=amqp://h", "CURFEW_DATA_DIR=d")
	s, err = Load()
	require.NoError(t, err)
	assert.Equal(t, "d", s.DataDir)
	setenv(t, "CURFEW_STORE_SYNC=never")
	s, err = Load()
	require.NoError(t, err)
	assert.Empty(t, s.Unused())
}

func TestWatchRules(t *testing.T) {
	setenv(t, "CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH=keep:retry-*,off:x")
	s, err := Load()
	require.NoError(t, err)
	rules, err := s.WatchRules()
	require.NoError(t, err)
	require.Len(t, rules, 2)
	assert.Equal(t, cluster.Keep, rules[0].Mode)

	file := filepath.Join(t.TempDir(), "watch.yaml")
	require.NoError(t, os.WriteFile(file, []byte("queues:\n  - queue: orders\n    mode: hold\n"), 0o600))
	setenv(t, "CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH="+file)
	s, err = Load()
	require.NoError(t, err, "the file is read when it is needed")
	_, err = s.WatchRules()
	var wrong Error
	require.ErrorAs(t, err, &wrong)
	assert.ErrorContains(t, err, "CURFEW_WATCH: "+file+": queues[0] (orders): mode: \"hold\" is invalid: want observe or keep or off or delay")
}

func TestPrimaryRedacted(t *testing.T) {
	assert.Equal(t, "amqps://ann@a:5671,b:1/shop", primaryURL("amqps://ann:s3cret@a,b:1/shop?keyfile=s3cret").Redacted())
	assert.Empty(t, primaryURL("").Redacted())
	assert.Equal(t, "https://h:1", primaryAPIURL("https://ann:s3cret@h:1?cacertfile=s3cret").Redacted())
	assert.Equal(t, "https://h:1,https://i", primaryAPIURL("https://ann:s3cret@h:1,i?cacertfile=s3cret").Redacted())
	assert.Empty(t, primaryAPIURL("s3cret").Redacted())
}
