package server_test

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker/amqp"
	"curfew/broker/server"
)

// FuzzConnection sends whole connections to a server: what a stranger sends from the first
// byte on, and what a logged-in client sends with the methods of two channels in any order,
// including broken frames. The server must answer with frames that parse, requeue
// everything unacked, end its goroutines, and report no bug.
func FuzzConnection(f *testing.F) {
	for _, name := range []string{"", "AMQP\x00\x00\x09\x01", "AMQP\x00\x01\x00\x00", "GET / HTTP/1.1\r\n\r\n"} {
		f.Add(false, []byte(name))
	}
	for first := range len(moves) {
		f.Add(true, []byte{0, 1, 2, 3, 2, 1, byte(first), 7, 5, 3, 1, byte(first), 250, 16, 3, 90, byte(first), 1, 2, 2, 0, 4, 19, 5, 80})
	}
	f.Fuzz(func(t *testing.T, loggedIn bool, data []byte) {
		core, logged := observer.New(zapcore.ErrorLevel)
		run(t, server.Options{Log: zap.New(core)}, func(x *site) {
			nc := x.l.dial()
			received := x.receive(nc)
			nc.SetWriteDeadline(time.Now().Add(time.Hour))
			if loggedIn {
				speak(nc, &tape{rest: data})
			} else {
				nc.Write(data)
			}
			synctest.Wait()
			nc.Close()
			<-received
			synctest.Wait()
			x.nothingHeld()
		})
		assert.Empty(t, logged.All())
	})
}

// receive parses what the server sends until the connection ends.
func (x *site) receive(nc net.Conn) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		all, _ := io.ReadAll(nc) // the end of the pipe is not an error of the server
		if len(all) == 8 && string(all[:4]) == "AMQP" {
			return
		}
		for len(all) > 0 {
			frame, n, err := amqp.ParseFrame(all, 1<<20)
			require.NoError(x.t, err)
			if n == 0 {
				return // cut off at the end
			}
			if frame.Type == amqp.FrameMethod {
				_, err = amqp.ParseMethod(frame.Payload, amqp.Limits{})
				require.NoError(x.t, err)
			}
			all = all[n:]
		}
	}()
	return done
}

// nothingHeld: a connection that has ended holds no message and no consumer.
func (x *site) nothingHeld() {
	vhost, _ := x.b.VHost("/")
	for _, name := range fuzzQueues {
		if q, err := vhost.Queues.Get(name); err == nil {
			_, unacked, consumers := q.Messages.Counts()
			assert.Zero(x.t, unacked, name)
			assert.Zero(x.t, consumers, name)
		}
	}
}

