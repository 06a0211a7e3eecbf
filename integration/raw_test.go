package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"curfew/broker/amqp"
)

const (
	rawLimit = 2 * time.Minute
	frameMax = 131072
)

// raw is a connection below any client library: it writes what it is told to, right or wrong.
type raw struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func dialRaw(t testing.TB, url string) *raw {
	t.Helper()
	addr := url[strings.LastIndex(url, "@")+1:]
	conn, err := net.DialTimeout("tcp", addr, rawLimit)
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	return &raw{t: t, conn: conn, in: bufio.NewReader(conn)}
}

func (r *raw) write(b ...byte) {
	r.t.Helper()
	check(r.t, r.conn.SetWriteDeadline(time.Now().Add(rawLimit)))
	if _, err := r.conn.Write(b); err != nil && !errors.Is(err, net.ErrClosed) {
		r.t.Logf("write: %v", err) // the broker may have closed already; what it answered is read next
	}
}

func (r *raw) send(channel uint16, methods ...amqp.Method) {
	r.t.Helper()
	var b []byte
	for _, m := range methods {
		b = amqp.AppendMethod(b, channel, m)
	}
	r.write(b...)
}

// frame reads the next frame; its payload is valid until the next read.
func (r *raw) frame() (amqp.Frame, error) {
	const header = 7
	check(r.t, r.conn.SetReadDeadline(time.Now().Add(rawLimit)))
	head, err := r.in.Peek(header)
	if err != nil {
		return amqp.Frame{}, err
	}
	size := int(head[3])<<24 | int(head[4])<<16 | int(head[5])<<8 | int(head[6])
	whole := make([]byte, header+size+1)
	if _, err := io.ReadFull(r.in, whole); err != nil {
		return amqp.Frame{}, err
	}
	f, _, err := amqp.ParseFrame(whole, uint32(len(whole)))
	return f, err
}

func (r *raw) method() (amqp.Method, error) {
	for {
		f, err := r.frame()
		if err != nil {
			return nil, err
		}
		if f.Type == amqp.FrameMethod {
			return amqp.ParseMethod(f.Payload, amqp.Limits{})
		}
	}
}

// expectMethod reads up to the method of that name ("connection.tune").
func (r *raw) expectMethod(name string) amqp.Method {
	r.t.Helper()
	m, err := r.method()
	check(r.t, err)
	if got := amqp.IDOf(m).String(); got != name {
		r.t.Fatalf("got %s, not %s", got, name)
	}
	return m
}

// greet goes as far as the broker's connection.start.
func (r *raw) greet() *raw {
	r.t.Helper()
	r.write([]byte(amqp.ProtocolHeader)...)
	r.expectMethod("connection.start")
	return r
}

// login goes as far as an open connection and an open channel 1.
func (r *raw) login() *raw {
	r.t.Helper()
	return r.loginAs("guest", "guest", "/")
}

func (r *raw) loginAs(user, password, vhost string) *raw {
	r.t.Helper()
	r.greet()
	r.send(0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00" + user + "\x00" + password), Locale: "en_US"})
	r.expectMethod("connection.tune")
	r.send(0, &amqp.ConnectionTuneOk{Tuning: amqp.Tuning{ChannelMax: 10, FrameMax: frameMax}}, &amqp.ConnectionOpen{VirtualHost: vhost})
	r.expectMethod("connection.open-ok")
	r.send(1, &amqp.ChannelOpen{})
	r.expectMethod("channel.open-ok")
	return r
}

func (r *raw) startOk(password string, properties amqp.Table) {
	r.t.Helper()
	r.send(0, &amqp.ConnectionStartOk{ClientProperties: properties, Mechanism: "PLAIN", Response: []byte("\x00guest\x00" + password), Locale: "en_US"})
}

// answer says what the broker does next: "close CODE TEXT", "channel close CODE TEXT", the bytes of a protocol header, or "hang up".
func (r *raw) answer() string {
	r.t.Helper()
	check(r.t, r.conn.SetReadDeadline(time.Now().Add(rawLimit)))
	if head, err := r.in.Peek(len(amqp.ProtocolHeader)); err == nil && bytes.HasPrefix(head, []byte("AMQP")) {
		return fmt.Sprintf("%q", head)
	}
	for {
		m, err := r.method()
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			return "no answer"
		case err != nil:
			return "hang up"
		}
		switch m := m.(type) {
		case *amqp.ConnectionClose:
			return fmt.Sprintf("close %d %s", m.ReplyCode, m.ReplyText)
		case *amqp.ChannelClose:
			return fmt.Sprintf("channel close %d %s", m.ReplyCode, m.ReplyText)
		}
	}
}
