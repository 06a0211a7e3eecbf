package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// crowd bounds the connections of HTTP servers, so that clients take no file descriptor from
// the store and keep nobody else out. For one too many the one goes that has been idle for
// longest; if none is, the oldest of the address that has most, unless that is the newcomer's:
// then the newcomer goes. Safe for concurrent use.
type crowd struct {
	name string // of what they are for, in metrics and health
	most int
	now  func() time.Time

	mu     sync.Mutex
	conns  map[net.Conn]*guest
	ofPeer map[string]int
	turned uint64    // connections that were refused
	lastly time.Time // when the last one was
	closed uint64    // idle ones that were closed for others
}

// guest is one connection.
type guest struct {
	peer  string
	since time.Time // it is idle, or there
	idle  bool      // has no request under way
}

func newCrowd(name string, most int) *crowd {
	return &crowd{name: name, most: most, now: time.Now, conns: map[net.Conn]*guest{}, ofPeer: map[string]int{}}
}

// bound has a server's connections count.
func (c *crowd) bound(s *http.Server) *http.Server {
	s.ConnState = c.state
	return s
}

func (c *crowd) state(nc net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.conns[nc]
	switch {
	case s == http.StateNew:
		c.enter(nc)
	case g == nil: // it was made to go
	case s == http.StateActive:
		g.idle = false
	case s == http.StateIdle:
		g.idle, g.since = true, c.now()
	default:
		c.leave(nc)
	}
}

// enter lets one in. Called with mu held.
func (c *crowd) enter(nc net.Conn) {
	peer, _, _ := net.SplitHostPort(nc.RemoteAddr().String())
	c.conns[nc] = &guest{peer: peer, since: c.now(), idle: true}
	c.ofPeer[peer]++
	if len(c.conns) <= c.most {
		return
	}
	goes := c.whoGoes(nc)
	if goes == nc || !c.conns[goes].idle {
		c.turned++
		c.lastly = c.now()
	} else {
		c.closed++
	}
	c.leave(goes)
	cut(goes)
}

// whoGoes for a newcomer. Called with mu held.
func (c *crowd) whoGoes(newcomer net.Conn) (goes net.Conn) {
	crowded := c.conns[newcomer].peer
	for peer, n := range c.ofPeer {
		if n > c.ofPeer[crowded] {
			crowded = peer
		}
	}
	goes = newcomer
	for nc, g := range c.conns {
		switch best := c.conns[goes]; {
		case nc == newcomer:
		case g.idle && (goes == newcomer || !best.idle || g.since.Before(best.since)):
			goes = nc
		case !g.idle && g.peer == crowded && crowded != c.conns[newcomer].peer &&
			(goes == newcomer || !best.idle && g.since.Before(best.since)):
			goes = nc
		}
	}
	return goes
}

// leave counts one no more. Called with mu held.
func (c *crowd) leave(nc net.Conn) {
	g := c.conns[nc]
	delete(c.conns, nc)
	if c.ofPeer[g.peer]--; c.ofPeer[g.peer] == 0 {
		delete(c.ofPeer, g.peer)
	}
}

// cut ends a connection without a word of TLS, which could block.
func cut(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	nc.Close()
}

// refusalFresh is for how long health tells that connections were refused.
const refusalFresh = time.Minute

func refusedVitals(most int) vitals {
	return vitals{Reasons: []string{fmt.Sprintf("connections are refused, there may be %d: close some or raise the limit on open files (ulimit -n)", most)}}
}

// vitals tell for a while that connections were refused.
func (c *crowd) vitals() vitals {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turned == 0 || c.now().Sub(c.lastly) > refusalFresh {
		return vitals{}
	}
	return refusedVitals(c.most)
}

var (
	crowdDesc  = prometheus.NewDesc("curfew_http_connections", "HTTP connections open.", []string{"listener"}, nil)
	turnedDesc = prometheus.NewDesc("curfew_http_connections_refused_total", "HTTP connections refused, or ended in a request, because there were too many.", []string{"listener"}, nil)
	closedDesc = prometheus.NewDesc("curfew_http_connections_idle_closed_total", "Idle HTTP connections closed to make room for others.", []string{"listener"}, nil)
)

// Describe implements prometheus.Collector. Two crowds differ in their label alone, so
// nothing is described.
func (c *crowd) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *crowd) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(crowdDesc, prometheus.GaugeValue, float64(len(c.conns)), c.name)
	ch <- prometheus.MustNewConstMetric(turnedDesc, prometheus.CounterValue, float64(c.turned), c.name)
	ch <- prometheus.MustNewConstMetric(closedDesc, prometheus.CounterValue, float64(c.closed), c.name)
}
