package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
)

// Options configure a Server. Broker is required; the zero value of the rest is
// RabbitMQ's default.
type Options struct {
	Broker         *broker.Broker
	FrameMax       uint32        // octets, with overhead; default 131072
	ChannelMax     uint16        // channels per connection; default 2047
	Heartbeat      time.Duration // offered, whole seconds; default 60 s, negative for none
	MaxConnections int           // open at once, those still logging in included; default 1024
	Version        string        // shown to clients
	Log            *zap.Logger
}

const (
	defaultFrameMax       = 131072
	defaultChannelMax     = 2047
	defaultHeartbeat      = 60 * time.Second
	defaultMaxConnections = 1024
)

// Server speaks AMQP 0-9-1 with clients. Safe for concurrent use.
type Server struct {
	opts Options
	log  *zap.Logger

	accepted, refused atomic.Uint64
	totals            totals

	mu       sync.Mutex
	conns    map[*connection]struct{}
	stopping bool
	ended    sync.WaitGroup
}

// New makes a server; Serve starts it.
func New(o Options) *Server {
	if o.FrameMax == 0 {
		o.FrameMax = defaultFrameMax
	}
	if o.ChannelMax == 0 {
		o.ChannelMax = defaultChannelMax
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultMaxConnections
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return &Server{opts: o, log: o.Log.Named("server"), conns: map[*connection]struct{}{}}
}

// closeGrace is how long clients have to answer connection.close when the
// server stops.
const closeGrace = 5 * time.Second

// Serve accepts connections from l until ctx ends, then closes them with 320
// CONNECTION_FORCED and returns when all have ended. It closes l. The error is
// that of the listener, or nil after ctx. To be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	err := s.accept(ctx, l)
	l.Close()
	s.shutdown()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("server: accept on %s: %w", l.Addr(), err)
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
		s.log.Error("cannot accept a connection; trying again in 100ms", zap.Error(err))
		backoff.Reset(100 * time.Millisecond)
		select {
		case <-backoff.C:
		case <-ctx.Done():
		}
	}
}

// start runs a connection, if there is room for one more.
func (s *Server) start(nc net.Conn) {
	c := newConnection(s, nc)
	s.mu.Lock()
	full, stopping := len(s.conns) >= s.opts.MaxConnections, s.stopping
	if !full && !stopping {
		s.conns[c] = struct{}{}
		s.ended.Add(1)
	}
	s.mu.Unlock()
	if full || stopping {
		s.refused.Add(1)
		s.log.Warn("connection refused", zap.Stringer("peer", nc.RemoteAddr()), zap.Bool("limit_reached", full), zap.Int("max_connections", s.opts.MaxConnections))
		nc.Close()
		return
	}
	s.accepted.Add(1)
	go func() {
		defer s.ended.Done()
		c.run()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
}

// shutdown asks every client to go, waits, and cuts off those that stay.
func (s *Server) shutdown() {
	s.mu.Lock()
	s.stopping = true
	for c := range s.conns {
		c.forceClose(amqp.NewException(amqp.ConnectionForced, 0, 0,
			"broker forced connection closure with reason 'shutdown'"))
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
		c.nc.Close()
	}
	s.mu.Unlock()
	<-ended
}

// Connections is how many are open now.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

var (
	connectionsDesc = prometheus.NewDesc("curfew_connections", "AMQP connections open.", nil, nil)
	acceptedDesc    = prometheus.NewDesc("curfew_connections_accepted_total", "AMQP connections accepted.", nil, nil)
	refusedDesc     = prometheus.NewDesc("curfew_connections_refused_total", "Connections refused for the limit or while stopping.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(s.Connections()))
	ch <- prometheus.MustNewConstMetric(acceptedDesc, prometheus.CounterValue, float64(s.accepted.Load()))
	ch <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(s.refused.Load()))
}