// speak logs in and makes the moves that are on the tape.
func speak(nc net.Conn, p *tape) {
	login := []byte(amqp.ProtocolHeader)
	login = amqp.AppendMethod(login, 0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest")})
	login = amqp.AppendMethod(login, 0, &amqp.ConnectionTuneOk{})
	login = amqp.AppendMethod(login, 0, &amqp.ConnectionOpen{VirtualHost: "/"})
	login = amqp.AppendMethod(login, 1, &amqp.ChannelOpen{})
	if _, err := nc.Write(login); err != nil {
		return
	}
	for len(p.rest) > 0 {
		bytes := moves[int(p.next())%len(moves)](p)
		if _, err := nc.Write(bytes); err != nil {
			return
		}
	}
}

// tape is the source of a seed's choices; beyond its end they are all 0.
type tape struct {
	rest []byte
	sent uint32 // messages of AMQP 1.0
}

func (p *tape) next() byte {
	if len(p.rest) == 0 {
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *tape) flag() bool { return p.next()&1 == 1 }

func (p *tape) take(n int) []byte {
	n = min(n, len(p.rest))
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func pick[T any](p *tape, from []T) T { return from[int(p.next())%len(from)] }

// channel is 1 most of the time; 2 must be opened first, 0 is the connection's.
func (p *tape) channel() uint16 { return pick(p, []uint16{1, 1, 1, 1, 2, 2, 0}) }

var (
	fuzzQueues    = []string{"q", "r", "s"}
	fuzzNames     = []string{"q", "r", "s", "", "amq.rabbitmq.reply-to", "amq.reserved", "none", "curfew.undeliverable", "ü\x00"}
	fuzzExchanges = []string{"", "amq.direct", "amq.topic", "amq.fanout", "amq.headers", "x", "y", "none", "amq.none"}
	fuzzKeys      = []string{"q", "r", "", "a.b", "#", "*.b", "amq.rabbitmq.reply-to.x", "amq.rabbitmq.reply-to"}
	fuzzKinds     = []string{"direct", "fanout", "topic", "headers", "x-delayed-message", "x-none", ""}
	fuzzArguments = []string{"x-message-ttl", "x-expires", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length", "x-max-length-bytes",
		"x-overflow", "x-max-priority", "x-single-active-consumer", "x-priority", "x-queue-type", "x-delivery-limit", "alternate-exchange",
		"x-delayed-type", "x-match", "x-delay", "x-expires-at", "x-scheduled-enqueue-time", "x-lock-duration", "x-dead-letter-queue", "x-death", "CC", "BCC"}
	fuzzValues = []any{int32(1), int64(-1), int32(0), int64(1 << 62), "", "x", "q", "reject-publish", "drop-head", "quorum", "classic", true, nil,
		"topic", int32(5), []any{"q", "r"}, amqp.Table{"a": int32(1)}, []byte("bytes"), 1.5, int8(3)}
	fuzzExpirations = []string{"", "0", "1", "1000", "-1", "315360000001", "soon"}
)

func (p *tape) table() amqp.Table {
	t := amqp.Table{}
	for range p.next() % 4 {
		t[pick(p, fuzzArguments)] = pick(p, fuzzValues)
	}
	return t
}

// method makes a move with a method drawn from the tape.
func method(make func(*tape) amqp.Method) func(*tape) []byte {
	return func(p *tape) []byte { return amqp.AppendMethod(nil, p.channel(), make(p)) }
}

// moves are what a client may do next. Their order is part of the stored corpus: add at the
// end.
var moves = []func(*tape) []byte{
	method(func(p *tape) amqp.Method {
		return &amqp.QueueDeclare{Queue: pick(p, fuzzNames), Passive: p.next()%8 == 7, Durable: p.flag(), Exclusive: p.next()%4 == 3,
			AutoDelete: p.next()%4 == 3, NoWait: p.flag(), Arguments: p.table()}
	}),
	publishMove,
	method(func(p *tape) amqp.Method {
		return &amqp.BasicConsume{Queue: pick(p, fuzzNames), ConsumerTag: pick(p, fuzzKeys), NoAck: p.flag(), Exclusive: p.next()%4 == 3,
			NoWait: p.flag(), Arguments: p.table()}
	}),
	method(func(p *tape) amqp.Method { return &amqp.BasicGet{Queue: pick(p, fuzzNames), NoAck: p.flag()} }),
	method(func(p *tape) amqp.Method {
		return &amqp.BasicAck{DeliveryTag: uint64(p.next() % 8), Multiple: p.flag()}
	}),
	method(func(p *tape) amqp.Method {
		return &amqp.BasicNack{DeliveryTag: uint64(p.next() % 8), Multiple: p.flag(), Requeue: p.flag()}
	}),
	method(func(p *tape) amqp.Method {
		return &amqp.BasicReject{DeliveryTag: uint64(p.next() % 8), Requeue: p.flag()}
	}),
	method(func(p *tape) amqp.Method {
		return &amqp.BasicQos{PrefetchCount: uint16(p.next() % 4), Global: p.flag(), PrefetchSize: uint32(p.next() / 255)}
	}),
	method(func(p *tape) amqp.Method { return &amqp.BasicRecover{Requeue: p.flag()} }),
	method(func(p *tape) amqp.Method { return &amqp.BasicCancel{ConsumerTag: pick(p, fuzzKeys), NoWait: p.flag()} }),
	method(func(p *tape) amqp.Method { return &amqp.QueuePurge{Queue: pick(p, fuzzNames), NoWait: p.flag()} }),
	method(func(p *tape) amqp.Method {
		return &amqp.QueueDelete{Queue: pick(p, fuzzNames), IfUnused: p.flag(), IfEmpty: p.flag(), NoWait: p.flag()}
	}),
	method(func(p *tape) amqp.Method {
		return &amqp.QueueBind{Queue: pick(p, fuzzNames), Exchange: pick(p, fuzzExchanges), RoutingKey: pick(p, fuzzKeys), NoWait: p.flag(), Arguments: p.table()}
	}),
	method(func(p *tape) amqp.Method {
		return &amqp.QueueUnbind{Queue: pick(p, fuzzNames), Exchange: pick(p, fuzzExchanges), RoutingKey: pick(p, fuzzKeys), Arguments: p.table()}
	}),
	method(func(p *tape) amqp.Method {
		return &amqp.ExchangeDeclare{Exchange: pick(p, fuzzExchanges), Type: pick(p, fuzzKinds), Passive: p.next()%8 == 7, Durable: p.flag(),
			AutoDelete: p.next()%4 == 3, Internal: p.next()%4 == 3, NoWait: p.flag(), Arguments: p.table()}
	}),
	method(func(p *tape) amqp.Method { return &amqp.ExchangeBind{ExchangeBinding: exchangeBinding(p)} }),
	method(func(p *tape) amqp.Method { return &amqp.ExchangeUnbind{ExchangeBinding: exchangeBinding(p)} }),
	method(func(p *tape) amqp.Method {
		return &amqp.ExchangeDelete{Exchange: pick(p, fuzzExchanges), IfUnused: p.flag(), NoWait: p.flag()}
	}),
	method(func(p *tape) amqp.Method { return &amqp.ConfirmSelect{NoWait: p.flag()} }),
	method(func(p *tape) amqp.Method {
		return pick(p, []amqp.Method{&amqp.TxSelect{}, &amqp.TxCommit{}, &amqp.TxRollback{}})
	}),
	method(func(*tape) amqp.Method { return &amqp.ChannelOpen{} }),
	method(func(p *tape) amqp.Method {
		return pick(p, []amqp.Method{&amqp.ChannelCloseOk{}, &amqp.ChannelClose{}, &amqp.ChannelFlow{Active: true}, &amqp.ChannelFlowOk{},
			&amqp.ConnectionUpdateSecret{NewSecret: []byte("guest")}, &amqp.BasicRecoverAsync{Requeue: true}, &amqp.ConnectionClose{}})
	}),
	func(p *tape) []byte { return p.take(int(p.next() % 32)) }, // bytes that are not a frame
	func(p *tape) []byte { // a frame with any content
		f := []byte{1 + p.next()%4, 0, byte(p.channel()), 0, 0, 0, p.next() % 32}
		return append(append(f, p.take(int(f[6]))...), amqp.FrameEnd)
	},
	func(p *tape) []byte { // time passes
		time.Sleep(time.Duration(p.next()) * 10 * time.Millisecond)
		return nil
	},
}

func exchangeBinding(p *tape) amqp.ExchangeBinding {
	return amqp.ExchangeBinding{Destination: pick(p, fuzzExchanges), Source: pick(p, fuzzExchanges), RoutingKey: pick(p, fuzzKeys), NoWait: p.flag(), Arguments: p.table()}
}

// publishMove is a publish with its content, occasionally with a body of another length
// than announced.
func publishMove(p *tape) []byte {
	channel := p.channel()
	b := amqp.AppendMethod(nil, channel, &amqp.BasicPublish{Exchange: pick(p, fuzzExchanges), RoutingKey: pick(p, fuzzKeys), Mandatory: p.flag(), Immediate: p.next() == 255})
	props := amqp.Properties{DeliveryMode: 1 + p.next()%2, Headers: p.table(), Expiration: pick(p, fuzzExpirations), ReplyTo: pick(p, fuzzNames), Priority: p.next() % 12}
	body := p.take(int(p.next() % 16))
	b = amqp.AppendContent(b, channel, props.Append(nil), body, 4096)
	if p.next()%16 == 15 {
		b = b[:len(b)-int(p.next())%len(b)]
	}
	return b
}
