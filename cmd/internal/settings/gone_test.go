package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGoneVariables: each variable of an earlier version is refused by name, with what to do instead.
func TestGoneVariables(t *testing.T) {
	for name := range goneVariables {
		for _, set := range []string{name, name + "_FILE"} {
			setenv(t, set+"=x")
			_, err := Load()
			var usage Error
			require.ErrorAs(t, err, &usage)
			assert.ErrorContains(t, err, set+": this variable no longer exists; ")
		}
	}
	for _, s := range variablesOf(new(Settings)) {
		assert.NotContains(t, goneVariables, s.name)
	}
	setenv(t, "CURFEW_ALERT_SLACK_URL=https://hooks.slack.com/services/T/B/secret", "CURFEW_HEARTBEAT_URL=x")
	_, err := Load()
	assert.ErrorContains(t, err, "slack://hook:T-B-X@webhook")
	assert.ErrorContains(t, err, "deadManSwitch.url")
	assert.NotContains(t, err.Error(), "secret")
}
