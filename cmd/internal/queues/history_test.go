package queues

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSparkline(t *testing.T) {
	value := func(n float64) *float64 { return &n }
	assert.Equal(t, "▁▅█ ▁", sparkline([]*float64{value(0), value(5), value(9), nil, value(0)}))
	assert.Equal(t, "▁▁", sparkline([]*float64{value(0), value(0)}))
	assert.Empty(t, strings.TrimSpace(sparkline([]*float64{nil, nil})))
}
