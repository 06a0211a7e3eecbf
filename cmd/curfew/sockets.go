package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"go.uber.org/zap"

	"curfew/broker/management"
)

// sockets are what a node is reached by. Whoever serves on one closes it.
type sockets struct {
	amqp   []net.Listener // the plain one and, if there is to be one, the one with TLS
	web    net.Listener
	secure net.Listener // the web's with TLS; nil: none
	ops    net.Listener
}

// openSockets opens all but ops, which is open. With an error none of them stays open.
func openSockets(ctx context.Context, c *config, ops net.Listener, log *zap.Logger) (s sockets, err error) {
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.ops = ops
	if s.amqp, err = amqpListeners(ctx, c, log); err != nil {
		return s, err
	}
	if s.web, err = listen(ctx, "CURFEW_HTTP_ADDR", c.HTTPAddr); err != nil {
		return s, err
	}
	s.secure, err = httpsListener(ctx, c, log)
	return s, err
}

// close closes all but ops.
func (s *sockets) close() {
	for _, l := range append(s.amqp, s.web, s.secure) {
		if l != nil {
			l.Close()
		}
	}
}

// serveWeb answers where the web is until stop is called, which waits for it.
func (s *sockets) serveWeb(ctx context.Context, pages *web, log *zap.Logger) (stop func()) {
	failed := func(err error) { log.Error("the management API is not served any more", zap.Error(err)) }
	stopPlain := background(ctx, pages.server(), s.web, failed)
	if s.secure == nil {
		return stopPlain
	}
	stopSecure := background(ctx, pages.server(), s.secure, failed)
	return func() {
		stopSecure()
		stopPlain()
	}
}

// shown lists them for the management API.
func (s *sockets) shown() (list []management.Listener) {
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

// listen explains what an operator can do about a busy port.
func listen(ctx context.Context, variable string, addr address) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", string(addr))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %s is in use by another process; stop that one or set %s to another address", variable, addr, variable)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	return l, nil
}
