package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/scheduler/storetest"
)

// TestRabbitMQPlanChecksItsSettings before it asks a RabbitMQ.
func TestRabbitMQPlanChecksItsSettings(t *testing.T) {
	for text, settings := range map[string][]string{
		"CURFEW_PRIMARY_URL is not set":            {"CURFEW_WATCH=a"},
		"CURFEW_PRIMARY_URL: the value (a secret":  {"CURFEW_PRIMARY_URL=ann:s3cret@h"},
		"CURFEW_WATCH_FILE: open /does/not/exist":  {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH_FILE=/does/not/exist"},
		"did you mean CURFEW_PRIMARY_URL":          {"CURFEW_PRIMARY_UR=amqp://h"},
		"CURFEW_WATCH and CURFEW_WATCH_FILE":       {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH=a", "CURFEW_WATCH_FILE=b"},
		`CURFEW_WATCH: "hold:*" is not allowed`:    {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH=hold:*"},
		"management API has to begin with http://": {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_PRIMARY_API_URL=ann:s3cret@h"},
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

// TestRulesWithoutRabbitMQ: rules for a RabbitMQ that is not named are a mistake for whoever serves. A command that asks a running Curfew, in
// the same shell, does not look at them.
func TestRulesWithoutRabbitMQ(t *testing.T) {
	for _, rules := range []string{"CURFEW_WATCH=keep:retry", "CURFEW_WATCH_FILE=/does/not/exist", "CURFEW_PRIMARY_API_URL=http://h:15672"} {
		name, value, _ := strings.Cut(rules, "=")
		setenv(t, rules)
		for _, command := range []string{"serve", "config"} {
			code, _, errOut := runCommand(t, command)
			assert.Equal(t, exitUsage, code, command)
			assert.Contains(t, errOut, name+`: the value "`+value+`" is about a RabbitMQ, and CURFEW_PRIMARY_URL names none`)
		}
		for _, command := range [][]string{{"status"}, {"rabbitmq", "status"}, {"queue", "list"}} {
			code, _, errOut := runCommand(t, append(command, "--url", "http://"+storetest.FreeAddr())...)
			assert.NotEqual(t, exitUsage, code, errOut)
			assert.NotZero(t, code)
			assert.NotContains(t, errOut, name)
		}
	}
}
