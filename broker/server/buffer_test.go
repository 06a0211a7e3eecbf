package server

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuffersGrowWithTheirContent(t *testing.T) {
	for _, n := range []int{0, 1, buffer4K, buffer4K + 1, buffer64K, buffer256K, buffer1M, buffer1M + 1} {
		b := newBuffer(n)
		require.GreaterOrEqual(t, cap(b), n)
		require.Empty(t, b)
		b = append(b, "content"...)
		b = grownBuffer(b, 2*n+1)
		assert.Equal(t, "content", string(b))
		assert.GreaterOrEqual(t, cap(b)-len(b), 2*n+1)
		recycle(b)
	}
	recycle(nil)
	recycle(make([]byte, 10)) // not from a pool
}

func TestOutboxIsEmptyOnceSent(t *testing.T) {
	var o outbox
	o.init(func() {})
	o.reserveLocked(10)
	o.buf = append(o.buf, "first"...)
	o.reserveLocked(buffer64K)
	o.buf = append(o.buf, bytes.Repeat([]byte("x"), buffer64K)...)
	out, _, _, _ := o.swap()
	assert.Equal(t, "first", string(out[:5]))
	assert.Len(t, out, 5+buffer64K)
	assert.Nil(t, o.buf, "an idle connection holds no buffer")
	o.reserveLocked(1)
	assert.Equal(t, buffer256K, cap(o.buf), "as large as was needed last")
}

func TestUnparsedOctetsMoveToTheFront(t *testing.T) {
	own := make([]byte, readBufferMin)
	for i := range own {
		own[i] = byte(i)
	}
	want := append([]byte(nil), own...)
	half, _, _ := makeRoom(own, len(own)/2, len(own))
	assert.Len(t, half, readBufferMore, "more is waiting than fits")
	buf, from, to := makeRoom(own, 0, len(own))
	assert.Equal(t, []int{0, len(want)}, []int{from, to})
	assert.Equal(t, want, buf[:to])
	assert.Greater(t, len(buf), to)

	copy(buf[len(buf)-len(want):], want)
	buf, from, to = makeRoom(buf, len(buf)-len(want), len(buf))
	assert.Equal(t, want, buf[from:to])
	assert.Len(t, buf, readBufferBusy)

	buf, from, to = makeRoom(buf, len(buf)-10, len(buf))
	assert.Len(t, buf, readBufferBusy, "all but a part of one frame was parsed")
	assert.Equal(t, []int{0, 10}, []int{from, to})

	buf, from, to = makeRoom(buf, 0, len(buf))
	assert.Greater(t, len(buf), to, "a frame that is larger")
	assert.Zero(t, from)
}

func TestOutboxDoesNotAllocate(t *testing.T) {
	var o outbox
	o.init(func() {})
	message := make([]byte, 1000)
	round := func() {
		for range 100 {
			o.reserveLocked(len(message))
			o.buf = append(o.buf, message...)
		}
		out, _, _, _ := o.swap()
		recycle(out)
	}
	round()
	assert.Less(t, testing.AllocsPerRun(200, round), 1.0)
}
