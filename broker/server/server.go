package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/servicebus"
)

// Options configures a Server. Broker is required. The zero values of the other fields mean
// RabbitMQ's defaults.
type Options struct {
	Broker          *broker.Broker
	FrameMax        uint32             // octets, with overhead; default 131072
	MaxConnections  int                // open at once, including those still logging in; default 1024
	MaxHandshakes   int                // connections that are not open yet; default 512
	ConsumerTimeout time.Duration      // delivery acknowledgement timeout unless the consumer or the queue sets one; default 30 min, negative: none
	NameFrom        access.NameFrom    // which part of a client certificate is the user name (SASL EXTERNAL); default the distinguished name
	ServiceBus      servicebus.Options // who may connect as a client of Service Bus; default nobody
	TLS             *tls.Config        // for clients that begin with TLS on a listener without it; nil: they are refused
	Version         string             // Curfew's own version, sent to clients
	Node            string             // the node's name, which clients of AMQP 1.0 are told
	Log             *zap.Logger

	// HTTP takes over a connection without TLS whose client speaks HTTP: somebody serves it, or it is closed. nil: such clients are refused.
	HTTP func(nc net.Conn)
}

// RabbitMQVersion is the version of RabbitMQ that clients and tools see. They use it to decide which features to use. It is new enough for
// NServiceBus and old enough for the v1 tools.
const RabbitMQVersion = "4.1.0"

const (
	defaultFrameMax        = 131072
	defaultMaxConnections  = 1024
	defaultMaxHandshakes   = 512
	defaultConsumerTimeout = 30 * time.Minute

	channelMax        = 2047             // of a connection
	maxPeerHandshakes = 64               // from one address other than this machine's
	offeredHeartbeat  = 60 * time.Second // what a client answers counts
)

// Server speaks AMQP 0-9-1 with clients. It is safe for concurrent use.
type Server struct {
	opts          Options
	timeoutMillis int64 // of deliveries whose consumer and queue set none; 0: none
	log           *zap.Logger
	// refusals logs one connection a second that is refused: clients try again at once, in thousands.
	refusals *zap.Logger

	accepted, refused atomic.Uint64
	fullAt            atomic.Int64 // when a connection was last refused because of their number, Unix ns; 0: never

	logins authenticator
	// Logins counts those by AMQP.
	Logins broker.LoginCount
	Totals Totals
	// Errors are what closes links, channels and connections of clients that are logged in, by the clients' own doing.
	Errors deadline.Repeats[ClientError]

	mu         sync.Mutex
	handshakes handshakes
	conns      map[*connection]struct{}
	stopping   bool
	ended      sync.WaitGroup
}

// New returns a server; Serve starts it.
func New(o Options) *Server {
	o.FrameMax = cmp.Or(o.FrameMax, defaultFrameMax)
	o.ConsumerTimeout = cmp.Or(o.ConsumerTimeout, defaultConsumerTimeout)
	o.MaxConnections = cmp.Or(o.MaxConnections, defaultMaxConnections)
	o.MaxHandshakes = cmp.Or(o.MaxHandshakes, defaultMaxHandshakes)
	o.Log = cmp.Or(o.Log, zap.NewNop())
	log := o.Log.Named("server")
	return &Server{
		opts: o, timeoutMillis: max(0, o.ConsumerTimeout.Milliseconds()), log: log, refusals: log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewSamplerWithOptions(c, time.Second, 1, 0) })),
		conns:      map[*connection]struct{}{},
		handshakes: handshakes{most: o.MaxHandshakes, mostOfPeer: maxPeerHandshakes},
		logins:     authenticator{Broker: o.Broker, NameFrom: o.NameFrom, Limits: preAuthTables},
	}
}

// closeGrace is how long a client has to answer connection.close.
const closeGrace = 5 * time.Second

// Serve accepts connections from the listeners until ctx ends or one of them fails. Then it
// closes the connections with 320 CONNECTION_FORCED and returns when all of them have
// ended. It closes the listeners. It returns the error of a listener, or nil if ctx ended.
// It must be called only once.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	accepting, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, len(listeners))
	var accepts sync.WaitGroup
	for _, l := range listeners {
		defer context.AfterFunc(accepting, func() { l.Close() })()
		accepts.Go(func() {
			defer stop()
			failed <- fmt.Errorf("server: accept on %s: %w", l.Addr(), s.accept(accepting, l))
		})
	}
	s.ended.Go(func() {
		for deadline.Sleep(accepting, ackSweep) {
			s.CheckAckTimeouts()
		}
	})
	accepts.Wait()
	s.shutdown()
	if ctx.Err() != nil {
		return nil
	}
	return <-failed // the first, which made the others end
}

