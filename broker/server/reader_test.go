package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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
