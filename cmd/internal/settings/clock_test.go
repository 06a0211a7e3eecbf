package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
