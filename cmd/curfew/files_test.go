package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
)

func TestConnectionsLeaveFilesToTheStore(t *testing.T) {
	assert.Equal(t, 64, connectionsWithin(128))
	assert.Equal(t, 1, connectionsWithin(10))
	assert.Equal(t, 1<<31-filesReserved, connectionsWithin(1<<63))
	assert.Equal(t, 1, connectionLimit(1, zap.NewNop()), "what is asked, where it fits")
}
