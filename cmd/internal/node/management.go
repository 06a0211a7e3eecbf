package node

import (
	"net"
	"time"

	"curfew/broker/definitions"
	"curfew/broker/management"
	"curfew/broker/operate"
	"curfew/monitor/dashboard"
)

// newOperations makes the operations that the node's management API and dashboard share.
func (n *Node) newOperations() (*operate.Operations, error) {
	return operate.New(operate.Options{
		Broker: n.broker, Server: n.server, Replays: n.replays, DataDir: n.settings.DataDir, Started: time.Now(), Log: n.log, Registerer: n.metrics, Changed: changesOf(n),
		Version: definitions.Version{RabbitMQ: management.DefaultCompat, Product: "Curfew", ProductVersion: n.build.Version},
	})
}

// newManagement makes the management API of the node, whose sockets are open already.
func (n *Node) newManagement(operations *operate.Operations, sockets []management.Listener) *management.API {
	c := n.settings
	return management.New(management.Options{
		Broker: n.broker, Server: n.server, Operations: operations, Node: "curfew@" + string(c.Instance), Version: n.build.Version,
		DataDir: c.DataDir, DiskFreeLimit: int64(c.DiskFreeLimit), CertificateFile: c.TLSCert, Listeners: sockets, Log: n.log,
	})
}

// newDashboard makes the dashboard of the node. operations may be nil, and amqp, the address where clients connect.
func (n *Node) newDashboard(operations *operate.Operations, amqp net.Addr) (*dashboard.Dashboard, error) {
	port, _ := amqp.(*net.TCPAddr)
	o := dashboard.Options{
		AMQP:  port,
		Users: n.users(), Operations: operations, Alerts: n.alerts, Audit: n.audit, History: n.history,
		Instance: string(n.settings.Instance), Version: n.build.Version, Log: n.log,
	}
	if n.monitor != nil {
		o.Monitor = n.monitor
	}
	if n.rabbitmq != nil {
		o.RabbitMQ = n.rabbitmq
	}
	return dashboard.New(o)
}
