package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/scheduler/storetest"
)

// TestRabbitMQPlanChecksItsSettings before it asks a RabbitMQ.
func TestRabbitMQPlanChecksItsSettings(t *testing.T) {
	for text, settings := range map[string][]string{
		"CURFEW_PRIMARY_URL is not set":             nil,
		"CURFEW_PRIMARY_URL: the value (a secret":   {"CURFEW_PRIMARY_URL=ann:s3cret@h"},
		"CURFEW_WATCH_FILE: open /does/not/exist":   {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH_FILE=/does/not/exist"},
		"did you mean CURFEW_PRIMARY_URL":           {"CURFEW_PRIMARY_UR=amqp://h"},
		"CURFEW_WATCH and CURFEW_WATCH_FILE":        {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH=a", "CURFEW_WATCH_FILE=b"},
		"of CURFEW_PRIMARY_URL, which is not set":   {"CURFEW_WATCH=a"},
		`CURFEW_WATCH: "hold:*" is not allowed`:     {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH=hold:*"},
		"the management API has to be http:// or h": {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_PRIMARY_API_URL=ann:s3cret@h"},
	} {
		setenv(t, settings...)
		code, out, errOut := runCommand(t, "rabbitmq", "plan")
		assert.Equal(t, exitUsage, code, text)
		assert.Contains(t, errOut, text)
		assert.NotContains(t, out+errOut, "s3cret")
	}
	setenv(t, "CURFEW_PRIMARY_URL=amqp://ann:s3cret@"+storetest.FreeAddr())
	code, _, errOut := runCommand(t, "rabbitmq", "plan")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "connect to RabbitMQ")
	assert.NotContains(t, errOut, "s3cret")
}
