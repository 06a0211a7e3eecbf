package server

import (
	"net/netip"
	"time"
)

// admission bounds the connections that are not open yet, so that clients that
// never finish keep nobody else out. Where there are too many, the oldest of the
// address that has most goes: for a client from another one at once, for one of
// the same if it had its time. Else the new one goes. Guarded by Server.mu.
type admission struct {
	handshakes map[*connection]struct{}
	ofPeer     map[netip.Addr]int
}

// handshakeDue is how long a client that does not dawdle takes at most.
const handshakeDue = 2 * time.Second

// admit takes a connection in, or says why not. Called with mu held.
func (s *Server) admit(c *connection) (why string) {
	a, peer := &s.admission, c.peer()
	switch {
	case s.stopping:
		return "stopping"
	case len(s.conns) >= s.opts.MaxConnections:
		s.fullAt.Store(time.Now().UnixNano())
		return "too many connections"
	case c.remote() && a.ofPeer[peer] >= s.opts.MaxPeerHandshakes && !a.evict(peer, handshakeDue):
		return "too many handshakes of this address"
	case len(a.handshakes) >= s.opts.MaxHandshakes && !a.makeRoom(peer):
		return "too many handshakes"
	}
	s.conns[c] = struct{}{}
	a.handshakes[c] = struct{}{}
	a.ofPeer[peer]++
	return ""
}

// makeRoom cuts off one connection for a new one of the peer, if that is fair.
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

// evict cuts off the peer's oldest connection, if it is at least that old.
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
	a.drop(oldest)
	return true
}

// drop counts a connection no more, if it was counted.
func (a *admission) drop(c *connection) {
	if _, counted := a.handshakes[c]; !counted {
		return
	}
	delete(a.handshakes, c)
	if a.ofPeer[c.peer()]--; a.ofPeer[c.peer()] == 0 {
		delete(a.ofPeer, c.peer())
	}
}

// opened notes that a connection's handshake is over.
func (s *Server) opened(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admission.drop(c)
}

// left notes that a connection is over.
func (s *Server) left(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admission.drop(c)
	delete(s.conns, c)
}
