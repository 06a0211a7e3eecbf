package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server"
)

// BenchmarkPublishConfirmDeliverAck is the whole way of a message of 100 octets over a socket, by
// one client that publishes and consumes on one channel, 100 messages at a time.
func BenchmarkPublishConfirmDeliverAck(b *testing.B) {
	const batch = 100
	c := benchClient(b)
	c.call(&amqp.QueueDeclare{Queue: "q"})
	c.call(&amqp.ConfirmSelect{})
	c.call(&amqp.BasicConsume{Queue: "q", ConsumerTag: "c"})
	message := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{RoutingKey: "q"})
	message = amqp.AppendContent(message, 1, []byte{0, 0}, make([]byte, 100), 0)
	var out []byte
	b.ReportAllocs()
	for range b.N / batch {
		out = out[:0]
		for range batch {
			out = append(out, message...)
		}
		c.write(out)
		out = out[:0]
		for delivered, confirmed := 0, uint64(0); delivered < batch || confirmed < c.published+batch; {
			id, arguments := c.read()
			switch id {
			case amqp.BasicDeliverID:
				delivered++
				tag := binary.BigEndian.Uint64(arguments[2:]) // behind the consumer tag "c"
				out = amqp.AppendAck(out, 1, tag, false)
			case amqp.BasicAckID:
				confirmed = binary.BigEndian.Uint64(arguments)
			}
		}
		c.published += batch
		c.write(out)
	}
}

type benchConn struct {
	b *testing.B
	net.Conn
	r         *bufio.Reader
	frame     []byte
	published uint64
}

// benchClient starts a server without a store and opens a connection with channel 1.
func benchClient(b *testing.B) *benchConn {
	br, err := broker.New(broker.Options{})
	require.NoError(b, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.New(server.Options{Broker: br}).Serve(ctx, l) }()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(b, err)
	b.Cleanup(func() {
		nc.Close()
		stop()
		require.NoError(b, <-ended)
		require.NoError(b, br.Close())
	})
	c := &benchConn{b: b, Conn: nc, r: bufio.NewReaderSize(nc, 64<<10)}
	c.write([]byte(amqp.ProtocolHeader))
	c.read()
	c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest")}))
	c.read()
	c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionTuneOk{}))
	c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionOpen{VirtualHost: "/"}))
	c.read()
	c.call(&amqp.ChannelOpen{})
	return c
}

func (c *benchConn) write(out []byte) {
	_, err := c.Write(out)
	require.NoError(c.b, err)
}

// call sends a method on channel 1 and reads the answer.
func (c *benchConn) call(m amqp.Method) {
	c.write(amqp.AppendMethod(nil, 1, m))
	c.read()
}

// read returns the next frame's method and what follows its number; 0 for other frames.
func (c *benchConn) read() (id amqp.MethodID, arguments []byte) {
	head, err := c.r.Peek(7)
	if err != nil {
		c.b.Fatal(err)
	}
	size := 7 + int(binary.BigEndian.Uint32(head[3:])) + 1
	isMethod := head[0] == amqp.FrameMethod
	frame, err := c.r.Peek(size)
	if err != nil {
		c.b.Fatal(err)
	}
	c.frame = append(c.frame[:0], frame...)
	_, _ = c.r.Discard(size)
	if !isMethod {
		return 0, nil
	}
	return amqp.MethodID(binary.BigEndian.Uint32(c.frame[7:])), c.frame[11:]
}
