package server_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker/amqp10"
	"curfew/broker/server"
)

// FuzzConnection10 sends whole connections of AMQP 1.0 to a server: what a stranger sends after the header, and what a logged-in client sends
// with the performatives of two sessions in any order, with wrong windows, handles and numbers, and with broken frames. The server must answer
// with frames that parse, requeue everything unsettled, end its goroutines, and report no bug. The stored corpus is what go-amqp, rhea,
// qpid-proton and RabbitMQ's Go client have sent, from declaring to settling, as it was read from their sockets.
func FuzzConnection10(f *testing.F) {
	f.Add(false, []byte(amqp10.ProtocolHeader))
	f.Add(false, []byte(amqp10.SASLHeader+"\x00\x00\x00\x08\x02\x01\x00\x00"))
	published, taken := []byte{0, 0, 0, 0, 0, 65, 1, 0, 0, 0, 4, 0, 0, 0, 0}, []byte{1, 0, 10}
	for last := range byte(len(moves10)) {
		settled := []byte{2, 0, 0, 0, 1, 1, last % 5, 0, 0}
		f.Add(true, slices.Concat([]byte{last % 3, 2}, published, published, taken, settled, []byte{last, 0, 1, 2, 3, 0, 1, 1, 0, 4, 2, 0}, published))
	}
	f.Fuzz(func(t *testing.T, loggedIn bool, data []byte) {
		core, logged := observer.New(zapcore.ErrorLevel)
		run(t, server.Options{Log: zap.New(core)}, func(x *site) {
			ch := x.channel(x.connect())
			for _, name := range fuzzQueues {
				_, err := ch.QueueDeclare(name, false, false, false, false, nil)
				require.NoError(x.t, err)
			}
			nc := x.l.dial()
			received := x.framesOf(nc)
			nc.SetWriteDeadline(time.Now().Add(time.Hour))
			if loggedIn {
				speak10(nc, &tape{rest: data})
			} else {
				nc.Write(append([]byte(amqp10.SASLHeader), data...))
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

// framesOf parses what the server sends until the connection ends.
func (x *site) framesOf(nc net.Conn) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		all, _ := io.ReadAll(nc) // the end of the pipe is not an error of the server
		for len(all) > 0 {
			if len(all) >= 8 && string(all[:4]) == "AMQP" {
				all = all[8:]
				continue
			}
			frame, n, err := amqp10.ParseFrame(all, 1<<20)
			require.NoError(x.t, err)
			if n == 0 {
				return // cut off at the end
			}
			if len(frame.Body) > 0 {
				_, _, err = amqp10.ParsePerformative(frame.Body)
				require.NoError(x.t, err)
			}
			all = all[n:]
		}
	}()
	return done
}

// speak10 logs in, opens a session with a receiver and a sender, and makes the moves that are on the tape.
func speak10(nc net.Conn, p *tape) {
	login := []byte(amqp10.SASLHeader)
	login = amqp10.AppendFrame(login, 0, &amqp10.SASLInit{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest")}, nil)
	login = append(login, amqp10.ProtocolHeader...)
	login = amqp10.AppendFrame(login, 0, &amqp10.Open{ContainerID: "fuzz", MaxFrameSize: pick(p, []uint32{512, 4096, amqp10.Unlimited}), ChannelMax: 7}, nil)
	login = amqp10.AppendFrame(login, 0, &amqp10.Begin{IncomingWindow: pick(p, []uint32{0, 1, 2048}), OutgoingWindow: 2048, HandleMax: 7}, nil)
	login = amqp10.AppendFrame(login, 0, &amqp10.Attach{Name: "out", Handle: 0, Target: &amqp10.Target{Address: "/queues/q"}}, nil)
	login = amqp10.AppendFrame(login, 0, &amqp10.Attach{Name: "in", Handle: 1, Role: amqp10.RoleReceiver, Source: &amqp10.Source{Address: "/queues/q"}}, nil)
	if _, err := nc.Write(login); err != nil {
		return
	}
	for len(p.rest) > 0 {
		move, channel := moves10[int(p.next())%len(moves10)], pick(p, []uint16{0, 0, 0, 0, 1, 7, 8})
		var bytes []byte
		if performative, payload := move(p); performative != nil {
			bytes = amqp10.AppendFrame(nil, channel, performative, payload)
		} else {
			bytes = payload
		}
		if _, err := nc.Write(bytes); err != nil {
			return
		}
	}
}

var addresses10 = []any{"/queues/q", "/queues/r", "/queues/none", "/exchanges/amq.topic/a.b", "/exchanges/amq.fanout", "/exchanges/amq.direct/q", "", nil, "q", "/queues/%", "/management", uint32(5)}

func (p *tape) uint() uint32 {
	return pick(p, []uint32{0, 1, 2, 3, 5, 100, 1 << 31, amqp10.Unlimited})
}

func (p *tape) optUint() amqp10.OptUint {
	if p.flag() {
		return amqp10.OptUint{}
	}
	return amqp10.Uint(p.uint())
}

func (p *tape) handle() uint32 { return pick(p, []uint32{0, 1, 0, 1, 2, 3, 7, 8, amqp10.Unlimited}) }

func (p *tape) state10() *amqp10.State {
	if p.next()%5 == 4 {
		return nil
	}
	return &amqp10.State{Kind: amqp10.StateReceived + uint64(p.next()%5), DeliveryFailed: p.flag(), UndeliverableHere: p.flag()}
}

// message10 is a message, or a part of one.
func (p *tape) message10() (b []byte) {
	for range 1 + p.next()%3 {
		switch p.next() % 5 {
		case 0:
			b = append(b, 0, 0x53, 0x75, 0xa0, 2, 'm', '!')
		case 1:
			b = amqp10.AppendPerformative(b, &amqp10.Header{Durable: p.flag(), Priority: p.next(), TTL: p.optUint()})
		case 2:
			b = append(b, 0, 0x53, 0x77, 0x43)
		case 3:
			b = append(b, 0, 0x53, 0x73, 0xc0, 1, 0)
		case 4:
			b = append(b, p.take(int(p.next()))...)
		}
	}
	return b
}

// moves10 are what a client may do next; without a performative the octets are sent as they are. Their order is part of the stored corpus: add
// at the end.
var moves10 = []func(*tape) (amqp10.Performative, []byte){
	func(p *tape) (amqp10.Performative, []byte) {
		one := &amqp10.Transfer{Handle: p.handle(), DeliveryID: amqp10.Uint(p.sent)}
		if p.next()%8 == 7 {
			one.DeliveryID = p.optUint()
		}
		one.DeliveryTag, one.MessageFormat = p.take(1+int(p.next()%40)), p.optUint()
		one.Settled, one.More, one.ReceiverMode, one.State = p.flag(), p.flag(), p.next()%3, p.state10()
		one.Resume, one.Aborted = p.next()%16 == 15, p.next()%8 == 7
		if !one.More {
			p.sent++
		}
		return one, p.message10()
	},
	func(p *tape) (amqp10.Performative, []byte) {
		return &amqp10.Flow{IncomingWindow: 100, OutgoingWindow: 100, Handle: amqp10.Uint(1), DeliveryCount: amqp10.Uint(0), LinkCredit: amqp10.Uint(uint32(p.next()))}, nil
	},
	func(p *tape) (amqp10.Performative, []byte) {
		return &amqp10.Disposition{Role: p.next()%4 != 3, First: p.uint(), Last: p.optUint(), Settled: p.flag(), State: p.state10()}, nil
	},
	func(p *tape) (amqp10.Performative, []byte) {
		return &amqp10.Attach{Name: pick(p, fuzzNames), Handle: p.handle(), Role: p.flag(), SenderMode: p.next() % 4, ReceiverMode: p.next() % 3, Source: &amqp10.Source{Address: pick(p, addresses10), Dynamic: p.next()%16 == 15},
			Target: &amqp10.Target{Address: pick(p, addresses10), Coordinator: p.next()%16 == 15}, InitialDeliveryCount: p.optUint(), MaxMessageSize: uint64(p.uint())}, nil
	},
	func(p *tape) (amqp10.Performative, []byte) {
		return &amqp10.Detach{Handle: p.handle(), Closed: p.flag()}, nil
	},
	func(p *tape) (amqp10.Performative, []byte) {
		return &amqp10.Flow{NextIncomingID: p.optUint(), IncomingWindow: p.uint(), NextOutgoingID: p.uint(), OutgoingWindow: p.uint(), Handle: amqp10.Uint(p.handle()), DeliveryCount: p.optUint(),
			LinkCredit: p.optUint(), Drain: p.flag(), Echo: p.flag()}, nil
	},
	func(p *tape) (amqp10.Performative, []byte) {
		return &amqp10.Begin{RemoteChannel: p.optUint(), IncomingWindow: p.uint(), OutgoingWindow: p.uint(), HandleMax: p.uint()}, nil
	},
	func(*tape) (amqp10.Performative, []byte) { return &amqp10.End{}, nil },
	func(p *tape) (amqp10.Performative, []byte) {
		if p.next()%8 != 0 {
			return nil, amqp10.Heartbeat
		}
		return &amqp10.Close{}, nil
	},
	func(p *tape) (amqp10.Performative, []byte) {
		if p.next()%8 != 0 {
			return nil, nil
		}
		return nil, p.take(int(p.next()))
	},
	func(p *tape) (amqp10.Performative, []byte) {
		ask := amqp10.AppendPerformative(nil, &amqp10.Properties{
			Subject: pick(p, []any{"GET", "PUT", "DELETE", "POST"}), MessageID: "id",
			To: pick(p, []any{"/queues/q", "/queues/q/messages", "/exchanges/x", "/bindings", "/bindings/src=x;dstq=q;key=;args=", "/bindings?src=x&dstq=q&key=", "/", "queues/%", nil}),
		})
		body := pick(p, []any{nil, "text", amqp10.Map{}, amqp10.Map{{Key: "durable", Value: p.flag()}, {Key: "arguments", Value: amqp10.Map{}}}, amqp10.Map{
			{Key: "source", Value: "x"}, {Key: "destination_queue", Value: "q"}, {Key: "binding_key", Value: ""},
		}})
		one := &amqp10.Transfer{Handle: p.handle(), DeliveryID: amqp10.Uint(p.sent), Settled: p.flag()}
		p.sent++
		return one, amqp10.AppendSection(ask, amqp10.SectionValue, body)
	},
}
