package server

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// peerState is what the system knows about a client without reading its socket.
type peerState struct {
	reset    bool          // the connection was reset, or its host has not answered for too long
	left     bool          // it has closed the connection; what it sent before can still be read
	crowded  bool          // so much is unread that it may not be able to send a heartbeat
	sent     time.Duration // since it last sent something
	answered time.Duration // since its host last confirmed something, for example a heartbeat of ours
}

const (
	// lookEvery is how often the client of a blocked connection is looked at.
	lookEvery = time.Second
	// leftFor is for how long what a client without heartbeats has left behind waits to be read.
	leftFor = 30 * time.Second
)

var errMissedHeartbeats = errors.New("server: missed heartbeats from client")

// gone returns why the connection ends, or nil. A client that has closed the connection may have
// left messages, which wait to be read for one heartbeat. A client that can send and does
// not, or whose host confirms no heartbeats, has the usual time (readDeadline.extend).
func (p peerState) gone(heartbeat time.Duration) error {
	patience := silence(heartbeat)
	stay := heartbeat
	if heartbeat == 0 {
		stay = leftFor
	}
	switch {
	case p.reset:
		return errors.New("the client has reset it while it was blocked")
	case p.left && p.sent >= stay:
		return errors.New("the client has closed it while it was blocked")
	case heartbeat > 0 && (p.answered >= patience || !p.left && !p.crowded && p.sent >= patience):
		return errMissedHeartbeats
	}
	return nil
}

// silence is how long a client may be silent.
func silence(heartbeat time.Duration) time.Duration { return 2*heartbeat + heartbeat/4 }

// awaitPeer returns a channel that ticks when the client is to be looked at, and how to stop that.
// It never ticks if the system says nothing about the client.
func awaitPeer(nc net.Conn) (look <-chan time.Time, stop func()) {
	if _, ok := lookAtPeer(nc); !ok {
		return nil, func() {}
	}
	t := time.NewTicker(lookEvery)
	return t.C, t.Stop
}

// checkPeer ends a blocked connection whose client is gone.
func (c *connection) checkPeer() error {
	p, ok := lookAtPeer(c.socket)
	if !ok {
		return nil
	}
	if err := p.gone(c.deadline.heartbeat); err != nil {
		return fmt.Errorf("%w: %w", errEnd, err)
	}
	return nil
}
