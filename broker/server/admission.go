package server

import (
	"io"
	"net/netip"
	"time"
)

// admitted is a connection that is not open yet.
type admitted struct {
	address netip.Addr // zero for a pipe or a Unix socket
	began   time.Time
	socket  io.Closer // closing it ends the connection without an answer; it must not block
}

// handshakeDue is the longest handshake of a client that does not delay it.
const handshakeDue = 2 * time.Second

// handshakes are the connections that are not open yet. If there are too many, the oldest one
// of the address that has the most is cut off: at once for a client from another address, and
// for a client from the same address only if it is older than handshakeDue. Otherwise the new
// connection is refused. Their number is limited to most, and to mostOfPeer from one address. Not safe for concurrent use.
type handshakes struct {
	most, mostOfPeer int
	open             map[*admitted]struct{}
	ofPeer           map[netip.Addr]int
}

// Add admits a connection, or returns why not. remote says that its address is not this
// machine's: only then it is held to the limit of one address.
func (a *handshakes) Add(h *admitted, remote bool) (why string) {
	peer := h.address
	switch {
	case remote && a.ofPeer[peer] >= a.mostOfPeer && !a.evict(peer, handshakeDue):
		return "too many handshakes from this address"
	case len(a.open) >= a.most && !a.makeRoom(peer):
		return "too many handshakes"
	}
	if a.open == nil {
		a.open, a.ofPeer = map[*admitted]struct{}{}, map[netip.Addr]int{}
	}
	a.open[h] = struct{}{}
	a.ofPeer[peer]++
	return ""
}

// makeRoom cuts off one connection to make room for a new one of the peer, if that is fair.
func (a *handshakes) makeRoom(peer netip.Addr) bool {
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
func (a *handshakes) evict(peer netip.Addr, age time.Duration) bool {
	var oldest *admitted
	for h := range a.open {
		if h.address == peer && (oldest == nil || h.began.Before(oldest.began)) {
			oldest = h
		}
	}
	if oldest == nil || time.Since(oldest.began) < age {
		return false
	}
	oldest.socket.Close()
	a.Remove(oldest)
	return true
}

// Remove stops counting a connection, if it was counted.
func (a *handshakes) Remove(h *admitted) {
	if _, counted := a.open[h]; !counted {
		return
	}
	delete(a.open, h)
	if a.ofPeer[h.address]--; a.ofPeer[h.address] == 0 {
		delete(a.ofPeer, h.address)
	}
}
