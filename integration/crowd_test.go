package integration

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"curfew/broker/amqp"
)

const (
	crowd        = 10_000
	crowdAtOnce  = 32       // handshakes
	crowdMemory  = 32 << 10 // bytes of the broker's memory for each connection
	slowSockets  = 600
	slowLimit    = 2 * time.Minute
	announced    = 2 << 30
	announcers   = 20
	announceCost = 64 << 20
)

// TestTenThousandConnections: that many clients are logged in, each with a channel, and cost little; a client among them works.
func TestTenThousandConnections(t *testing.T) {
	c := startCurfew(t, fmt.Sprintf("MAX_CONNECTIONS=%d", crowd+100))
	witness := newWitness(t, c)
	before := c.residentBytes()
	todo := make(chan struct{})
	var clients sync.WaitGroup
	for range crowdAtOnce {
		clients.Go(func() {
			for range todo {
				dialRaw(t, c.url).login()
			}
		})
	}
	for range crowd {
		todo <- struct{}{}
	}
	close(todo)
	clients.Wait()
	if t.Failed() {
		return
	}
	each := (c.residentBytes() - before) / crowd
	t.Logf("%d bytes of resident memory for each of %d connections", each, crowd)
	if each > crowdMemory {
		t.Errorf("a connection costs %d bytes", each)
	}
	witness.works(t)
	newWitness(t, c).works(t)
}

// TestSlowHandshakes: hundreds of sockets say a byte a second. Others log in as ever, and the slow ones are hung up on.
func TestSlowHandshakes(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	addr := dialRaw(t, c.url).conn.RemoteAddr().String()
	stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var slow sync.WaitGroup
	for range slowSockets {
		conn, err := stranger.Dial("tcp", addr)
		check(t, err)
		defer conn.Close()
		slow.Go(func() { dribble(conn) })
	}
	newWitness(t, c).works(t)
	hungUp := make(chan struct{})
	go func() { slow.Wait(); close(hungUp) }()
	select {
	case <-hungUp:
	case <-time.After(slowLimit):
		t.Errorf("slow handshakes are not ended within %v", slowLimit)
	}
}

// dribble writes a handshake a byte a second until the broker hangs up.
func dribble(conn net.Conn) {
	handshake := amqp.AppendMethod([]byte(amqp.ProtocolHeader), 0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest")})
	ended := inBackground(func() struct{} {
		for b := make([]byte, 512); ; {
			if _, err := conn.Read(b); err != nil {
				return struct{}{}
			}
		}
	})
	go func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for _, b := range handshake {
			<-ticks.C
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
		}
	}()
	ended()
}

// TestAnnouncedBodyAllocatesNothing: a body of 2 GiB is refused when it is announced.
func TestAnnouncedBodyAllocatesNothing(t *testing.T) {
	c := startCurfew(t)
	witness := newWitness(t, c)
	before := c.residentBytes()
	for range announcers {
		r := dialRaw(t, c.url).login()
		r.send(1, &amqp.BasicPublish{RoutingKey: "witness"})
		r.write(contentHeader(announced)...)
		if got, want := r.answer(), "channel close 406 PRECONDITION_FAILED - message size 2147483648 is larger than configured max size 16777216"; got != want {
			t.Errorf("answer %q, not %q", got, want)
		}
	}
	if grown := c.residentBytes() - before; grown > announceCost {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	witness.works(t)
	witness.lost(t)
}
