package management

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"time"

	"curfew/broker/management/rest"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/operate"
	"curfew/broker/server"
)

// Options configure an API. Broker, Server and Operations are required.
type Options struct {
	Broker     *broker.Broker
	Server     *server.Server
	Operations *operate.Operations // on both

	// Node is the name of the node, and of the cluster until that has a name of its own.
	Node string
	// Version is Curfew's version.
	Version string
	// Listeners are the open sockets.
	Listeners []Listener
	// DataDir is where messages are kept; "" memory only.
	DataDir       string
	DiskFreeLimit int64 // bytes
	// CertificateFile is the PEM file of the TLS listeners; "" none.
	CertificateFile string
	Log             *zap.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Listener is one open socket.
type Listener struct {
	Protocol string // amqp, amqp/ssl, http, https, http/prometheus
	Address  string
	Port     int
	TLS      bool
}

// API answers management requests. Safe for concurrent use.
type API struct {
	Options
	b       *broker.Broker
	log     *zap.Logger
	started time.Time
	rates   *operate.Rates
	server  *rest.Server
}

// New makes an API; Handler serves it.
func New(o Options) *API {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &API{Options: o, b: o.Broker, log: o.Log.Named("management"), started: o.Now(), rates: o.Operations.Rates()}
	a.server = rest.New(rest.Options{Broker: o.Broker, Operations: o.Operations, Log: a.log}, a.table())
	a.identify()
	return a
}

// identify gives the broker an ID at its first start, as RabbitMQ gives one to a cluster.
func (a *API) identify() {
	if _, there := a.b.GlobalParameters()[clusterID]; there {
		return
	}
	if _, err := a.b.SetGlobalParameter(clusterID, "rabbitmq-cluster-id-"+rand.Text()); err != nil {
		a.log.Warn("the cluster's ID is not saved; the next start makes a new one", zap.Error(err))
	}
}

// Handler serves /api.
func (a *API) Handler() http.Handler { return a.server.Handler() }

// The longest bodies that are not rest.MaxBody.
const (
	maxPublish     = 192 << 20 // the largest body, in base64
	maxDefinitions = 64 << 20  // a virtual host with all the objects that it may have
)
