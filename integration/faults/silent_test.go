package faults

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"curfew/broker/amqp"
	"curfew/integration/faults/history"
)

const silentCount = 50

// silentPublisher is a client that does not announce that it understands
// connection.blocked, and fails if it is sent one all the same.
type silentPublisher struct {
	log   *history.Log
	name  string
	conn  net.Conn
	in    *bufio.Reader
	ended chan struct{}

	confirmed atomic.Int64
	blocked   atomic.Bool
}

func (tr *trial) silentPublisher(name string) *silentPublisher {
	tr.t.Helper()
	conn, err := net.Dial("tcp", tr.process.address())
	check(tr.t, err)
	tr.t.Cleanup(func() { conn.Close() })
	s := &silentPublisher{log: tr.log, name: name, conn: conn, in: bufio.NewReader(conn), ended: make(chan struct{})}
	s.login(tr.t)
	go s.listen()
	return s
}

func (s *silentPublisher) login(t *testing.T) {
	t.Helper()
	s.write(t, []byte(amqp.ProtocolHeader))
	s.expect(t, "connection.start")
	s.send(t, 0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest"), Locale: "en_US"})
	s.expect(t, "connection.tune")
	s.send(t, 0, &amqp.ConnectionTuneOk{Tuning: amqp.Tuning{ChannelMax: 10, FrameMax: 1 << 17}}, &amqp.ConnectionOpen{VirtualHost: "/"})
	s.expect(t, "connection.open-ok")
	s.send(t, 1, &amqp.ChannelOpen{})
	s.expect(t, "channel.open-ok")
	s.send(t, 1, &amqp.ConfirmSelect{})
	s.expect(t, "confirm.select-ok")
}

func (s *silentPublisher) write(t *testing.T, b []byte) {
	t.Helper()
	_, err := s.conn.Write(b)
	check(t, err)
}

func (s *silentPublisher) send(t *testing.T, channel uint16, methods ...amqp.Method) {
	t.Helper()
	var b []byte
	for _, m := range methods {
		b = amqp.AppendMethod(b, channel, m)
	}
	s.write(t, b)
}

// method reads up to the next method frame.
func (s *silentPublisher) method() (amqp.Method, error) {
	for {
		head, err := s.in.Peek(7)
		if err != nil {
			return nil, err
		}
		whole := make([]byte, 7+binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(s.in, whole); err != nil {
			return nil, err
		}
		f, _, err := amqp.ParseFrame(whole, uint32(len(whole)))
		if err != nil {
			return nil, err
		}
		if f.Type == amqp.FrameMethod {
			return amqp.ParseMethod(f.Payload, amqp.Limits{})
		}
	}
}

func (s *silentPublisher) expect(t *testing.T, name string) {
	t.Helper()
	m, err := s.method()
	check(t, err)
	if got := amqp.IDOf(m).String(); got != name {
		t.Fatalf("got %s, not %s", got, name)
	}
}

// listen notes the confirms, which come in order.
func (s *silentPublisher) listen() {
	defer close(s.ended)
	for {
		m, err := s.method()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *amqp.BasicAck:
			for tag := s.confirmed.Load(); tag < int64(m.DeliveryTag); tag++ {
				s.log.Append(history.Event{Kind: history.Confirmed, At: now(), ID: s.id(tag)})
			}
			s.confirmed.Store(int64(m.DeliveryTag))
		case *amqp.ConnectionBlocked, *amqp.ConnectionUnblocked:
			s.blocked.Store(true)
		}
	}
}

func (s *silentPublisher) id(i int64) string { return fmt.Sprintf("%s-%d", s.name, i) }

// publish sends a few messages and waits for nothing.
func (s *silentPublisher) publish(t *testing.T) {
	t.Helper()
	for i := range int64(silentCount) {
		p := amqp.Properties{DeliveryMode: 2, MessageID: s.id(i)}
		body := noise[i*100:][:100]
		s.log.Append(history.Event{
			Kind: history.Publish, At: now(), By: s.name, ID: s.id(i), Queues: []string{work}, Persistent: true,
			Sum: sum(s.id(i), "", "", nil, body),
		})
		b := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{RoutingKey: work})
		s.write(t, amqp.AppendContent(b, 1, p.Append(nil), body, 1<<17))
	}
}

// unanswered holds the broker to having confirmed nothing, and said nothing.
func (s *silentPublisher) unanswered(t *testing.T) {
	t.Helper()
	if n := s.confirmed.Load(); n != 0 {
		t.Errorf("%d persistent messages were confirmed on a full disk", n)
	}
}

// answered waits for all confirms.
func (s *silentPublisher) answered(t *testing.T) {
	t.Helper()
	eventually(t, fullLimit, "the silent client's confirms", func() bool { return s.confirmed.Load() == silentCount })
	if s.blocked.Load() {
		t.Error("a client that did not ask for connection.blocked was sent it")
	}
}
