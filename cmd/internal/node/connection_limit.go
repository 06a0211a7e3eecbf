package node

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"curfew/broker/deadline"

	"github.com/prometheus/client_golang/prometheus"
)

// connLimit bounds the connections of HTTP servers, so that clients cannot use up the store's file
// descriptors or keep others out. When there are too many, the connection that has been idle longest
// is closed. If none is idle, it is the oldest one of the address with the most connections, or the new
// connection if it is from that address itself. Safe for concurrent use.
type connLimit struct {
	name string // of the server, in metrics and health
	most int
	now  func() time.Time

	mu          sync.Mutex
	conns       map[net.Conn]*httpConn
	ofPeer      map[string]int
	refused     uint64    // connections that were refused
	lastRefusal time.Time // when the last one was refused
	closed      uint64    // idle connections that were closed for others
}

// httpConn is one connection.
type httpConn struct {
	peer  string
	since time.Time // when it became idle; if it is busy, when it was opened or last idle
	idle  bool      // has no request under way
}

func newConnLimit(name string, most int) *connLimit {
	return &connLimit{name: name, most: most, now: time.Now, conns: map[net.Conn]*httpConn{}, ofPeer: map[string]int{}}
}

// state is http.Server.ConnState: it counts the connections of a server.
func (c *connLimit) state(nc net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hc := c.conns[nc]
	switch {
	case s == http.StateNew:
		c.addLocked(nc)
	case hc == nil: // it was closed to make room
	case s == http.StateActive:
		hc.idle = false
	case s == http.StateIdle:
		hc.idle, hc.since = true, c.now()
	default:
		c.removeLocked(nc)
	}
}

// addLocked counts a new connection and closes one if there are too many.
func (c *connLimit) addLocked(nc net.Conn) {
	peer, _, _ := net.SplitHostPort(nc.RemoteAddr().String())
	c.conns[nc] = &httpConn{peer: peer, since: c.now(), idle: true}
	c.ofPeer[peer]++
	if len(c.conns) <= c.most {
		return
	}
	goes := c.excessLocked(nc)
	if goes == nc || !c.conns[goes].idle {
		c.refused++
		c.lastRefusal = c.now()
	} else {
		c.closed++
	}
	c.removeLocked(goes)
	cut(goes)
}

// excessLocked picks the connection to close when there are too many.
func (c *connLimit) excessLocked(newcomer net.Conn) (goes net.Conn) {
	busiest := c.conns[newcomer].peer
	for peer, n := range c.ofPeer {
		if n > c.ofPeer[busiest] {
			busiest = peer
		}
	}
	goes = newcomer
	for nc, hc := range c.conns {
		switch best := c.conns[goes]; {
		case nc == newcomer:
		case hc.idle && (goes == newcomer || !best.idle || hc.since.Before(best.since)):
			goes = nc
		case !hc.idle && hc.peer == busiest && busiest != c.conns[newcomer].peer &&
			(goes == newcomer || !best.idle && hc.since.Before(best.since)):
			goes = nc
		}
	}
	return goes
}

// removeLocked stops counting a connection.
func (c *connLimit) removeLocked(nc net.Conn) {
	hc := c.conns[nc]
	delete(c.conns, nc)
	if c.ofPeer[hc.peer]--; c.ofPeer[hc.peer] == 0 {
		delete(c.ofPeer, hc.peer)
	}
}

// cut closes a connection without TLS's closing message, which could block.
func cut(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	nc.Close()
}

// refusedRecently is how long it is reported that connections were refused, if there is room for more.
const refusedRecently = 10 * time.Second

// refuses reports for a while that connections were refused, and how many there may be.
func (c *connLimit) refuses() (most int, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most, c.refused > 0 && c.now().Sub(c.lastRefusal) <= refusedRecently
}

// Describe implements prometheus.Collector. It describes nothing, since two limits differ only in
// their label.
func (c *connLimit) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *connLimit) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := deadline.Metrics(ch)
	m.Gauge("curfew_http_connections", "HTTP connections open.", float64(len(c.conns)), "listener", c.name)
	m.Counter("curfew_http_connections_refused_total", "HTTP connections refused, or ended in a request, because there were too many.", c.refused, "listener", c.name)
	m.Counter("curfew_http_connections_idle_closed_total", "Idle HTTP connections closed to make room for others.", c.closed, "listener", c.name)
}
