package settings

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnknownVariables(t *testing.T) {
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
			_, err := Load()
			var usage Error
			require.True(t, errors.As(err, &usage), "got %v", err)
			assert.ErrorContains(t, err, name+": there is no such variable; did you mean "+nearest+"?")
		})
	}
}

func TestIgnoresKubernetesServiceLinks(t *testing.T) {
	setenv(t, "CURFEW_PORT=tcp://10.0.0.1:5672", "CURFEW_SERVICE_HOST=10.0.0.1", "CURFEW_SERVICE_PORT=5672",
		"CURFEW_SERVICE_PORT_AMQP=5672", "CURFEW_PORT_5672_TCP=tcp://10.0.0.1:5672", "CURFEW_PORT_5672_TCP_PROTO=tcp",
		"CURFEW_PORT_5672_TCP_PORT=5672", "CURFEW_PORT_5672_TCP_ADDR=10.0.0.1",
		"CURFEW_REDIS_PORT=tcp://10.0.0.2:6379", "CURFEW_REDIS_SERVICE_HOST=10.0.0.2")
	_, err := Load()
	assert.NoError(t, err)

	setenv(t, "CURFEW_PORT=5672")
	_, err = Load()
	assert.ErrorContains(t, err, "CURFEW_PORT", "a person's mistake")
}
