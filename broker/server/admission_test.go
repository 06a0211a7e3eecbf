package server_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/server"
)

// TestDawdlersKeepNobodyOut: connections that send nothing fill the limit. A later client
// is let in once the oldest have had their time.
func TestDawdlersKeepNobodyOut(t *testing.T) {
	run(t, server.Options{MaxHandshakes: 3}, func(x *site) {
		dawdlers := []net.Conn{x.l.dial(), x.l.dial(), x.l.dial()}
		_, err := x.tryConnect(amqp091.Config{})
		require.Error(t, err, "they may still be coming")
		time.Sleep(3 * time.Second)
		x.connect()
		gone := 0
		for _, nc := range dawdlers {
			nc.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := nc.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				gone++
			}
		}
		assert.Equal(t, 1, gone)
		for range 5 {
			x.connect() // open connections do not count
		}
	})
}
