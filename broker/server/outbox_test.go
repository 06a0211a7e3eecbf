package server

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/amqp"
)

// wired gives fn an outbox and the other end of its socket.
func wired(t *testing.T, fn func(o *outbox, client net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		client, nc := net.Pipe()
		c := newConnection(&Server{log: zap.NewNop()}, nc)
		fn(&c.out, client)
		c.out.close()
		rest, err := io.ReadAll(client)
		assert.NoError(t, err)
		assert.Empty(t, rest, "all was read that was sent, and then it ended")
		<-c.out.gone
	})
}

func (o *outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.writing
}

// A connection that has nothing to send has no writer goroutine.
func TestWriterRunsWhileThereIsSomethingToSend(t *testing.T) {
	wired(t, func(o *outbox, client net.Conn) {
		assert.True(t, o.idle())
		want := amqp.AppendMethod(nil, 1, &amqp.ChannelOpenOk{})
		for range 3 {
			o.send(1, &amqp.ChannelOpenOk{})
			synctest.Wait()
			assert.False(t, o.idle(), "nobody takes it")
			got := make([]byte, len(want))
			_, err := io.ReadFull(client, got)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			synctest.Wait()
			assert.True(t, o.idle())
		}
	})
}

// What was sent before the end is delivered, whoever sends at that moment.
func TestOutboxEndsAfterWhatIsThere(t *testing.T) {
	wired(t, func(o *outbox, client net.Conn) {
		want := amqp.AppendMethod(nil, 1, &amqp.ChannelOpenOk{})
		o.send(1, &amqp.ChannelOpenOk{})
		o.send(1, &amqp.ChannelOpenOk{})
		synctest.Wait()
		o.send(1, &amqp.ChannelOpenOk{})
		o.close()
		got := make([]byte, 3*len(want))
		_, err := io.ReadFull(client, got)
		require.NoError(t, err)
	})
}

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
		c.out.close()
		<-c.out.gone
		assert.True(t, socket.closed.Load())
	})
}

// A client receives something in each half of the interval, and no heartbeats beside other
// traffic.
func TestHeartbeatsAreSentInSilence(t *testing.T) {
	const interval = 10 * time.Second
	wired(t, func(o *outbox, client net.Conn) {
		o.heartbeats(interval)
		beat := make([]byte, len(amqp.AppendHeartbeat(nil)))
		hear := func() {
			last := time.Now()
			_, err := io.ReadFull(client, beat)
			require.NoError(t, err)
			assert.Equal(t, amqp.AppendHeartbeat(nil), beat)
			assert.LessOrEqual(t, time.Since(last), interval/2)
		}
		for range 20 {
			hear()
		}
		reply := make([]byte, len(amqp.AppendMethod(nil, 1, &amqp.ChannelOpenOk{})))
		send := func(after time.Duration) {
			time.Sleep(after)
			o.send(1, &amqp.ChannelOpenOk{})
			_, err := io.ReadFull(client, reply)
			require.NoError(t, err)
			assert.EqualValues(t, amqp.FrameMethod, reply[0])
		}
		for phase := range 20 { // the connection becomes silent at any moment between two checks
			send(interval / 40 * time.Duration(phase%10))
			hear()
		}
		send(interval / 5)
		for range 20 {
			send(interval / 5)
		}
	})
}
