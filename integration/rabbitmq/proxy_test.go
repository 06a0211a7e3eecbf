package rabbitmq

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy forwards connections to one server, until it cuts them.
type proxy struct {
	addr   string
	mu     sync.Mutex
	to     string // "" forwards none
	conns  map[net.Conn]bool
	last   []byte // all connections are cut when a client has sent that; nil: none are
	after  bool   // the server has got it then, and has not been heard
	barred bool   // AMQP 1.0 is
}

func startProxy(t testing.TB, to string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &proxy{addr: listener.Addr().String(), to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		listener.Close()
		p.cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn) {
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	node, err := net.Dial("tcp", to)
	p.mu.Lock()
	if err != nil || p.to != to {
		p.mu.Unlock()
		client.Close()
		if err == nil {
			node.Close()
		}
		return
	}
	p.conns[client], p.conns[node] = true, true
	p.mu.Unlock()
	deaf := make(chan struct{})
	go func() {
		_, _ = io.Copy(&hearing{client, deaf}, node)
		client.Close()
		node.Close()
	}()
	for buf := make([]byte, 64<<10); ; {
		read, err := client.Read(buf)
		p.mu.Lock()
		last := p.last != nil && bytes.Contains(buf[:read], p.last)
		after := p.after
		barred := p.barred && bytes.HasPrefix(buf[:read], []byte("AMQP\x03"))
		if last {
			p.last = nil
		}
		p.mu.Unlock()
		if last && after {
			close(deaf)
			time.AfterFunc(300*time.Millisecond, p.cut) // what belongs to it follows
		} else if last {
			p.cut()
		}
		if last && !after || barred || err != nil {
			break
		}
		if _, err := node.Write(buf[:read]); err != nil {
			break
		}
	}
	client.Close()
	node.Close()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, node)
	p.mu.Unlock()
}

// hearing is a connection to a client until it is deaf.
type hearing struct {
	net.Conn
	deaf <-chan struct{}
}

func (h *hearing) Write(p []byte) (int, error) {
	select {
	case <-h.deaf:
		return len(p), nil
	default:
		return h.Conn.Write(p)
	}
}

// cutAt cuts all connections when a client next sends a text: before the server gets it, or after that and before it can answer.
func (p *proxy) cutAt(text string, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.after = []byte(text), after
}

// bar ends connections that begin with AMQP 1.0, from now on.
func (p *proxy) bar() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.barred = true
}

// cut ends all connections at once.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.Close()
	}
}

// direct cuts all connections and forwards new ones to another server; "" forwards none.
func (p *proxy) direct(to string) {
	p.mu.Lock()
	p.to = to
	p.mu.Unlock()
	p.cut()
}
