package server

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// cut is closed by a handshake that gives way.
type cut bool

func (c *cut) Close() error {
	*c = true
	return nil
}

func peerFrom(address string) *admitted {
	return &admitted{address: netip.MustParseAddr(address), began: time.Now(), socket: new(cut)}
}

func TestTheAddressWithMostGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := handshakes{most: 3, mostOfPeer: 3}
		var crowd []*admitted
		for _, address := range []string{"10.0.0.1", "10.0.0.1", "10.0.0.2"} {
			crowd = append(crowd, peerFrom(address))
			assert.Empty(t, a.Add(crowd[len(crowd)-1], true))
			time.Sleep(time.Millisecond)
		}
		assert.Equal(t, "too many handshakes", a.Add(peerFrom("10.0.0.1"), true), "its own may still be coming")
		assert.Empty(t, a.Add(peerFrom("10.0.0.3"), true))
		assert.Equal(t, []cut{true, false, false}, []cut{*crowd[0].socket.(*cut), *crowd[1].socket.(*cut), *crowd[2].socket.(*cut)}, "the oldest of the largest")
		time.Sleep(handshakeDue)
		assert.Empty(t, a.Add(peerFrom("10.0.0.2"), true), "a handshake has taken too long")
	})
}

func TestOneAddressHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := handshakes{most: 10, mostOfPeer: 2}
		first := peerFrom("10.0.0.1")
		assert.Empty(t, a.Add(first, true))
		assert.Empty(t, a.Add(peerFrom("10.0.0.1"), true))
		assert.Equal(t, "too many handshakes from this address", a.Add(peerFrom("10.0.0.1"), true))
		a.Remove(first)
		a.Remove(first)
		assert.Empty(t, a.Add(peerFrom("10.0.0.1"), true))
		for range 5 {
			assert.Empty(t, a.Add(peerFrom("127.0.0.1"), false), "this machine's has none")
		}
	})
}
