package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/server"
)

// pipes is a listener with connections in memory, so that a synctest bubble's clock can
// move while they are idle.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipes) dial() net.Conn {
	client, srv := net.Pipe()
	l.conns <- srv
	return client
}

// site is a server in a bubble.
type site struct {
	t *testing.T
	l *pipes
	b *broker.Broker
	s *server.Server

	memory atomic.Int64 // the memory that the broker believes is in use, of memoryLimit
}

const memoryLimit = 64 << 20

// setAlarm raises or clears a resource alarm.
func (x *site) setAlarm(closed bool) {
	x.memory.Store(0)
	if closed {
		x.memory.Store(memoryLimit + 1)
	}
	time.Sleep(time.Second)
}

// run gives fn a running server in virtual time and stops it afterwards.
func run(t *testing.T, o server.Options, fn func(*site)) {
	runWith(t, broker.Options{}, o, fn)
}

// runWith is run with options for the broker.
func runWith(t *testing.T, bo broker.Options, o server.Options, fn func(*site)) {
	synctest.Test(t, func(t *testing.T) {
		x := &site{t: t, l: &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}}
		bo.Clock, bo.MemoryLimit, bo.MemoryInUse = func() int64 { return time.Now().UnixNano() }, memoryLimit, x.memory.Load
		b, err := broker.New(bo)
		require.NoError(t, err)
		o.Broker = b
		x.b, x.s = b, server.New(o)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- x.s.Serve(ctx, x.l) }()
		fn(x)
		stop()
		assert.NoError(t, <-ended)
		assert.Zero(t, x.s.Connections())
		assert.NoError(t, b.Close())
	})
}

// connect opens a connection with the real client library.
func (x *site) connect() *amqp091.Connection {
	x.t.Helper()
	c, err := x.tryConnect(amqp091.Config{})
	require.NoError(x.t, err)
	return c
}

func (x *site) tryConnect(cfg amqp091.Config) (*amqp091.Connection, error) {
	cfg.Dial = func(string, string) (net.Conn, error) { return x.l.dial(), nil }
	return amqp091.DialConfig("amqp://guest:guest@pipe/", cfg)
}

func (x *site) channel(c *amqp091.Connection) *amqp091.Channel {
	x.t.Helper()
	ch, err := c.Channel()
	require.NoError(x.t, err)
	return ch
}

func (x *site) queue(ch *amqp091.Channel, name string, args amqp091.Table) {
	x.t.Helper()
	_, err := ch.QueueDeclare(name, false, false, false, false, args)
	require.NoError(x.t, err)
}

func (x *site) publish(ch *amqp091.Channel, key string, bodies ...string) {
	x.t.Helper()
	for _, body := range bodies {
		require.NoError(x.t, ch.Publish("", key, false, false, amqp091.Publishing{Body: []byte(body)}))
	}
}

// settled returns what has arrived on a consumer once nothing moves.
func (x *site) settled(deliveries <-chan amqp091.Delivery) (got []amqp091.Delivery) {
	for {
		synctest.Wait()
		select {
		case d, ok := <-deliveries:
			if !ok {
				return got
			}
			got = append(got, d)
		default:
			return got
		}
	}
}

// raw is a client that reads only when the test says so.
type raw struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

// raw opens a connection with channel 1.
func (x *site) raw() *raw {
	nc := x.l.dial()
	return (&raw{Conn: nc, t: x.t, r: bufio.NewReader(nc)}).open(0)
}

// open opens the connection, with that heartbeat in seconds, and channel 1.
func (c *raw) open(heartbeat uint16) *raw {
	c.greet()
	c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest")}))
	c.expect(amqp.ConnectionTuneID)
	c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionTuneOk{Tuning: amqp.Tuning{Heartbeat: heartbeat}}))
	c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionOpen{VirtualHost: "/"}))
	c.expect(amqp.ConnectionOpenOkID)
	c.send(&amqp.ChannelOpen{})
	c.expect(amqp.ChannelOpenOkID)
	return c
}

// greeted opens a connection up to the server's connection.start.
func (x *site) greeted() *raw {
	nc := x.l.dial()
	c := &raw{Conn: nc, t: x.t, r: bufio.NewReader(nc)}
	c.greet()
	return c
}

func (c *raw) greet() {
	c.write([]byte(amqp.ProtocolHeader))
	c.expect(amqp.ConnectionStartID)
}

func (c *raw) send(m amqp.Method) { c.write(amqp.AppendMethod(nil, 1, m)) }

func (c *raw) write(b []byte) {
	_, err := c.Write(b)
	require.NoError(c.t, err)
}

// expect reads the next method, which must be id.
func (c *raw) expect(id amqp.MethodID) {
	c.t.Helper()
	for {
		head := make([]byte, 7)
		_, err := io.ReadFull(c.r, head)
		require.NoError(c.t, err)
		frame := append(head, make([]byte, binary.BigEndian.Uint32(head[3:])+1)...)
		_, err = io.ReadFull(c.r, frame[7:])
		require.NoError(c.t, err)
		if f, _, err := amqp.ParseFrame(frame, 1<<20); f.Type == amqp.FrameMethod {
			require.NoError(c.t, err)
			got, err := amqp.PeekMethod(f.Payload)
			require.NoError(c.t, err)
			require.Equal(c.t, id, got)
			return
		}
	}
}

func bodies(deliveries []amqp091.Delivery) (all []string) {
	for _, d := range deliveries {
		all = append(all, string(d.Body))
	}
	return all
}

// user creates a user with a password derived from the name, and the given permissions in
// "/".
func (x *site) user(name, configure, write, read string) {
	x.t.Helper()
	addUser(x.t, x.b, name)
	require.NoError(x.t, x.b.Accounts.SetPermission(access.Permission{User: name, VHost: "/", Configure: configure, Write: write, Read: read}))
}

func addUser(t *testing.T, b *broker.Broker, name string) {
	t.Helper()
	u := access.User{Name: name}
	u.SetPassword(name)
	require.NoError(t, b.Accounts.PutUser(u))
}

func as(name string) amqp091.Config {
	return amqp091.Config{SASL: []amqp091.Authentication{&amqp091.PlainAuth{Username: name, Password: name}}}
}
