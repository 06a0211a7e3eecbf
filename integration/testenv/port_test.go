package testenv

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFreeAddrIsFreeAndNewEachTime(t *testing.T) {
	seen := make(map[string]bool)
	for range 100 {
		addr := FreeAddr()
		require.False(t, seen[addr], addr)
		seen[addr] = true
		l, err := net.Listen("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
	}
}

func TestAProcessLeavesOthersTheirPorts(t *testing.T) {
	FreeAddr()
	for _, l := range ports.taken {
		other, err := net.Listen("tcp", l.Addr().String())
		if err == nil {
			other.Close()
		}
		require.Error(t, err, "another process takes the block as well")
	}
}
