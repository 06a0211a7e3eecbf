package load

import (
	"cmp"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"curfew/broker/amqp"
)

const (
	frameMax = 131072
	// answerTimeout is how long a broker may take to answer a method; a loaded one takes seconds for a declare.
	answerTimeout = 60 * time.Second
	channel       = 1 // the only channel of a connection
)

// properties request an explanation for a wrong password; otherwise a broker just closes
// the connection.
var properties = amqp.Table{"product": "curfew load", "capabilities": amqp.Table{"authentication_failure_close": true}}

// Conn is a connection with channel 1 open, without any client library. One goroutine may
// write while another reads.
type Conn struct {
	net.Conn
	buf      []byte // buf[from:to] was read and is not consumed yet
	from, to int
	out      []byte
}

// logIn logs in at an amqp:// or amqps:// URL and opens channel 1.
func logIn(rawURL string) (*Conn, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	nc, err := dial(u)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	c := &Conn{Conn: nc, buf: make([]byte, 4096)}
	if err := c.login(u); err != nil {
		nc.Close()
		return nil, fmt.Errorf("load: log in at %s: %w", u.Host, err)
	}
	return c, nil
}

func dial(u *url.URL) (net.Conn, error) {
	port, secure := "5672", u.Scheme == "amqps"
	if secure {
		port = "5671"
	} else if u.Scheme != "amqp" {
		return nil, fmt.Errorf("%q is not an amqp:// or amqps:// URL", u.Redacted())
	}
	addr := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	if secure {
		return tls.Dial("tcp", addr, nil)
	}
	return net.DialTimeout("tcp", addr, answerTimeout)
}

func (c *Conn) login(u *url.URL) error {
	user, password := "guest", "guest"
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	vhost := "/"
	if len(u.Path) > 1 {
		vhost = strings.TrimPrefix(u.Path, "/")
	}
	c.out = append(c.out, amqp.ProtocolHeader...)
	start := &amqp.ConnectionStartOk{ClientProperties: properties, Mechanism: "PLAIN", Response: []byte("\x00" + user + "\x00" + password), Locale: "en_US"}
	if _, err := c.Call(0, start, amqp.ConnectionStartID); err != nil {
		return err
	}
	tune, err := c.await(amqp.ConnectionTuneID)
	if err != nil {
		return err
	}
	if offered := tune.(*amqp.ConnectionTune).FrameMax; offered > 0 && offered < frameMax {
		return fmt.Errorf("the broker's frame_max is %d, but %d is needed", offered, frameMax)
	}
	c.queueMethod(0, &amqp.ConnectionTuneOk{Tuning: amqp.Tuning{ChannelMax: 1, FrameMax: frameMax}})
	if _, err := c.Call(0, &amqp.ConnectionOpen{VirtualHost: vhost}, amqp.ConnectionOpenOkID); err != nil {
		return err
	}
	_, err = c.Call(channel, &amqp.ChannelOpen{}, amqp.ChannelOpenOkID)
	return err
}

// Call sends a method and waits for the answer of that kind. A broker may wait for the
// protocol header before it sends connection.start. The header goes out with the first
// method, so neither side waits for the other.
func (c *Conn) Call(ch uint16, m amqp.Method, answer amqp.MethodID) (amqp.Method, error) {
	c.queueMethod(ch, m)
	if err := c.flush(); err != nil {
		return nil, err
	}
	return c.await(answer)
}

// queueMethod adds a method to the next flush.
func (c *Conn) queueMethod(ch uint16, m amqp.Method) { c.out = amqp.AppendMethod(c.out, ch, m) }

