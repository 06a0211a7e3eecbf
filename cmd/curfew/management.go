package main

import (
	"net"

	"go.uber.org/zap"

	"curfew/broker/management"
)

// newManagement makes the management API of a node whose sockets are open.
func newManagement(c *config, n *node, sockets []management.Listener, log *zap.Logger) *management.API {
	return management.New(management.Options{
		Broker: n.broker, Server: n.server, Node: "curfew@" + string(c.Instance), Version: versionText(), Compat: string(c.CompatRabbitmqVersion),
		DataDir: c.DataDir, DiskFreeLimit: int64(c.DiskFreeLimit), CertificateFile: c.TLSCert, Listeners: sockets, Replays: n.replays, Log: log,
	})
}

// socketsOf lists what is listened on. The AMQP listeners are the plain one and, where there is one,
// the one with TLS; secure, the web's with TLS, may be nil.
func socketsOf(amqp []net.Listener, web, secure, ops net.Listener) (sockets []management.Listener) {
	for i, protocol := range []string{"amqp", "amqp/ssl"} {
		if i < len(amqp) {
			sockets = append(sockets, listenerOf(protocol, amqp[i]))
		}
	}
	if secure != nil {
		sockets = append(sockets, listenerOf("https", secure))
	}
	return append(sockets, listenerOf("http", web), listenerOf("http/prometheus", ops))
}

func listenerOf(protocol string, l net.Listener) management.Listener {
	as := management.Listener{Protocol: protocol, Address: l.Addr().String(), TLS: protocol == "amqp/ssl" || protocol == "https"}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		as.Address, as.Port = tcp.IP.String(), tcp.Port
	}
	return as
}
