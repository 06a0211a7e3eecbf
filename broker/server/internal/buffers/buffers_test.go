package buffers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuffersGrowWithTheirContent(t *testing.T) {
	for _, n := range []int{0, 1, Size4K, Size4K + 1, Size64K, Size256K, size1M, size1M + 1} {
		b := New(n)
		require.GreaterOrEqual(t, cap(b), n)
		require.Empty(t, b)
		b = append(b, "content"...)
		b = Grown(b, 2*n+1)
		assert.Equal(t, "content", string(b))
		assert.GreaterOrEqual(t, cap(b)-len(b), 2*n+1)
		Recycle(b)
	}
	Recycle(nil)
	Recycle(make([]byte, 10)) // not from a pool
}
