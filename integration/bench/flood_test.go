package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/integration/bench/load"
)

func TestFloodIsJudged(t *testing.T) {
	judge := func(published, consumed, bounded, p99 float64) bool {
		f := &flood{work: "100 B, 1P1C", closed: &row{}, consumed: &row{}, published: &row{}}
		f.closed.Rate.add(bounded)
		f.published.Rate.add(published)
		f.consumed.add(load.Result{Consumed: consumed, TotalConsumed: 1, Latency: &load.Summary{P99: p99}}, 0, true)
		return f.judge().Met
	}
	assert.True(t, judge(1000, 800, 1600, 999_999))
	assert.False(t, judge(1000, 799, 1000, 1), "consumers fall behind")
	assert.False(t, judge(400, 400, 1000, 1), "producers are throttled for nothing")
	assert.False(t, judge(1000, 1000, 1000, 1_000_000), "what is delivered is old")
	assert.False(t, judge(1000, 1000, 1000, 0), "nothing was delivered")
	assert.False(t, judge(0, 0, 0, 1))
}
