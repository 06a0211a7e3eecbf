package server

import (
	"net"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/amqp"
)

// The reader gives the socket its deadline back when it was reminded. If it was forced
// to close in the same moment it must not wait for its client first.
func TestReminderDoesNotHideAForcedClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		defer ours.Close()
		c := newConnection(&Server{log: zap.NewNop()}, ours)
		c.phase = running
		c.remind()
		c.forceClose(amqp.NewException(amqp.ConnectionForced, 0, 0, "closed by the test"))
		require.True(t, c.wasReminded())
		_, err := ours.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}
