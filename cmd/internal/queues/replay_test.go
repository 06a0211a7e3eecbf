package queues

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadletters"
)

func TestProgress(t *testing.T) {
	under := func(total, scanned, matched, replayed, limit int) string {
		run := &deadletters.Replay{State: deadletters.Running, Total: total, Scanned: scanned, Matched: matched, Replayed: replayed}
		run.Limit = limit
		return progress(run)
	}
	assert.Equal(t, "[..............................]   0%  0 replayed", under(10, 0, 0, 0, 0))
	assert.Equal(t, "[###############...............]  50%  4 replayed", under(10, 0, 5, 4, 0), "the first page is not done yet")
	assert.Equal(t, "[###############...............]  50%  1 replayed", under(10, 5, 1, 1, 0))
	assert.Equal(t, "[###############...............]  50%  5 replayed", under(1000, 0, 5, 5, 10), "half of what was asked for")
	assert.Equal(t, "[##############################] 100%  11 replayed", under(10, 10, 11, 11, 0))
	assert.Contains(t, progress(&deadletters.Replay{State: deadletters.Done, Total: 10}), "100%")
}
