package integration

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/amqp"
)

const header091 = `"AMQP\x00\x00\t\x01"`

// badInput is what a hostile or broken client sends after having come as far as from goes, and what must be answered (a pattern).
var badInput = []struct {
	name   string
	from   func(*raw) *raw
	send   func(*raw)
	answer string
}{
	{"AMQP 1.0 without SASL", connected, sends("AMQP\x00\x01\x00\x00"), regexp.QuoteMeta(`"AMQP\x03\x01\x00\x00"`)},
	{"AMQP 0-8", connected, sends("AMQP\x01\x01\x08\x00"), regexp.QuoteMeta(header091)},
	{"HTTP", connected, sends("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), regexp.QuoteMeta(header091)},
	{"TLS hello", connected, sends("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), regexp.QuoteMeta(header091)},

	{"4 GiB frame before authentication", greeted, sends("\x01\x00\x00\xff\xff\xff\xff"), `close 501 FRAME_ERROR.*|hang up`},
	{"frame over the handshake's limit", greeted, sends("\x01\x00\x00\x00\x00\x20\x01"), `close 501 FRAME_ERROR.*|hang up`},
	{"method before authentication", greeted, func(r *raw) { r.send(1, &amqp.ChannelOpen{}) }, `close 50[0-9] .*|hang up`},
	{"unknown mechanism", greeted, func(r *raw) {
		r.send(0, &amqp.ConnectionStartOk{Mechanism: "GSSAPI", Response: []byte("x"), Locale: "en_US"})
	}, `close 50[0-9] .*GSSAPI.*|hang up`},
	{"PLAIN without a password", greeted, func(r *raw) {
		r.send(0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("guest"), Locale: "en_US"})
	}, `close .*|hang up`},
	{"wrong password", greeted, func(r *raw) { r.startOk("wrong", nil) }, `hang up`},
	{"wrong password, close understood", greeted, func(r *raw) {
		r.startOk("wrong", amqp.Table{"capabilities": amqp.Table{"authentication_failure_close": true}})
	}, `close 403 ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN\. For details see the broker logfile\.`},
	{"wrong virtual host", greeted, func(r *raw) {
		r.startOk("guest", nil)
		r.expectMethod("connection.tune")
		r.send(0, &amqp.ConnectionTuneOk{Tuning: amqp.Tuning{ChannelMax: 10, FrameMax: frameMax}}, &amqp.ConnectionOpen{VirtualHost: "nowhere"})
	}, `close 530 NOT_ALLOWED - vhost nowhere not found`},
	{"frame size below the minimum", greeted, func(r *raw) {
		r.startOk("guest", nil)
		r.expectMethod("connection.tune")
		r.send(0, &amqp.ConnectionTuneOk{Tuning: amqp.Tuning{ChannelMax: 10, FrameMax: 100}}, &amqp.ConnectionOpen{VirtualHost: "/"})
	}, `close 530 .*`},

	{"4 GiB frame", loggedIn, sends("\x01\x00\x01\xff\xff\xff\xff"), `close 501 FRAME_ERROR.*`},
	{"wrong frame end", loggedIn, sends("\x01\x00\x01\x00\x00\x00\x04\x00\x14\x00\x0a\x00"), `close 501 FRAME_ERROR.*`},
	{"unknown frame type", loggedIn, sends("\x09\x00\x01\x00\x00\x00\x00\xce"), `close 501 FRAME_ERROR.*`},
	{"unknown method", loggedIn, sends("\x01\x00\x01\x00\x00\x00\x04\x00\x3c\x03\xe7\xce"), `close 540 NOT_IMPLEMENTED.*|close 50[0-9] .*`},
	{"method cut short", loggedIn, sends("\x01\x00\x01\x00\x00\x00\x05\x00\x32\x00\x0a\x00\xce"), `close 50[12] .*`},
	{"closed channel", loggedIn, func(r *raw) { r.send(7, &amqp.BasicGet{Queue: "q"}) }, `close 504 CHANNEL_ERROR.*`},
	{"channel opened twice", loggedIn, func(r *raw) { r.send(1, &amqp.ChannelOpen{}) }, `close 504 CHANNEL_ERROR.*`},
	{"channel over the maximum", loggedIn, func(r *raw) { r.send(11, &amqp.ChannelOpen{}) }, `close 530 .*|close 504 .*`},
	{"header without publish", loggedIn, func(r *raw) {
		r.write(amqp.AppendContent(nil, 1, []byte{0, 0}, nil, frameMax)...)
	}, `close 505 UNEXPECTED_FRAME.*`},
	{"body without header", loggedIn, func(r *raw) {
		r.send(1, &amqp.BasicPublish{RoutingKey: "q"})
		r.write(frameOf(amqp.FrameBody, 1, []byte("body"))...)
	}, `close 505 UNEXPECTED_FRAME.*`},
	{"method instead of body", loggedIn, func(r *raw) {
		r.send(1, &amqp.BasicPublish{RoutingKey: "q"})
		r.write(contentHeader(10)...)
		r.send(1, &amqp.BasicGet{Queue: "q"})
	}, `close 505 UNEXPECTED_FRAME.*`},
	{"body longer than declared", loggedIn, func(r *raw) {
		r.send(1, &amqp.BasicPublish{RoutingKey: "q"})
		r.write(contentHeader(2)...)
		r.write(frameOf(amqp.FrameBody, 1, []byte("three"))...)
	}, `close 50[0-9] .*`},
	{"body of 2^63", loggedIn, func(r *raw) {
		r.send(1, &amqp.BasicPublish{RoutingKey: "q"})
		r.write(contentHeader(1 << 63)...)
	}, `(channel )?close (311|406|501|502) .*`},
	{"table nested 20,000 deep", loggedIn, func(r *raw) { r.write(queueDeclare(nestedTable(20000))...) }, `close 50[12] .*`},
	{"table of 10,000 fields", loggedIn, func(r *raw) { r.write(queueDeclare(bytes.Repeat([]byte("\x01aV"), 10000))...) }, `close 50[12] .*`},
	{"table longer than its frame", loggedIn, func(r *raw) {
		b := queueDeclare([]byte("\x01aV"))
		binary.BigEndian.PutUint32(b[len(b)-8:], 0xfffffff0)
		r.write(b...)
	}, `close 50[12] .*`},
	{"heartbeat on a channel", loggedIn, func(r *raw) { r.write(frameOf(amqp.FrameHeartbeat, 1, nil)...) }, `close 50[0-9] .*`},
}

func connected(r *raw) *raw { return r }
func greeted(r *raw) *raw   { return r.greet() }
func loggedIn(r *raw) *raw  { return r.login() }

func sends(text string) func(*raw) { return func(r *raw) { r.write([]byte(text)...) } }

func frameOf(kind uint8, channel uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(append(b, payload...), amqp.FrameEnd)
}

func contentHeader(bodySize uint64) []byte {
	payload := binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, bodySize)
	return frameOf(amqp.FrameHeader, 1, append(payload, 0, 0))
}

// queueDeclare is a queue.declare whose arguments table has the given content.
func queueDeclare(table []byte) []byte {
	payload := append([]byte{0, 50, 0, 10, 0, 0, 1, 'q', 0}, binary.BigEndian.AppendUint32(nil, uint32(len(table)))...)
	return frameOf(amqp.FrameMethod, 1, append(payload, table...))
}

func nestedTable(depth int) (b []byte) {
	sizes := 6 * depth // each level: an empty key, F, and the length of what is inside
	for range depth {
		sizes -= 6
		b = append(b, 0, 'F')
		b = binary.BigEndian.AppendUint32(b, uint32(sizes))
	}
	return b
}

// TestBadInput: each piece of bad input is answered, and costs nobody else anything: another client's connection works on, and its
// messages are still there.
func TestBadInput(t *testing.T) {
	t.Parallel()
	c := startBinary(t, mustBinary(t, raced))
	witness := newWitness(t, c)
	for _, bad := range badInput {
		t.Run(bad.name, func(t *testing.T) {
			r := bad.from(dialRaw(t, c.url))
			bad.send(r)
			if got := r.answer(); !regexp.MustCompile(`^(` + bad.answer + `)$`).MatchString(got) {
				t.Errorf("answer %q, not %q", got, bad.answer)
			}
			witness.works(t)
		})
	}
	witness.lost(t)
}

// TestDeclaredSizeAllocatesNothing: a 4 GiB frame header costs no memory, however many send one.
func TestDeclaredSizeAllocatesNothing(t *testing.T) {
	c := startCurfew(t)
	before := c.residentBytes()
	for range 50 {
		r := dialRaw(t, c.url).greet()
		r.write([]byte("\x01\x00\x00\xff\xff\xff\xff")...)
		r.answer()
	}
	if grown := c.residentBytes() - before; grown > 32<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}

// TestRandomBytes: 300 clients log in and talk nonsense, some of it framed.
func TestRandomBytes(t *testing.T) {
	t.Parallel()
	c := startBinary(t, mustBinary(t, raced))
	witness := newWitness(t, c)
	random := rand.New(rand.NewPCG(7, 11))
	for range 300 {
		noise := make([]byte, 1+random.IntN(200))
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		r := dialRaw(t, c.url).login()
		r.write(frameOf(uint8(1+random.IntN(3)), uint16(random.IntN(2)), noise)...)
		r.write(noise...)
		r.conn.Close()
	}
	witness.works(t)
	witness.lost(t)
}

// witness is a well-behaved client with messages of its own.
type witness struct {
	ch    *amqp091.Channel
	count int
}

func newWitness(t *testing.T, c *curfew) *witness {
	t.Helper()
	w := &witness{ch: openChannel(t, dial(t, c.url)), count: 100}
	_, err := w.ch.QueueDeclare("witness", true, false, false, false, nil)
	check(t, err)
	check(t, w.ch.Confirm(false))
	for range w.count {
		w.publish(t)
	}
	return w
}

func (w *witness) publish(t *testing.T) {
	t.Helper()
	confirm, err := w.ch.PublishWithDeferredConfirm("", "witness", true, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent})
	check(t, err)
	if !confirm.Wait() {
		t.Error("not confirmed")
	}
}

func (w *witness) works(t *testing.T) {
	t.Helper()
	w.publish(t)
	d, ok, err := w.ch.Get("witness", false)
	check(t, err)
	if !ok {
		t.Fatal("the witness's queue is empty")
	}
	check(t, d.Ack(false))
}

// lost counts what is still queued.
func (w *witness) lost(t *testing.T) {
	t.Helper()
	q, err := w.ch.QueueDeclarePassive("witness", true, false, false, false, nil)
	check(t, err)
	if q.Messages != w.count {
		t.Errorf("the witness has %d messages, not %d", q.Messages, w.count)
	}
}