func (c *Conn) flush() error {
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// await reads until a method of that kind arrives. A close of the channel or the connection
// is an error.
func (c *Conn) await(id amqp.MethodID) (amqp.Method, error) {
	c.SetReadDeadline(time.Now().Add(answerTimeout))
	defer c.SetReadDeadline(time.Time{})
	for {
		f, n, err := amqp.ParseFrame(c.buf[c.from:c.to], frameMax+amqp.FrameOverhead)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			if err := c.fill(); err != nil {
				return nil, fmt.Errorf("while waiting for %s: %w", id, err)
			}
			continue
		}
		c.from += n
		if f.Type != amqp.FrameMethod {
			continue
		}
		m, err := amqp.ParseMethod(f.Payload, amqp.Limits{})
		if err != nil {
			return nil, err
		}
		if amqp.IDOf(m) == id {
			return m, nil
		}
		if err := closing(m); err != nil {
			return nil, err
		}
	}
}

// fill reads more into the buffer, after making room.
func (c *Conn) fill() error {
	if c.from > 0 {
		c.to = copy(c.buf, c.buf[c.from:c.to])
		c.from = 0
	}
	if c.to == len(c.buf) {
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
	n, err := c.Read(c.buf[c.to:])
	c.to += n
	switch {
	case n > 0:
		return nil
	case errors.Is(err, io.EOF):
		return errHungUp
	}
	return cmp.Or(err, io.ErrNoProgress)
}

// closing returns the broker's reason for closing the channel or connection, or nil for any
// other method.
func closing(m amqp.Method) error {
	switch m := m.(type) {
	case *amqp.ChannelClose:
		return fmt.Errorf("load: the broker closed the channel: %d %s", m.ReplyCode, m.ReplyText)
	case *amqp.ConnectionClose:
		return fmt.Errorf("load: the broker closed the connection: %d %s", m.ReplyCode, m.ReplyText)
	}
	return nil
}

var errHungUp = errors.New("load: the broker closed the connection without a reason")

var errFrame = errors.New("load: the broker sent something that is not an AMQP frame")

// arrivals is the result of walking through a buffer.
type arrivals struct {
	deliveries int
	lastTag    uint64 // of the last delivery
	onBody     func(body []byte)
	onConfirm  func(tag uint64, multiple, nack bool)
	tag        uint64 // of the delivery in progress
	fresh      bool   // the next body frame is the first of a message
}

// walk consumes the complete frames at the front of b. It counts deliveries whose body has
// begun or is empty, and passes on bodies (their first frame) and confirms.
func (a *arrivals) walk(b []byte) (used int, err error) {
	for len(b)-used >= amqp.FrameOverhead {
		f := b[used:]
		end := 7 + int(binary.BigEndian.Uint32(f[3:]))
		if len(f) <= end {
			return used, nil
		}
		if f[end] != amqp.FrameEnd {
			return used, errFrame
		}
		switch f[0] {
		case amqp.FrameHeader:
			if a.fresh && binary.BigEndian.Uint64(f[7+4:]) == 0 {
				a.arrived()
			}
		case amqp.FrameBody:
			if a.fresh {
				a.onBody(f[7:end])
				a.arrived()
			}
		case amqp.FrameMethod:
			if err := a.method(f[7:end]); err != nil {
				return used, err
			}
		}
		used += end + 1
	}
	return used, nil
}

func (a *arrivals) arrived() {
	a.fresh = false
	a.deliveries++
	a.lastTag = a.tag
}

func (a *arrivals) method(p []byte) error {
	id := amqp.MethodID(binary.BigEndian.Uint32(p))
	switch id {
	case amqp.BasicDeliverID:
		a.tag = binary.BigEndian.Uint64(p[5+int(p[4]):])
		a.fresh = true
	case amqp.BasicAckID, amqp.BasicNackID:
		a.onConfirm(binary.BigEndian.Uint64(p[4:]), p[12]&1 != 0, id == amqp.BasicNackID)
	case amqp.ConnectionCloseOkID:
		return net.ErrClosed
	case amqp.ChannelCloseID, amqp.ConnectionCloseID:
		m, err := amqp.ParseMethod(p, amqp.Limits{})
		if err != nil {
			return err
		}
		return closing(m)
	}
	return nil
}
