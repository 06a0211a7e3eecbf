package node

import (
	"net"

	"curfew/broker/definitions"
	"curfew/broker/management"
	"curfew/broker/operate"
	"curfew/broker/server"
	"curfew/monitor/dashboard"
)

// openOperations makes the operations that the node's management API and dashboard share.
func (n *Node) openOperations() {
	n.operations = operate.New(operate.Options{
		Broker: n.broker, Server: n.server, Replays: n.replays, DataDir: n.settings.DataDir, Log: n.log, Recorder: n.recorder,
		Version: definitions.Version{RabbitMQ: server.RabbitMQVersion, Product: "Curfew", ProductVersion: n.build.Version},
	})
}

// newManagement makes the management API of the node, whose sockets are open already.
func (n *Node) newManagement(sockets []management.Listener) *management.API {
	c := n.settings
	return management.New(management.Options{
		Broker: n.broker, Server: n.server, Operations: n.operations, Node: "curfew@" + string(c.Instance), Version: n.build.Version,
		DataDir: c.DataDir, DiskFreeLimit: int64(c.DiskFreeLimit), CertificateFile: c.TLSCert, Listeners: sockets, Log: n.log,
	})
}

// newDashboard makes the dashboard of the node. amqp is the address where clients connect; nil: beside RabbitMQ.
func (n *Node) newDashboard(amqp net.Addr) (*dashboard.Dashboard, error) {
	port, _ := amqp.(*net.TCPAddr)
	o := dashboard.Options{
		AMQP:  port,
		Users: n.users(), Operations: n.operations, Changes: n.changes, Incidents: n.incidents, Audit: n.audit, History: n.history,
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
