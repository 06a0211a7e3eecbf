package node

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHTTPOnAMQP: what comes in on a port for AMQP has the limits of HTTP, and is closed when nobody serves it any more.
func TestHTTPOnAMQP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := &web{connections: newConnLimit("HTTP", 1)}
		h := newHandover()
		stop := background(t.Context(), pages.server(), h, func(err error) { t.Error(err) })
		give := func() net.Conn {
			client, served := net.Pipe()
			h.give(served)
			return client
		}
		asks := func(client net.Conn) error {
			if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
				return err
			}
			_, err := http.ReadResponse(bufio.NewReader(client), nil)
			synctest.Wait() // until it is idle
			return err
		}
		first := give()
		require.NoError(t, asks(first))
		second := give()
		require.NoError(t, asks(second))
		require.Error(t, asks(first), "it was idle when there were too many")
		silent, since := give(), time.Now()
		_, err := silent.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		assert.Equal(t, webHeaderTimeout, time.Since(since))
		stop()
		_, err = give().Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF)
	})
}
