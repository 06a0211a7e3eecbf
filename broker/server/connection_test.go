package server

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
)

// slowToClose is a socket that takes time to close, as TLS may.
type slowToClose struct {
	net.Conn
	closed atomic.Bool
}

func (c *slowToClose) Close() error {
	time.Sleep(time.Second)
	c.closed.Store(true)
	return c.Conn.Close()
}

// A connection counts until its socket is closed.
func TestConnectionEndsAfterItsSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nc := net.Pipe()
		socket := &slowToClose{Conn: nc}
		c := newConnection(&Server{log: zap.NewNop()}, socket)
		c.out.Close()
		<-c.out.Gone
		assert.True(t, socket.closed.Load())
	})
}
