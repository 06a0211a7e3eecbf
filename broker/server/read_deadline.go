package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"curfew/broker/deadline"
)

// readDeadline is the read deadline of a connection's socket. It ends the reader's wait for
// the client after too long a silence. It is also how other goroutines reach the reader: they
// set the deadline to the past, and the reader wakes and does what it is asked to.
//
// wake, requestCheck and checkRequested may be called by any goroutine, the other functions
// only by the reader.
type readDeadline struct {
	nc        net.Conn
	heartbeat time.Duration // 0: no deadline while the connection is open
	extended  time.Time     // when the deadline was last set because of heartbeats; zero: the next extend sets it. Silence while the client was not read must not count
	leaveBy   time.Time     // a client that was sent connection.close may stay until then; zero: it was sent none

	mu          sync.Mutex
	check       bool          // the reader is to check for overdue deliveries
	checkCalled chan struct{} // wakes waitWhileBlocked for that
}

// open replaces the deadline of the handshake: from now on the client may be silent for two
// heartbeats.
func (d *readDeadline) open(heartbeat time.Duration) {
	d.heartbeat = heartbeat
	d.nc.SetDeadline(time.Time{})
}

// extend ends a connection after two heartbeats of silence. It does not set the deadline at
// every read, but only after a quarter of a heartbeat.
func (d *readDeadline) extend() {
	if d.heartbeat == 0 || !d.leaveBy.IsZero() {
		return
	}
	if now := time.Now(); now.Sub(d.extended) > d.heartbeat/4 {
		d.extended = now
		d.nc.SetReadDeadline(now.Add(silence(d.heartbeat)))
	}
}

// leave gives the client time to answer connection.close.
func (d *readDeadline) leave(grace time.Duration) {
	d.leaveBy = time.Now().Add(grace)
	d.nc.SetReadDeadline(d.leaveBy)
}

// wake wakes the reader.
func (d *readDeadline) wake() { d.nc.SetReadDeadline(time.Unix(1, 0)) }

// requestCheck makes the reader check for overdue deliveries. It does not block.
func (d *readDeadline) requestCheck() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.check = true
	d.wake()
	deadline.Wake(d.checkCalled) // or wakes it in waitWhileBlocked
}

// takeCheck reports whether requestCheck was called since the last time, and resets the read
// deadline. forced: the connection is forced to close, for which the reader must wake as well.
func (d *readDeadline) takeCheck(forced func() bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.check {
		return false
	}
	d.check = false
	if !d.leaveBy.IsZero() {
		d.nc.SetReadDeadline(d.leaveBy)
		return false
	}
	d.nc.SetReadDeadline(time.Time{})
	d.extended = time.Time{}
	d.extend()
	if forced() { // the deadline may have been set by wake
		d.wake()
	}
	return true
}

func (d *readDeadline) checkRequested() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.check
}

// interrupted reports whether a read ended only because the reader is to do something. forced:
// the connection is forced to close.
func (d *readDeadline) interrupted(err error, forced bool) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if !forced {
		return d.checkRequested()
	}
	if d.leaveBy.IsZero() {
		return true
	}
	left := time.Now().Before(d.leaveBy)
	if left {
		d.nc.SetReadDeadline(d.leaveBy)
	}
	return left
}
