package queues

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadletters"
	"curfew/cmd/internal/cli"
)

func TestProgress(t *testing.T) {
	under := func(total, scanned, matched, replayed, limit int) string {
		run := &deadletters.Replay{State: deadletters.Running, Total: total, Scanned: scanned, Matched: matched, Replayed: replayed}
		run.Limit = limit
		return cli.Bar(run.Share())
	}
	assert.Equal(t, "[..............................]   0%", under(10, 0, 0, 0, 0))
	assert.Equal(t, "[###############...............]  50%", under(10, 0, 5, 4, 0), "the first page is not done yet")
	assert.Equal(t, "[###############...............]  50%", under(10, 5, 1, 1, 0))
	assert.Equal(t, "[###############...............]  50%", under(1000, 0, 5, 5, 10), "half of what was asked for")
	assert.Equal(t, "[##############################] 100%", under(10, 10, 11, 11, 0))
	assert.Contains(t, cli.Bar((&deadletters.Replay{State: deadletters.Done, Total: 10}).Share()), "100%")
}
