package management

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/server"
)

// Options configure an API. Broker, Server and Operations are required.
type Options struct {
	Broker     *broker.Broker
	Server     *server.Server
	Operations *operate.Operations // on both
	// Look returns what the last look found. It is required for queues.
	Look func() Look

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

// Look is what was found about queues at one moment.
type Look struct {
	At   time.Time
	Hour deadline.Hour
	// Concern is the level of the incident in which a queue is, "" for none, and the place of the queue among those of that level.
	Concern func(vhost, queue string) (level string, place int)
}

// New makes an API; Handler serves it.
func New(o Options) *API {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &API{Options: o, b: o.Broker, log: o.Log.Named("management"), started: o.Now(), rates: o.Operations.Rates}
	a.server = rest.New(rest.Options{Broker: o.Broker, Operations: o.Operations, Log: a.log}, a.Routes())
	a.identify()
	return a
}

// identify gives the broker an ID at its first start, as RabbitMQ gives one to a cluster.
func (a *API) identify() {
	if _, there := a.b.GlobalParameters()[clusterIDParameter]; there {
		return
	}
	if _, err := a.b.SetGlobalParameter(clusterIDParameter, "rabbitmq-cluster-id-"+rand.Text()); err != nil {
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

// The roles of routes that are not an operation (RabbitMQ: Management Plugin, Permissions).
const (
	management    = operate.Management
	policymaker   = operate.Policymaker
	monitor       = operate.Monitor
	administrator = operate.Administrator
)

// Guard puts another package's handlers behind the same checks as the API's own: credentials, headers, bounds, no requests on behalf of another
// site. Reading requires the role of operate.LookAround. The handlers find the actor in the request's context (operate.ActorFrom), and check, make and
// record a change (rest.WithoutBroker).
func (a *API) Guard(next http.Handler) http.Handler {
	serve := func(r *rest.Request) error {
		next.ServeHTTP(r.W, r.HTTP.WithContext(operate.WithActor(r.HTTP.Context(), r.Actor)))
		return nil
	}
	return a.server.Guard(&rest.Route{Op: operate.LookAround, Handle: serve}, &rest.Route{Need: management, Handle: serve})
}

// vhost returns the virtual host in the path, which permit has found.
func (r *request) vhost() (*broker.VHost, error) {
	vh, ok := r.api.b.VHost(r.Param("vhost"))
	if !ok { // deleted since
		return nil, rest.ErrNotFound
	}
	return vh, nil
}

// vhosts returns the virtual hosts of the request: the one in the path, or all that the user may
// see.
func (r *request) vhosts() []*broker.VHost {
	if r.Param("vhost") != "" {
		vh, err := r.vhost()
		if err != nil {
			return nil
		}
		return []*broker.VHost{vh}
	}
	return r.Operations.VHosts(r.Actor)
}
