package main

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// mob are the connections of a crowd in a test, whose clock moves with each.
type mob struct {
	*crowd
	clock time.Time
}

func newMob(most int) *mob {
	m := &mob{newCrowd("test", most), time.Unix(1_800_000_000, 0)}
	m.now = func() time.Time {
		m.clock = m.clock.Add(time.Millisecond)
		return m.clock
	}
	return m
}

// hung is a connection from an address.
type hung struct {
	net.Conn
	from   string
	closed bool
}

func (h *hung) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(h.from), Port: 1}
}

func (h *hung) Close() error {
	h.closed = true
	return nil
}

// come has a connection come from an address and be in the states one after the other.
func (m *mob) come(from string, states ...http.ConnState) *hung {
	h := &hung{from: from}
	for _, s := range append([]http.ConnState{http.StateNew}, states...) {
		m.state(h, s)
	}
	return h
}

func TestIdleHTTPConnectionsGiveWay(t *testing.T) {
	m := newMob(3)
	silent := m.come("10.0.0.1") // it sends nothing
	idle := m.come("10.0.0.1", http.StateActive, http.StateIdle)
	busy := m.come("10.0.0.1", http.StateActive)
	m.come("10.0.0.1", http.StateActive)
	assert.True(t, silent.closed, "the one without a request for longest")
	m.come("10.0.0.1", http.StateActive)
	assert.True(t, idle.closed)
	assert.Empty(t, m.vitals().Reasons, "nobody was kept out")

	refused := m.come("10.0.0.1")
	assert.True(t, refused.closed, "all others have a request under way")
	assert.NotEmpty(t, m.vitals().Reasons)
	probe := m.come("10.0.0.2", http.StateActive)
	assert.False(t, probe.closed)
	assert.True(t, busy.closed, "the oldest of the address that has most")

	m.clock = m.clock.Add(2 * refusalFresh)
	assert.Empty(t, m.vitals().Reasons)
	m.state(probe, http.StateClosed)
	m.state(busy, http.StateClosed)
	assert.Len(t, m.conns, 2)
	assert.Equal(t, map[string]int{"10.0.0.1": 2}, m.ofPeer)
}

// A client that sends its request too slowly is cut off, on both servers.
func TestSlowClientsTimeOut(t *testing.T) {
	for _, s := range []*http.Server{newWeb().server(), newOps(newRegistry()).server()} {
		assert.LessOrEqual(t, s.ReadHeaderTimeout, 10*time.Second)
		assert.Positive(t, s.ReadHeaderTimeout)
		assert.Positive(t, s.ReadTimeout)
		assert.Positive(t, s.WriteTimeout)
		assert.Positive(t, s.IdleTimeout)
	}
}
