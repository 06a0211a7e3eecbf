package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"time"

	"curfew/broker/amqp"
)

// relay is a server that does the least that the load client accepts as a broker. It
// answers methods. A message published to a queue it passes to the queue's consumer at
// once, from the read buffer into one write. It stores, routes, counts and acks nothing.
// What the client reaches with it is the ceiling of the client and the sockets.
func relay(announce io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(announce, l.Addr())
	r := &relayServer{consumers: map[string]*relayConn{}}
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		go r.serve(&relayConn{nc: nc, relay: r})
	}
}

type relayServer struct {
	mu        sync.Mutex
	consumers map[string]*relayConn // by queue
}

type relayConn struct {
	nc       net.Conn
	relay    *relayServer
	mu       sync.Mutex
	out      []byte
	tag      uint64
	consumer string // its tag

	queue string // of the last publish, and its consumer
	to    *relayConn
	sent  uint64 // publishes to confirm
	said  uint64 // confirmed publishes
	asked bool   // confirm.select
}

const relayFrameMax = 131072

func (r *relayServer) serve(c *relayConn) {
	defer r.remove(c)
	header := make([]byte, len(amqp.ProtocolHeader))
	if _, err := io.ReadFull(c.nc, header); err != nil {
		return
	}
	c.answer(0, &amqp.ConnectionStart{Mechanisms: "PLAIN", Locales: "en_US"})
	buf := make([]byte, 2*relayFrameMax)
	for from, to := 0, 0; ; {
		n, err := c.nc.Read(buf[to:])
		if err != nil {
			return
		}
		to += n
		used := c.frames(buf[from:to])
		if used < 0 || c.flush() != nil {
			return
		}
		to = copy(buf, buf[from+used:to])
		from = 0
	}
}

// remove removes a connection.
func (r *relayServer) remove(c *relayConn) {
	c.nc.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.consumers, func(_ string, consumer *relayConn) bool { return consumer == c })
}

// consumer waits for the queue's consumer, since nothing is stored for it.
func (r *relayServer) consumer(queue string) *relayConn {
	for {
		r.mu.Lock()
		c := r.consumers[queue]
		r.mu.Unlock()
		if c != nil {
			return c
		}
		<-time.After(time.Millisecond)
	}
}

// frames handles the complete frames in b and returns the number of their octets; below 0
// at the end.
func (c *relayConn) frames(b []byte) (used int) {
	for {
		f, n, err := amqp.ParseFrame(b[used:], relayFrameMax)
		if err != nil {
			return -1
		}
		if n == 0 {
			return used
		}
		switch f.Type {
		case amqp.FrameMethod:
			if !c.method(f) {
				return -1
			}
		case amqp.FrameHeartbeat:
		default:
			c.forward(b[used : used+n])
		}
		used += n
	}
}

func (c *relayConn) method(f amqp.Frame) bool {
	id, _ := amqp.PeekMethod(f.Payload)
	switch id {
	case amqp.BasicPublishID:
		return c.publish(f.Payload)
	case amqp.BasicAckID:
		return true
	}
	m, err := amqp.ParseMethod(f.Payload, amqp.Limits{})
	if err != nil {
		return false
	}
	if answer := c.reply(m); answer != nil {
		c.answer(f.Channel, answer)
	}
	return true
}

func (c *relayConn) reply(m amqp.Method) amqp.Method {
	switch m := m.(type) {
	case *amqp.ConnectionStartOk:
		return &amqp.ConnectionTune{Tuning: amqp.Tuning{ChannelMax: 1, FrameMax: relayFrameMax}}
	case *amqp.ConnectionOpen:
		return &amqp.ConnectionOpenOk{}
	case *amqp.ChannelOpen:
		return &amqp.ChannelOpenOk{}
	case *amqp.QueueDeclare:
		return &amqp.QueueDeclareOk{Queue: m.Queue}
	case *amqp.QueueDelete:
		return &amqp.QueueDeleteOk{}
	case *amqp.BasicQos:
		return &amqp.BasicQosOk{}
	case *amqp.ConfirmSelect:
		c.asked = true
		return &amqp.ConfirmSelectOk{}
	case *amqp.BasicConsume:
		c.relay.mu.Lock()
		defer c.relay.mu.Unlock()
		c.relay.consumers[m.Queue], c.consumer = c, m.ConsumerTag
		return &amqp.BasicConsumeOk{ConsumerTag: m.ConsumerTag}
	case *amqp.ConnectionClose:
		return &amqp.ConnectionCloseOk{}
	}
	return nil
}

func (c *relayConn) answer(channel uint16, m amqp.Method) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = amqp.AppendMethod(c.out, channel, m)
	c.nc.Write(c.out) //nolint:errcheck // reading reports the error
	c.out = c.out[:0]
}

func (c *relayConn) publish(payload []byte) bool {
	m, err := amqp.ParsePublish(payload)
	if err != nil {
		return false
	}
	if string(m.RoutingKey) != c.queue || c.to == nil {
		c.flush() //nolint:errcheck // reading reports the error
		c.queue = string(m.RoutingKey)
		c.to = c.relay.consumer(c.queue)
	}
	c.sent++
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.tag++
	c.to.out = amqp.AppendDeliver(c.to.out, 1, c.to.consumer, c.to.tag, false, m.Exchange, m.RoutingKey)
	return true
}

// forward passes on a header or body frame unchanged.
func (c *relayConn) forward(frame []byte) {
	if c.to != nil {
		c.to.mu.Lock()
		defer c.to.mu.Unlock()
		c.to.out = append(c.to.out, frame...)
	}
}

// flush sends what was gathered for the consumer, and the confirms.
func (c *relayConn) flush() error {
	if c.to != nil {
		c.to.mu.Lock()
		defer c.to.mu.Unlock()
		if _, err := c.to.nc.Write(c.to.out); err != nil {
			return err
		}
		c.to.out = c.to.out[:0]
	}
	if c.asked && c.sent > c.said {
		c.said = c.sent
		if _, err := c.nc.Write(amqp.AppendAck(nil, 1, c.sent, true)); err != nil {
			return err
		}
	}
	return nil
}
