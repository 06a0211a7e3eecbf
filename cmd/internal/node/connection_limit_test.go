package node

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
)

// limited is a connLimit whose clock moves with each connection.
type limited struct {
	*connLimit
	clock time.Time
}

func newLimited(most int) *limited {
	l := &limited{newConnLimit("test", most), time.Unix(1_800_000_000, 0)}
	l.now = func() time.Time {
		l.clock = l.clock.Add(time.Millisecond)
		return l.clock
	}
	return l
}

// fakeConn is a connection from an address, which notes that it was closed.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1}
}

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

// connect makes a connection from an address and puts it into the states one after the other.
func (l *limited) connect(from string, states ...http.ConnState) *fakeConn {
	c := &fakeConn{from: from}
	for _, s := range append([]http.ConnState{http.StateNew}, states...) {
		l.state(c, s)
	}
	return c
}

func TestIdleHTTPConnectionsGiveWay(t *testing.T) {
	l := newLimited(3)
	refuses := func() bool {
		_, is := l.refuses()
		return is
	}
	silent := l.connect("10.0.0.1") // it sends nothing
	idle := l.connect("10.0.0.1", http.StateActive, http.StateIdle)
	busy := l.connect("10.0.0.1", http.StateActive)
	l.connect("10.0.0.1", http.StateActive)
	assert.True(t, silent.closed, "the one without a request for longest")
	l.connect("10.0.0.1", http.StateActive)
	assert.True(t, idle.closed)
	assert.False(t, refuses(), "nobody was kept out")

	refused := l.connect("10.0.0.1")
	assert.True(t, refused.closed, "all others have a request under way")
	assert.True(t, refuses())
	probe := l.connect("10.0.0.2", http.StateActive)
	assert.False(t, probe.closed)
	assert.True(t, busy.closed, "the oldest of the address that has most")

	l.clock = l.clock.Add(2 * refusedRecently)
	assert.False(t, refuses())
	l.state(probe, http.StateClosed)
	l.state(busy, http.StateClosed)
	assert.Len(t, l.conns, 2)
	assert.Equal(t, map[string]int{"10.0.0.1": 2}, l.ofPeer)
}

// A client that sends its request too slowly is cut off, on both servers.
func TestSlowClientsTimeOut(t *testing.T) {
	for _, s := range []*http.Server{newWeb().server(), newOpsEndpoints(prometheus.NewRegistry()).server()} {
		assert.LessOrEqual(t, s.ReadHeaderTimeout, 10*time.Second)
		assert.Positive(t, s.ReadHeaderTimeout)
		assert.Positive(t, s.ReadTimeout)
		assert.Positive(t, s.WriteTimeout)
		assert.Positive(t, s.IdleTimeout)
	}
}
