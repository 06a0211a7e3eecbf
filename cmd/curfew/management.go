package main

import (
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