func (s *Server) accept(ctx context.Context, l net.Listener) error {
	backoff := time.NewTimer(0)
	defer backoff.Stop()
	for {
		nc, err := l.Accept()
		if err == nil {
			s.start(nc)
			continue
		}
		var temporary interface{ Temporary() bool }
		if ctx.Err() != nil || !errors.As(err, &temporary) || !temporary.Temporary() {
			return err
		}
		s.fullAt.Store(time.Now().UnixNano())
		s.log.Error("cannot accept a connection; trying again in 100ms", zap.Error(err))
		backoff.Reset(100 * time.Millisecond)
		select {
		case <-backoff.C:
		case <-ctx.Done():
		}
	}
}

// start runs a connection, if one more is allowed.
func (s *Server) start(nc net.Conn) {
	c := newConnection(s, nc)
	s.mu.Lock()
	why := s.admitLocked(c)
	if why == "" {
		s.ended.Add(1)
	}
	s.mu.Unlock()
	if why != "" {
		s.refusals.Warn("connection refused", zap.Stringer("peer", nc.RemoteAddr()), zap.String("reason", why), zap.Uint64("refused_since_start", s.refused.Add(1)))
		c.socket.Close()
		return
	}
	s.accepted.Add(1)
	go func() {
		defer s.ended.Done()
		c.run()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forgetLocked(c)
	}()
}

// admitLocked admits a connection, or returns why not.
func (s *Server) admitLocked(c *connection) (why string) {
	if s.stopping {
		return "stopping"
	}
	if len(s.conns) >= s.opts.MaxConnections {
		s.fullAt.Store(time.Now().UnixNano())
		return "too many connections"
	}
	if why := s.handshakes.Add(&c.handshake.admitted, c.handshake.client.Remote); why != "" {
		return why
	}
	s.conns[c] = struct{}{}
	return ""
}

// handshakeEnded records that a connection is open.
func (s *Server) handshakeEnded(h *handshake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handshakes.Remove(&h.admitted)
}

func (s *Server) forgetLocked(c *connection) {
	if c.handshake != nil {
		s.handshakes.Remove(&c.handshake.admitted)
	}
	delete(s.conns, c)
}

// handOver makes the connection one of HTTP: it no longer counts as AMQP's, and neither a new client nor shutdown can end it any more.
func (s *Server) handOver(c *connection, first []byte) error {
	s.mu.Lock()
	stopping := s.stopping
	s.forgetLocked(c)
	s.mu.Unlock()
	if stopping {
		return errEnd
	}
	c.ended = true
	c.out.Kill() // whose writer would close the socket
	c.nc.SetDeadline(time.Time{})
	s.opts.HTTP(&begun{c.nc, first})
	return nil
}

var errShutdown = amqp.NewException(amqp.ConnectionForced, 0, 0, "broker forced connection closure with reason 'shutdown'")

// shutdown asks every client to close, waits, and cuts off those that stay.
func (s *Server) shutdown() {
	s.mu.Lock()
	s.stopping = true
	for c := range s.conns { // what a closed connection gives back must not be delivered to one that is closed next
		c.out.StopDeliveries()
	}
	for c := range s.conns {
		c.forceClose(errShutdown)
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.ended.Wait(); close(ended) }()
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-ended:
		return
	case <-grace.C:
	}
	s.mu.Lock()
	for c := range s.conns {
		c.socket.Close()
	}
	s.mu.Unlock()
	<-ended
}

// Full returns the maximum number of connections, and when one was last refused because
// that number was reached or no file descriptor was left; zero: never.
func (s *Server) Full() (most int, last time.Time) {
	if at := s.fullAt.Load(); at != 0 {
		last = time.Unix(0, at)
	}
	return s.opts.MaxConnections, last
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// InFlow returns how many connections recently had to wait for consumers.
func (s *Server) InFlow() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.inFlow() {
			n++
		}
	}
	return n
}

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	m := deadline.Metrics(ch)
	m.Gauge("curfew_connections", "AMQP connections open.", float64(s.Connections()))
	m.Gauge("curfew_connections_in_flow", "AMQP connections whose publishes waited for consumers within the last second (state flow).", float64(s.InFlow()))
	m.Counter("curfew_connections_accepted_total", "AMQP connections accepted.", s.accepted.Load())
	m.Counter("curfew_direct_replies_lost_total", "Direct replies lost because their client did not take what it was sent.", s.Totals.RepliesLost.Load())
	m.Counter("curfew_connections_refused_total", "Connections refused for the limit or while stopping.", s.refused.Load())
}
