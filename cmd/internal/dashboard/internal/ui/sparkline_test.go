package ui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSparkline(t *testing.T) {
	require.Nil(t, Sparkline(nil, ""))
	require.Nil(t, Sparkline([]int64{-1, -1}, ""))
	var page strings.Builder
	require.NoError(t, Sparkline([]int64{-1, 0, 50, 100, -1, 7, -1}, "depth").Render(&page))
	require.Contains(t, page.String(), `d="M1 23L2 12L3 1M5 22h1"`)
	require.Contains(t, page.String(), "depth: at most 100, now 7")
}
