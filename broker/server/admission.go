package server

import (
	"net/netip"
	"time"
)

// admission bounds the connections that are not open yet, so that clients that never finish
// their handshake cannot keep others out. If there are too many, the oldest connection of
// the address that has the most is closed: at once for a client from another address, and
// for a client from the same address only if it is older than handshakeDue. Otherwise the
// new connection is closed. Guarded by Server.mu.
type admission struct {
	handshakes map[*connection]struct{}
	ofPeer     map[netip.Addr]int
}

// handshakeDue is the longest handshake of a client that does not delay it.
const handshakeDue = 2 * time.Second

// admitLocked admits a connection, or returns why not.
func (s *Server) admitLocked(c *connection) (why string) {
	a, peer := &s.admission, c.peer()
	switch {
	case s.stopping:
		return "stopping"
	case len(s.conns) >= s.opts.MaxConnections:
		s.fullAt.Store(time.Now().UnixNano())
		return "too many connections"
	case c.remote() && a.ofPeer[peer] >= s.opts.MaxPeerHandshakes && !a.evict(peer, handshakeDue):
		return "too many handshakes from this address"
	case len(a.handshakes) >= s.opts.MaxHandshakes && !a.makeRoom(peer):
		return "too many handshakes"
	}
	s.conns[c] = struct{}{}
	a.handshakes[c] = struct{}{}
	a.ofPeer[peer]++
	return ""
}

// makeRoom cuts off one connection to make room for a new one of the peer, if that is fair.
func (a *admission) makeRoom(peer netip.Addr) bool {
	most := peer
	for other, n := range a.ofPeer {
		if n > a.ofPeer[most] {
			most = other
		}
	}
	if most != peer {
		return a.evict(most, 0)
	}
	return a.evict(peer, handshakeDue)
}

// evict cuts off the peer's oldest connection, if it is at least as old as age.
func (a *admission) evict(peer netip.Addr, age time.Duration) bool {
	var oldest *connection
	for c := range a.handshakes {
		if c.peer() == peer && (oldest == nil || c.accepted.Before(oldest.accepted)) {
			oldest = c
		}
	}
	if oldest == nil || time.Since(oldest.accepted) < age {
		return false
	}
	oldest.cutOff()
	a.remove(oldest)
	return true
}

// remove stops counting a connection, if it was counted.
func (a *admission) remove(c *connection) {
	if _, counted := a.handshakes[c]; !counted {
		return
	}
	delete(a.handshakes, c)
	if a.ofPeer[c.peer()]--; a.ofPeer[c.peer()] == 0 {
		delete(a.ofPeer, c.peer())
	}
}

// handshakeEnded records that a connection is open.
func (s *Server) handshakeEnded(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admission.remove(c)
}

// connectionEnded records that a connection has ended.
func (s *Server) connectionEnded(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admission.remove(c)
	delete(s.conns, c)
}
