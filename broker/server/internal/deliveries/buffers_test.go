package deliveries

import (
	"bytes"
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

func TestAMessageInManyPartsIsCopiedFewTimes(t *testing.T) {
	const size, part = 5 << 20, 700
	var b, want []byte
	copied := 0
	for i := 0; len(want) < size; i++ {
		p := bytes.Repeat([]byte{byte(i)}, min(part, size-len(want)))
		want = append(want, p...)
		was := cap(b)
		if b = Extended(b, p, size); cap(b) != was {
			copied += len(b)
		}
		require.LessOrEqual(t, cap(b), max(size, size1M))
	}
	assert.True(t, bytes.Equal(want, b))
	assert.Less(t, copied, 2*size)
	RecycleBuffer(b)
}
