package management

import (
	"crypto/rand"
	"net/http"
	"time"

	"curfew/broker/management/rates"
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
	Operations *operate.Operations // of both

	// Node and Cluster are shown as the node's and the cluster's name.
	Node, Cluster string
	// Version is Curfew's own. Compat is the version of RabbitMQ that tools are told,
	// since they decide by it what to ask; default "4.1.0".
	Version, Compat string
	// Listeners are the sockets that are open.
	Listeners []Listener
	Started   time.Time // of the process; zero: when New was called
	// DataDir is where messages are kept; "" memory only.
	DataDir       string
	DiskFreeLimit int64 // bytes
	// CertificateFile is the PEM file of the TLS listeners; "" none.
	CertificateFile string
	Log             *zap.Logger
	// Now is the clock for rates; nil: time.Now.
	Now func() time.Time
}

// Listener is one open socket.
type Listener struct {
	Protocol string // amqp, amqp/ssl, http, https, http/prometheus
	Address  string
	Port     int
	TLS      bool
}

// DefaultCompat is new enough for NServiceBus and old enough for the v1 tools.
const DefaultCompat = "4.1.0"

// API answers management requests. Safe for concurrent use.
type API struct {
	Options
	b      *broker.Broker
	log    *zap.Logger
	rates  *rates.Rates
	server *rest.Server
}

// New makes an API; Handler serves it.
func New(o Options) *API {
	if o.Compat == "" {
		o.Compat = DefaultCompat
	}
	if o.Cluster == "" {
		o.Cluster = o.Node
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Started.IsZero() {
		o.Started = o.Now()
	}
	a := &API{Options: o, b: o.Broker, log: o.Log.Named("management")}
	a.rates = rates.New(a.countAll, a.Now)
	a.server = rest.New(rest.Options{Broker: o.Broker, Operations: o.Operations, Log: a.log}, a.table())
	a.identify()
	return a
}

// identify gives the broker the ID that RabbitMQ gives a cluster at its first start.
func (a *API) identify() {
	if _, there := a.b.GlobalParameters()[clusterID]; there {
		return
	}
	if _, err := a.b.SetGlobalParameter(clusterID, "rabbitmq-cluster-id-"+rand.Text()); err != nil {
		a.log.Warn("the cluster's ID is not saved; the next start makes another", zap.Error(err))
	}
}

// Handler serves /api.
func (a *API) Handler() http.Handler { return a.server.Handler() }

// The longest bodies, where they are not rest.MaxBody.
const (
	maxPublish     = 192 << 20 // base64 of the largest body there may be
	maxDefinitions = 10 << 20
)
