//go:build !race

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
)

// attacks are the cases of TestNeighbour that come over AMQP 0-9-1 or HTTP; some find a neighbour that speaks 1.0. To add one: a name, what it needs
// before, and what it does until its context ends.
var attacks = []attack{
	// Each queue is full with nothing in it and dead-letters to all the others: one message makes as many dead letters as there are
	// ways through the queues.
	{name: "bomb", setup: setBomb, strike: func(ctx context.Context, x *attacker) error {
		return x.publish(ctx, numbered(0), 1, amqp091.Publishing{Body: noise[:100]})
	}, check: afterwards},
	{name: "bomb-by-deadline", over10: true, setup: func(x *attacker) {
		setBomb(x)
		x.queue(fuse, amqp091.Table{"x-dead-letter-exchange": everyone})
	}, strike: func(ctx context.Context, x *attacker) error {
		return x.publish(ctx, fuse, 1, amqp091.Publishing{Expiration: "100", Body: noise[:100]})
	}, check: afterwards},

	// Few messages are due, and each has very many targets.
	{name: "fan-out", setup: func(x *attacker) {
		x.declare(20_000, numbered, everyone, nil)
		x.queue(fuse, amqp091.Table{"x-dead-letter-exchange": everyone})
	}, strike: func(ctx context.Context, x *attacker) error {
		// As many as fit: what is queued may take the memory limit, and then all publishers wait.
		return x.publish(ctx, fuse, 24, amqp091.Publishing{Expiration: "300", Body: noise[:100]})
	}},

	// A pattern that takes forever on each name, while deadlines of its virtual host come.
	{name: "policy", setup: func(x *attacker) {
		x.declare(150, func(i int) string { return fmt.Sprintf("%s%d", strings.Repeat("a", 200), i) }, "", nil)
		x.declare(1, numbered, everyone, nil)
		x.queue(fuse, amqp091.Table{"x-dead-letter-exchange": everyone})
	}, strike: catastrophicPolicy},

	{name: "unfinished-publishes", over10: true, strike: unfinishedPublishes},
	{name: "unfinished-transfers", over10: true, setup: func(x *attacker) { x.queue(fuse, nil) }, strike: unfinishedTransfers},
	{name: "consumer-arguments", over10: true, setup: func(x *attacker) { x.queue(fuse, nil) }, strike: consumerArguments},
	{name: "http-publish", strike: hugeHTTPPublishes},
	{name: "queue-lists", setup: func(x *attacker) { x.declare(45_000, numbered, "", nil) }, strike: listQueues},

	// Dead letters that are to be kept until their target has room, which it never has. They are due when the attack has begun.
	{name: "at-least-once", realDisk: true, setup: func(x *attacker) {
		x.queue(target, amqp091.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
		check(x.t, x.publish(x.ctx, target, 1, amqp091.Publishing{}))
		x.queue(fuse, amqp091.Table{"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
			"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target})
		check(x.t, x.publish(x.ctx, fuse, 250, amqp091.Publishing{DeliveryMode: amqp091.Persistent, Expiration: strconv.Itoa(x.soon(600)), Body: noise[:256<<10]}))
	}, check: idleDisk},

	// The neighbour's messages are large, so that the journal needs new files.
	{name: "descriptors", limits: "ulimit -n 512", settings: []string{"HTTP_ON_AMQP=true"}, bodyBytes: 8 << 10, strike: idleConnections, check: welcomesClients},

	{name: "flood", setup: func(x *attacker) { x.declare(floods, numbered, "", nil) }, strike: flood},
	{name: "flood-beside-10", over10: true, setup: func(x *attacker) { x.declare(floods, numbered, "", nil) }, strike: flood},
}

// attacks10 come over AMQP 1.0, and so do most of the neighbour's clients.
var attacks10 = []attack{
	{name: "endless-transfers", over10: true, setup: func(x *attacker) { x.queue(fuse, nil) }, strike: endlessTransfers},
	{name: "many-links", over10: true, setup: func(x *attacker) { x.queue(fuse, nil) }, strike: manyLinks},
	{name: "flows", setup: func(x *attacker) { x.queue(fuse, nil) }, strike: manyFlows},
	{name: "unsettled", over10: true, setup: func(x *attacker) { fillQueue(x, fuse, 100_000) }, strike: takeAndKeep},
	{name: "released", setup: func(x *attacker) { fillQueue(x, fuse, 20_000) }, strike: releaseAll},
	{name: "service-bus", over10: true, settings: []string{"SERVICEBUS_EMULATOR=true"}, setup: func(x *attacker) {
		x.admin("/queues/%2F/"+fuse, map[string]string{})
	}, strike: manyRequests},
	{name: "flood-over-10", over10: true, setup: func(x *attacker) { x.declare(floods, numbered, "", nil) }, strike: flood10},
}

const (
	everyone = "everyone" // a fanout exchange
	fuse     = "fuse"
	target   = "target"

	bombQueues = 12
	floods     = 4
)

// afterwards gives what burns on without the attacker the time to show in the broker's memory.
func afterwards(x *attacker) error {
	select {
	case <-time.After(2 * time.Second):
	case <-x.p.exited:
	}
	return nil
}

func setBomb(x *attacker) {
	x.declare(bombQueues, numbered, everyone, amqp091.Table{"x-max-length": int32(0), "x-dead-letter-exchange": everyone})
}

// catastrophicPolicy also asks for metrics, which must be answered at the same time.
func catastrophicPolicy(ctx context.Context, x *attacker) error {
	err := x.publish(ctx, fuse, 1, amqp091.Publishing{Expiration: "100"})
	if err != nil {
		return err
	}
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { // refused or in time, it matters to those beside it only
		for i := range 3 {
			body := strings.NewReader(`{"pattern":"^(?=(a+)+$)(a+)+$","apply-to":"queues","definition":{"max-length":1000}}`)
			asked := time.Now()
			status, answer, err := x.request(ctx, hostile, http.MethodPut, fmt.Sprintf("/policies/%s/worst%d", hostile, i), body)
			x.say("PUT of the policy: %v: %d %s %v", time.Since(asked).Round(time.Millisecond), status, answer, err)
		}
	})
	others.Go(func() { // has something due in the virtual host whose policies change
		for ctx.Err() == nil && x.publish(ctx, fuse, 1, amqp091.Publishing{Expiration: "1"}) == nil {
			<-time.After(200 * time.Millisecond)
		}
	})
	<-time.After(300 * time.Millisecond)
	asked := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.metrics, nil)
	if err != nil {
		return err
	}
	_, _, err = x.do(req)
	x.say("GET of the metrics: %v: %v", time.Since(asked).Round(time.Millisecond), err)
	return nil
}

// unfinishedPublishes sends the header of a message, and nothing of its body, on each of very many channels.
func unfinishedPublishes(ctx context.Context, x *attacker) error {
	const connections, channels = 3, 2000
	p := amqp.Properties{Headers: hugeTable()}
	whole := amqp.AppendMethod(nil, 0, &amqp.BasicPublish{RoutingKey: "nowhere"})
	header := len(whole)
	whole = amqp.AppendContent(whole, 0, p.Append(nil), []byte{0}, rawFrame)
	whole = whole[:len(whole)-amqp.FrameOverhead-1] // without the body
	var sent atomic.Int64
	defer func() { x.say("%d headers of %d KiB were written", sent.Load(), len(whole)>>10) }()
	return atOnce(connections, func(int) error {
		b := bytes.Clone(whole)
		return again(ctx, func() error {
			conn, err := x.raw(ctx, channels)
			if err != nil {
				return err
			}
			defer conn.Close()
			for channel := range channels {
				for _, at := range []int{0, header} {
					b[at+1], b[at+2] = byte((channel+1)>>8), byte(channel+1)
				}
				if !writeUntil(ctx, conn, b) {
					return nil
				}
				sent.Add(1)
			}
			<-ctx.Done()
			return nil
		})
	})
}

// unfinishedTransfers begins messages of AMQP 1.0 on many links and ends none, and asks /management without taking an answer.
func unfinishedTransfers(ctx context.Context, x *attacker) error {
	const connections, sessions, links = 3, 20, 100
	part := make([]byte, rawFrame-100)
	question := (&amqp10.Properties{Subject: "GET", To: "/queues/" + fuse}).Append(nil)
	var sent atomic.Int64
	defer func() { x.say("%d parts of %d KiB were written", sent.Load(), len(part)>>10) }()
	return atOnce(connections, func(int) error {
		return again(ctx, func() error {
			conn, err := x.raw10(ctx, plain, sessions)
			if err != nil {
				return err
			}
			defer conn.Close()
			for i := uint32(0); ; i++ {
				channel, handle := uint16(i%sessions), i/sessions%links
				var b []byte
				if i < sessions*links {
					b = amqp10.AppendFrame(b, channel, &amqp10.Attach{Name: fmt.Sprint(handle), Handle: handle, Target: &amqp10.Target{Address: "/queues/" + fuse}}, nil)
					b = amqp10.AppendFrame(b, channel, &amqp10.Attach{Name: fmt.Sprint(handle), Handle: links + handle, Role: amqp10.RoleReceiver, Source: &amqp10.Source{Address: "/management"}}, nil)
				}
				if handle == 0 { // this one is to /management
					b = amqp10.AppendFrame(b, channel, &amqp10.Detach{Handle: handle, Closed: true}, nil)
					b = amqp10.AppendFrame(b, channel, &amqp10.Attach{Name: "0", Handle: handle, Target: &amqp10.Target{Address: "/management"}}, nil)
					b = amqp10.AppendFrame(b, channel, &amqp10.Transfer{Handle: handle, DeliveryID: amqp10.Uint(i), Settled: true}, question)
				} else {
					b = amqp10.AppendFrame(b, channel, &amqp10.Transfer{Handle: handle, DeliveryID: amqp10.Uint(i), DeliveryTag: []byte{1}, More: true}, part)
				}
				if !writeUntil(ctx, conn, b) {
					return nil
				}
				sent.Add(1)
			}
		})
	})
}

// The ways to log in: as the attacker, or, in Service Bus's dialect, as nobody, with tokens to follow.
var (
	plain     = &amqp10.SASLInit{Mechanism: "PLAIN", Response: []byte("\x00" + hostile + "\x00" + hostile)}
	anonymous = &amqp10.SASLInit{Mechanism: "ANONYMOUS"}
)

// pour10 writes frames on each of several connections, until the broker hangs up or the context ends, and again. With reads the broker's
// answers are read, and thrown away. frames appends what comes next to b for i from 0 on; it may wait. Nothing: it hangs up.
func (x *attacker) pour10(ctx context.Context, login *amqp10.SASLInit, connections int, sessions uint16, reads bool, frames func(b []byte, i uint32) []byte) error {
	var written, octets, began atomic.Int64
	defer func() {
		x.say("%d connections, %d writes, %d MiB", began.Load(), written.Load(), octets.Load()>>20)
	}()
	return atOnce(connections, func(int) error {
		return again(ctx, func() error {
			conn, err := x.raw10(ctx, login, sessions)
			if err != nil {
				return err
			}
			defer conn.Close()
			began.Add(1)
			if reads {
				go io.Copy(io.Discard, conn)
			}
			var b []byte
			for i := uint32(0); ; i++ {
				if b = frames(b[:0], i); len(b) == 0 || !writeUntil(ctx, conn, b) {
					return nil
				}
				written.Add(1)
				octets.Add(int64(len(b)))
			}
		})
	})
}

func appendSender(b []byte, session uint16, handle uint32, queue string) []byte {
	return amqp10.AppendFrame(b, session, &amqp10.Attach{Name: fmt.Sprint("s", handle), Handle: handle, Target: &amqp10.Target{Address: "/queues/" + queue}}, nil)
}

func appendReceiver(b []byte, session uint16, handle uint32, queue string, properties any) []byte {
	return amqp10.AppendFrame(b, session, &amqp10.Attach{
		Name: fmt.Sprint("r", handle), Handle: handle, Role: amqp10.RoleReceiver, Source: &amqp10.Source{Address: "/queues/" + queue}, Properties: properties,
	}, nil)
}

// appendCredit gives as much credit as there is.
func appendCredit(b []byte, session uint16, handle uint32) []byte {
	return amqp10.AppendFrame(b, session, &amqp10.Flow{
		IncomingWindow: math.MaxInt32, OutgoingWindow: 1 << 20, Handle: amqp10.Uint(handle), LinkCredit: amqp10.Uint(math.MaxInt32),
	}, nil)
}

// endlessTransfers sends one message on each link, a piece at a time, large or tiny, whose last piece never comes. It comes back when it has
// surely been refused.
func endlessTransfers(ctx context.Context, x *attacker) error {
	const sessions, links = 20, 50
	large, tiny := make([]byte, rawFrame-100), make([]byte, 1)
	return x.pour10(ctx, plain, 4, sessions, true, func(b []byte, i uint32) []byte {
		session, handle := uint16(i%sessions), i/sessions%links
		t := amqp10.Transfer{Handle: handle, More: true}
		if i == 2*sessions*links {
			return nil
		}
		if i < sessions*links {
			b = appendSender(b, session, handle, fuse)
			t.DeliveryID, t.DeliveryTag = amqp10.Uint(i/sessions), []byte{1}
		}
		if i%2 == 0 {
			return amqp10.AppendFrame(b, session, &t, large)
		}
		b = amqp10.AppendFrame(b, session, &t, tiny)
		t.DeliveryID = amqp10.OptUint{}
		for range 100 {
			b = amqp10.AppendFrame(b, session, &t, tiny)
		}
		return b
	})
}

// manyLinks attaches as many consumers as a connection may have, with huge properties, and replaces each, again and again.
func manyLinks(ctx context.Context, x *attacker) error {
	const sessions, links = 250, 250
	properties := amqp10.Map{{Key: amqp10.Symbol("x"), Value: strings.Repeat("x", 4<<10)}}
	return x.pour10(ctx, plain, 3, sessions, true, func(b []byte, i uint32) []byte {
		session, handle := uint16(i%sessions), i/sessions%links
		if i >= sessions*links {
			b = amqp10.AppendFrame(b, session, &amqp10.Detach{Handle: handle, Closed: true}, nil)
		}
		return appendCredit(appendReceiver(b, session, handle, fuse, properties), session, handle)
	})
}

// manyFlows changes windows and credit at full speed, on sessions with many links, and wants answers, which it reads or not.
func manyFlows(ctx context.Context, x *attacker) error {
	const links = 250
	pour := func(reads bool) error {
		return x.pour10(ctx, plain, 2, 1, reads, func(b []byte, i uint32) []byte {
			if i < links {
				return appendReceiver(b, 0, i, fuse, nil)
			}
			for range 200 {
				b = appendCredit(b, 0, i%links)
				b = amqp10.AppendFrame(b, 0, &amqp10.Flow{IncomingWindow: 1, Handle: amqp10.Uint(i % links), LinkCredit: amqp10.Uint(1), Drain: true, Echo: true}, nil)
				b = amqp10.AppendFrame(b, 0, &amqp10.Flow{Echo: true}, nil)
			}
			return b
		})
	}
	return atOnce(2, func(i int) error { return pour(i == 0) })
}

// takeAndKeep receives all messages of a queue, settles none, hangs up, and comes back.
func takeAndKeep(ctx context.Context, x *attacker) error {
	return again(ctx, func() error {
		while, cancel := context.WithTimeout(ctx, 400*time.Millisecond)
		defer cancel()
		return x.pour10(while, plain, 2, 1, true, func(b []byte, i uint32) []byte {
			if i > 0 {
				<-while.Done()
			}
			return appendCredit(appendReceiver(b, 0, i, fuse, nil), 0, i)
		})
	})
}

// releaseAll gives back whatever it has received, in one disposition, and so receives it again.
func releaseAll(ctx context.Context, x *attacker) error {
	return x.pour10(ctx, plain, 2, 1, true, func(b []byte, i uint32) []byte {
		if i == 0 {
			b = appendReceiver(b, 0, 0, fuse, nil)
		}
		b = appendCredit(b, 0, 0)
		return amqp10.AppendFrame(b, 0, &amqp10.Disposition{
			Role: amqp10.RoleReceiver, Last: amqp10.Uint(math.MaxInt32), Settled: true, State: &amqp10.State{Kind: amqp10.StateReleased},
		}, nil)
	})
}

// manyRequests has a client of Service Bus present tokens for one entity after the other, and send, peek, schedule and ask for deferred messages,
// and read what it is answered or not.
func manyRequests(ctx context.Context, x *attacker) error {
	const cbs, cbsAnswers, management, answers, sender = 0, 1, 2, 3, 4
	request := func(to, operation string, body any, more ...amqp10.Entry) []byte {
		b := (&amqp10.Properties{MessageID: "1", ReplyTo: to}).Append(nil)
		b = amqp10.AppendSection(b, amqp10.SectionApplicationProperties, append(amqp10.Map{{Key: "operation", Value: operation}}, more...))
		return amqp10.AppendSection(b, amqp10.SectionValue, body)
	}
	token := func(entity string) []byte {
		return request("cbs", "put-token", strings.Repeat("x", 4<<10), amqp10.Entry{Key: "name", Value: "sb://host/" + entity})
	}
	numbers := amqp10.Array{}
	for i := range int64(200) {
		numbers = append(numbers, i)
	}
	message := amqp10.AppendSection(nil, amqp10.SectionData, noise[:10<<10])
	peek := request("answers", "com.microsoft:peek-message", amqp10.Map{{Key: "from-sequence-number", Value: int64(0)}, {Key: "message-count", Value: int32(256)}})
	byNumber := request("answers", "com.microsoft:receive-by-sequence-number", amqp10.Map{{Key: "sequence-numbers", Value: numbers}, {Key: "receiver-settle-mode", Value: uint32(1)}})
	pour := func(reads bool) error {
		return x.pour10(ctx, anonymous, 2, 1, reads, func(b []byte, i uint32) []byte {
			id := 10 * i
			transfer := func(handle uint32, payload []byte) {
				b = amqp10.AppendFrame(b, 0, &amqp10.Transfer{Handle: handle, DeliveryID: amqp10.Uint(id), DeliveryTag: []byte{1}, Settled: true}, payload)
				id++
			}
			attach := func(handle uint32, address, answersTo string) {
				a := &amqp10.Attach{Name: fmt.Sprint(handle), Handle: handle, Target: &amqp10.Target{Address: address}}
				if answersTo != "" {
					a = &amqp10.Attach{Name: answersTo, Handle: handle, Role: amqp10.RoleReceiver, Source: &amqp10.Source{Address: address}}
				}
				if b = amqp10.AppendFrame(b, 0, a, nil); answersTo != "" {
					b = appendCredit(b, 0, handle)
				}
			}
			if i == 0 {
				attach(cbs, "$cbs", "")
				attach(cbsAnswers, "$cbs", "cbs")
				transfer(cbs, token(fuse))
				attach(management, fuse+"/$management", "")
				attach(answers, fuse+"/$management", "answers")
				attach(sender, fuse, "")
			}
			transfer(cbs, token(fuse+"/"+strconv.Itoa(int(i))))
			transfer(sender, message)
			transfer(management, peek)
			transfer(management, byNumber)
			return b
		})
	}
	return atOnce(2, func(i int) error { return pour(i == 0) })
}

// flood10 is flood over AMQP 1.0.
func flood10(ctx context.Context, x *attacker) error {
	const batch = 200
	body := amqp10.AppendSection(nil, amqp10.SectionData, noise[:12])
	return atOnce(floods, func(queue int) error {
		consumer := func() error {
			return x.pour10(ctx, plain, 1, 1, true, func(b []byte, i uint32) []byte {
				if i > 0 {
					<-time.After(100 * time.Millisecond)
					return appendCredit(b, 0, 0)
				}
				b = amqp10.AppendFrame(b, 0, &amqp10.Attach{
					Name: "c", Role: amqp10.RoleReceiver, SenderMode: amqp10.SendSettled, Source: &amqp10.Source{Address: "/queues/" + numbered(queue)},
				}, nil)
				return appendCredit(b, 0, 0)
			})
		}
		publisher := func() error {
			return x.pour10(ctx, plain, 1, 1, true, func(b []byte, i uint32) []byte {
				if i == 0 {
					return appendSender(b, 0, 0, numbered(queue))
				}
				for n := range uint32(batch) {
					b = amqp10.AppendFrame(b, 0, &amqp10.Transfer{DeliveryID: amqp10.Uint((i-1)*batch + n), DeliveryTag: []byte{1}, Settled: true}, body)
				}
				return b
			})
		}
		return atOnce(2, func(i int) error { return []func() error{consumer, publisher}[i]() })
	})
}

// raw10 logs in over AMQP 1.0 and begins sessions. What the broker answers is not read.
func (x *attacker) raw10(ctx context.Context, login *amqp10.SASLInit, sessions uint16) (net.Conn, error) {
	conn, err := net.Dial("tcp", x.address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	b := amqp10.AppendFrame([]byte(amqp10.SASLHeader), 0, login, nil)
	b = append(b, amqp10.ProtocolHeader...)
	b = amqp10.AppendFrame(b, 0, &amqp10.Open{ContainerID: hostile, Hostname: "vhost:" + hostile, MaxFrameSize: rawFrame, ChannelMax: sessions}, nil)
	for channel := range sessions {
		b = amqp10.AppendFrame(b, channel, &amqp10.Begin{IncomingWindow: 1, OutgoingWindow: 1 << 20, HandleMax: 255}, nil)
	}
	_, err = conn.Write(b)
	return conn, err
}

// writeUntil writes all of b; false when the context ended before or the broker has hung up.
func writeUntil(ctx context.Context, conn net.Conn, b []byte) bool {
	end, _ := ctx.Deadline()
	_ = conn.SetWriteDeadline(end)
	_, err := conn.Write(b)
	return err == nil
}

// consumerArguments starts consumers with tables that mean nothing to the broker.
func consumerArguments(ctx context.Context, x *attacker) error {
	const connections, consumers = 2, 3000
	tag := func(i int) string { return fmt.Sprintf("tag%05d", i) }
	whole := amqp.AppendMethod(nil, 1, &amqp.BasicConsume{Queue: fuse, ConsumerTag: tag(0), NoWait: true, Arguments: hugeTable()})
	at := bytes.Index(whole, []byte(tag(0)))
	var sent atomic.Int64
	defer func() { x.say("%d tables of %d KiB were written", sent.Load(), len(whole)>>10) }()
	return atOnce(connections, func(int) error {
		b := bytes.Clone(whole)
		return again(ctx, func() error {
			conn, err := x.raw(ctx, 1)
			if err != nil {
				return err
			}
			defer conn.Close()
			for i := range consumers {
				copy(b[at:], tag(i))
				if !writeUntil(ctx, conn, b) {
					return nil
				}
				sent.Add(1)
			}
			<-ctx.Done()
			return nil
		})
	})
}

// hugeHTTPPublishes posts bodies of 150 MiB: by somebody who may not publish there at all, and says how much it is, and by somebody
// who may, but not so much, and does not say it.
func hugeHTTPPublishes(ctx context.Context, x *attacker) error {
	const posts, rounds, size = 8, 4, 150 << 20
	const head, tail = `{"routing_key":"nowhere","properties":{},"payload_encoding":"string","payload":"`, `"}`
	return atOnce(posts, func(i int) error {
		for range rounds {
			body := io.MultiReader(strings.NewReader(head), io.LimitReader(endless{}, size), strings.NewReader(tail))
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.api+"/exchanges/"+hostile+"/amq.default/publish", body)
			if err != nil {
				return err
			}
			user := hostile
			if i%2 == 0 {
				user, req.ContentLength = stranger, int64(len(head)+size+len(tail))
			}
			req.SetBasicAuth(user, user)
			status, answer, err := x.do(req)
			if i < 2 {
				x.say("POST by %s: %d %s %v", user, status, answer, err)
			}
		}
		return nil
	})
}

// endless is of the letter x.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for n := 0; n < len(b); {
		n += copy(b[n:], xs)
	}
	return len(b), nil
}

