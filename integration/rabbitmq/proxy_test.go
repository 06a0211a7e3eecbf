package rabbitmq

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy forwards connections to one server, until it cuts them.
type proxy struct {
	addr  string
	mu    sync.Mutex
	to    string // "" forwards none
	conns map[net.Conn]bool
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
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		to.Close()
		from.Close()
	}
	go pass(client, node)
	pass(node, client)
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, node)
	p.mu.Unlock()
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
