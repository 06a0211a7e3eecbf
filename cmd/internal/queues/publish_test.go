package queues

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAMessageNeverExpiresEarly: the API takes milliseconds, so what is shorter is rounded up.
func TestAMessageNeverExpiresEarly(t *testing.T) {
	p := &publisher{ttl: 1999 * time.Microsecond, delay: 900 * time.Microsecond}
	all, err := p.properties()
	require.NoError(t, err)
	assert.Equal(t, "2", all["expiration"])
	assert.EqualValues(t, 1, all["headers"].(map[string]any)["x-delay"])

	p = &publisher{deadline: "1970-01-01T00:00:01.0001Z"}
	all, err = p.properties()
	require.NoError(t, err)
	assert.EqualValues(t, 1001, all["headers"].(map[string]any)["x-expires-at"])
}