var xs = bytes.Repeat([]byte{'x'}, 32<<10)

func listQueues(ctx context.Context, x *attacker) error {
	const readers = 4
	var whole atomic.Int64
	defer func() { x.say("%d lists were read", whole.Load()) }()
	return atOnce(readers, func(int) error {
		return again(ctx, func() error {
			status, answer, err := x.request(ctx, hostile, http.MethodGet, "/queues", nil)
			if err == nil && status == http.StatusOK {
				whole.Add(1)
			}
			if status == http.StatusUnauthorized || status == http.StatusNotFound {
				return fmt.Errorf("GET /queues: %d %s", status, answer)
			}
			return err
		})
	})
}

// idleDisk holds a broker with nothing to do, but dead letters that it cannot get rid of, to writing little.
func idleDisk(x *attacker) error {
	const quiet, most = 2 * time.Second, 1 << 20 // a second
	ch, err := x.channel()
	if err != nil {
		return err
	}
	if got := ready(x.t, ch, target); got != 1 {
		return fmt.Errorf("the full queue has %d messages, not 1", got)
	}
	if got := ready(x.t, ch, fuse); got != 0 {
		return fmt.Errorf("%d messages have not expired", got)
	}
	before := x.p.proc("io")["write_bytes"]
	<-time.After(quiet)
	each := float64(x.p.proc("io")["write_bytes"]-before) / quiet.Seconds()
	x.t.Logf("idle, it wrote %.2f MB/s", each/1e6)
	if each > most {
		return fmt.Errorf("with nothing to do it wrote %.1f MB/s to its disk", each/1e6)
	}
	return nil
}

