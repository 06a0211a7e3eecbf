package queues

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadletters"
)

// TestDeathsOfADeadLetter: the newest first, as x-death has them.
func TestDeathsOfADeadLetter(t *testing.T) {
	l := wholeLetter{deadletters.Whole{Item: deadletters.Item{Deaths: []deadletters.Death{
		{Queue: "jobs", Reason: "rejected", Keys: []string{"jobs"}, Count: 1},
		{Queue: "jobs.retry", Reason: "expired", Keys: []string{"jobs.retry"}, Count: 3},
	}}}}
	var out strings.Builder
	require.NoError(t, l.write(&out))
	newest := strings.Index(out.String(), `of "rejected" in "jobs", 1 time, published to "" with ["jobs"]`)
	oldest := strings.Index(out.String(), `of "expired" in "jobs.retry", 3 times, published to "" with ["jobs.retry"]`)
	assert.Positive(t, newest)
	assert.Greater(t, oldest, newest)
}

// TestNamesOfHeadersAreEscaped: whoever publishes chooses them, and a terminal would obey what is in them.
func TestNamesOfHeadersAreEscaped(t *testing.T) {
	l := wholeLetter{deadletters.Whole{Item: deadletters.Item{Queued: deadletters.Queued{Message: deadletters.Message{Properties: map[string]any{"headers": map[string]any{"\x1b[2J": "v"}}}}}}}
	var out strings.Builder
	require.NoError(t, l.write(&out))
	assert.NotContains(t, out.String(), "\x1b")
	assert.Regexp(t, `(?m)^header \S*2J +v$`, out.String())
}
