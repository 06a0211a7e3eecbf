//go:build linux

package server_test

import (
	"bufio"
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server"
)

// TestBlockedClientsThatAreGone: a connection that is not read because publishers are blocked ends
// when its client has gone, in any way, and stays while its client is there. On real sockets.
func TestBlockedClientsThatAreGone(t *testing.T) {
	var x site
	bo := broker.Options{MemoryLimit: memoryLimit, MemoryInUse: x.memory.Load}
	b, err := broker.New(bo)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := server.New(server.Options{Broker: b})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, l) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, b.Close())
	}()
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	x.memory.Store(memoryLimit + 1)
	require.Eventually(t, b.Alarm.Blocked, time.Minute, time.Millisecond)

	const body, many = 4000, 5000 // more than the buffers of both sides hold
	publish := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{RoutingKey: "q"})
	publish = amqp.AppendContent(publish, 1, []byte{0, 0}, make([]byte, body), 4096)
	blocked := func(heartbeat uint16) *raw {
		nc, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		c := (&raw{Conn: nc, t: t, r: bufio.NewReader(nc)}).open(heartbeat)
		c.write(publish)
		return c
	}
	const heartbeat = 3 // a busy machine may keep a client from beating for as much as twice that
	crowded, beating, quiet := blocked(heartbeat), blocked(heartbeat), blocked(0)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range many - 1 {
			if _, err := crowded.Write(publish); err != nil {
				return
			}
		}
	}()
	beat, beatEnd := time.NewTicker(300*time.Millisecond), make(chan struct{})
	defer beat.Stop()
	defer close(beatEnd)
	go func() {
		for {
			select {
			case <-beat.C:
				beating.Conn.Write([]byte{amqp.FrameHeartbeat, 0, 0, 0, 0, 0, 0, 0xce})
			case <-beatEnd:
				return
			}
		}
	}()
	began := time.Now()
	silent, closed, reset, resetQuiet := blocked(heartbeat), blocked(heartbeat), blocked(heartbeat), blocked(0)
	defer silent.Close()
	require.Equal(t, 7, s.Connections())
	closed.Close()
	for _, c := range []*raw{reset, resetQuiet} {
		require.NoError(t, c.Conn.(*net.TCPConn).SetLinger(0))
		c.Close()
	}
	require.Eventually(t, func() bool { return s.Connections() == 3 }, time.Minute, time.Millisecond)
	assert.GreaterOrEqual(t, time.Since(began), 2*heartbeat*time.Second, "silence lasts two heartbeats")
	assert.Less(t, time.Since(began), 30*time.Second)
	assert.Never(t, func() bool { return s.Connections() < 3 }, 2*time.Second, 10*time.Millisecond)

	x.memory.Store(0)
	<-written
	require.Eventually(t, func() bool { return q.Info().Ready == many+2 }, time.Minute, time.Millisecond, "nothing of those who are there is lost")
	for _, c := range []*raw{crowded, beating, quiet} {
		require.NoError(t, c.Close())
	}
}
