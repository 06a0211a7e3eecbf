package deliveries

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuffersGrowWithTheirContent(t *testing.T) {
	for _, n := range []int{0, 1, Size4K, Size4K + 1, Size64K, Size256K, size1M, size1M + 1} {
		b := NewBuffer(n)
		require.GreaterOrEqual(t, cap(b), n)
		require.Empty(t, b)
		b = append(b, "content"...)
		b = grown(b, 2*n+1)
		assert.Equal(t, "content", string(b))
		assert.GreaterOrEqual(t, cap(b)-len(b), 2*n+1)
		RecycleBuffer(b)
	}
	RecycleBuffer(nil)
	RecycleBuffer(make([]byte, 10)) // not from a pool
}
