package node

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
)

func TestConnectionsLeaveFilesToTheStore(t *testing.T) {
	for _, files := range []int{68, 100, 128, 1024, 4096, 1 << 20, math.MaxInt32} {
		s := sharesOf(files)
		assert.LessOrEqual(t, s.amqp+s.http+s.ops+filesReserved, files)
		assert.Positive(t, s.http)
		assert.Positive(t, s.ops)
		assert.GreaterOrEqual(t, s.amqp, s.http)
	}
	assert.Equal(t, fileShares{amqp: 52, http: 8, ops: 4}, sharesOf(128))
	assert.Equal(t, fileShares{amqp: 2, http: 1, ops: 1}, sharesOf(10), "a few in any case")
	assert.Equal(t, 1, connectionLimit(1, zap.NewNop()), "what is asked, where it fits")
}
