package server

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

type peerStub struct {
	address netip.Addr
	began   time.Time
	cut     bool
}

func (c *peerStub) Address() netip.Addr { return c.address }
func (c *peerStub) Began() time.Time    { return c.began }
func (c *peerStub) CutOff()             { c.cut = true }

func peerFrom(address string) *peerStub {
	return &peerStub{address: netip.MustParseAddr(address), began: time.Now()}
}

func TestTheAddressWithMostGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHandshakes(3, 3)
		var crowd []*peerStub
		for _, address := range []string{"10.0.0.1", "10.0.0.1", "10.0.0.2"} {
			crowd = append(crowd, peerFrom(address))
			assert.Empty(t, a.Add(crowd[len(crowd)-1], true))
			time.Sleep(time.Millisecond)
		}
		assert.Equal(t, "too many handshakes", a.Add(peerFrom("10.0.0.1"), true), "its own may still be coming")
		assert.Empty(t, a.Add(peerFrom("10.0.0.3"), true))
		assert.Equal(t, []bool{true, false, false}, []bool{crowd[0].cut, crowd[1].cut, crowd[2].cut}, "the oldest of the largest")
		time.Sleep(handshakeDue)
		assert.Empty(t, a.Add(peerFrom("10.0.0.2"), true), "a handshake has taken too long")
	})
}

func TestOneAddressHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHandshakes(10, 2)
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
