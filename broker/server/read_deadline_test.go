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

// After an ack check the reader resets the read deadline. If the connection was forced to
// close at the same moment, the reader must not wait for its client first.
func TestReminderDoesNotHideAForcedClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		defer ours.Close()
		c := newConnection(&Server{log: zap.NewNop()}, ours)
		c.phase = running
		c.deadline.requestCheck()
		c.forceClose(amqp.NewException(amqp.ConnectionForced, 0, 0, "closed by the test"))
		require.True(t, c.deadline.takeCheck(func() bool { return c.ctx.Err() != nil }))
		_, err := ours.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}
