package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"go.uber.org/zap"

	"curfew/broker/management"
)

// sockets are the listeners of a node. Whoever serves on one closes it.
type sockets struct {
	amqp   []net.Listener // without TLS and, if configured, with TLS; none beside RabbitMQ
	web    net.Listener
	secure net.Listener // web with TLS; nil: none
	ops    net.Listener
	onAMQP net.Listener // web on the ports for AMQP; nil: none
}

// openSockets opens all sockets except for ops, which is already open. After an error the others are closed.
func (n *Node) openSockets(ctx context.Context, ops net.Listener) (s sockets, err error) {
	c := n.settings
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.ops = ops
	if c.PrimaryURL == "" {
		if s.amqp, err = amqpListeners(ctx, c, n.inputs.certs); err != nil {
			return s, err
		}
	}
	if n.handover != nil {
		n.handover.Listener = s.amqp[0]
		s.onAMQP = n.handover
	}
	if s.web, err = listen(ctx, "CURFEW_HTTP_ADDR", c.HTTPAddr); err != nil {
		return s, err
	}
	s.secure, err = listenTLS(ctx, "CURFEW_HTTPS_ADDR", c.HTTPSAddr, n.inputs.webCerts)
	return s, err
}

// close closes all sockets except for ops.
func (s *sockets) close() {
	for _, l := range append(s.amqp, s.web, s.secure) {
		if l != nil {
			l.Close()
		}
	}
}

// serveWeb serves pages on the web sockets until stop is called, which waits for the end.
func (s *sockets) serveWeb(ctx context.Context, pages *web, log *zap.Logger) (stop func()) {
	failed := func(err error) { log.Error("the management API is no longer served", zap.Error(err)) }
	var stops []func()
	for _, l := range []net.Listener{s.web, s.secure, s.onAMQP} {
		if l != nil {
			stops = append(stops, background(ctx, pages.server(), l, failed))
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// handover is a listener of the connections for HTTP that come in on the ports for AMQP.
type handover struct {
	net.Listener // on the first of them; only for its address
	conns        chan net.Conn
	ended        context.Context
	end          context.CancelFunc
}

func newHandover() *handover {
	h := &handover{conns: make(chan net.Conn)}
	h.ended, h.end = context.WithCancel(context.Background())
	return h
}

// give waits until the connection is accepted. If the listener is closed before, it closes the connection.
func (h *handover) give(nc net.Conn) {
	select {
	case h.conns <- nc:
	case <-h.ended.Done():
		nc.Close()
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case nc := <-h.conns:
		return nc, nil
	case <-h.ended.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It leaves the port to AMQP.
func (h *handover) Close() error {
	h.end()
	return nil
}

// listeners lists the sockets for the management API.
func (s *sockets) listeners() (list []management.Listener) {
	for i, protocol := range []string{"amqp", "amqp/ssl"} {
		if i < len(s.amqp) {
			list = append(list, listenerOf(protocol, s.amqp[i]))
		}
	}
	if s.secure != nil {
		list = append(list, listenerOf("https", s.secure))
	}
	return append(list, listenerOf("http", s.web), listenerOf("http/prometheus", s.ops))
}

func listenerOf(protocol string, l net.Listener) management.Listener {
	as := management.Listener{Protocol: protocol, Address: l.Addr().String(), TLS: protocol == "amqp/ssl" || protocol == "https"}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		as.Address, as.Port = tcp.IP.String(), tcp.Port
	}
	return as
}

// listen opens a port. The error for a busy port names what an operator can do.
func listen(ctx context.Context, variable string, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %s is in use by another process; stop that process or set %s to another address", variable, addr, variable)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	return l, nil
}