// idleConnections opens more connections to each HTTP server, the port for AMQP too, than the process may have files open, says half of a request on each,
// and comes back when it is thrown out.
func idleConnections(ctx context.Context, x *attacker) error {
	const each = 270
	var opened atomic.Int64
	hold := func(address string) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		opened.Add(1)
		_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n")) // what fails shows when it is read
		_, _ = io.Copy(io.Discard, conn)
		return nil
	}
	var all sync.WaitGroup
	for _, server := range []string{x.api, x.metrics, "http://" + x.address} {
		u, err := url.Parse(server)
		if err != nil {
			return err
		}
		for range each {
			all.Go(func() { _ = again(ctx, func() error { return hold(u.Host) }) })
		}
	}
	all.Wait()
	x.say("%d connections were opened, %d at once", opened.Load(), 3*each)
	if opened.Load() == 0 {
		return errors.New("no connection could be opened")
	}
	return nil
}

// welcomesClients: once the idle connections are gone, everybody is served.
func welcomesClients(x *attacker) (err error) {
	over := time.After(10 * time.Second)
	for {
		if err = x.publish(x.ctx, "nowhere", 1, amqp091.Publishing{}); err == nil {
			_, _, err = x.request(x.ctx, "guest", http.MethodGet, "/overview", nil)
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-over:
			return err
		}
	}
}

// flood has publishers without confirms at full speed, each with a queue and a consumer without acks.
func flood(ctx context.Context, x *attacker) error {
	const batch = 1000
	var written atomic.Int64
	defer func() {
		x.say("%.2fM messages a second were written", float64(written.Load()*batch)/1e6/strikeFor.Seconds())
	}()
	return atOnce(floods, func(i int) error {
		consumer, err := x.raw(ctx, 1)
		if err != nil {
			return err
		}
		if !writeUntil(ctx, consumer, amqp.AppendMethod(nil, 1, &amqp.BasicConsume{Queue: numbered(i), NoAck: true})) {
			return errors.New("no consumer")
		}
		publisher, err := x.raw(ctx, 1)
		if err != nil {
			return err
		}
		one := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{RoutingKey: numbered(i)})
		one = amqp.AppendContent(one, 1, (&amqp.Properties{}).Append(nil), noise[:12], rawFrame)
		for many := bytes.Repeat(one, batch); writeUntil(ctx, publisher, many); {
			written.Add(1)
		}
		return nil
	})
}
