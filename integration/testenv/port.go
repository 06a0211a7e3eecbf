package testenv

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports FreeAddr chooses from lie below those the kernel gives to outgoing
// connections (net.ipv4.ip_local_port_range, from 32768). A port of that range can be
// taken between its choice and its server's start; and a client that dials such a port
// while its server is down now and then connects to itself, and keeps the port.
const firstPort, endPort = 20_000, 32_000

// blockPorts is how many ports a process takes at a time. It listens at the first of them for as long as it runs, which tells others that the
// block is taken.
const blockPorts = 50

var ports struct {
	sync.Mutex
	next, end int            // of the block
	taken     []net.Listener // of the blocks
}

// FreeAddr returns a loopback address at which nobody listens. No address is given twice, neither by a process nor by two that run at the same
// time. It is safe for concurrent use.
func FreeAddr() string {
	ports.Lock()
	defer ports.Unlock()
	for range endPort - firstPort {
		if ports.next == ports.end {
			ports.next = firstPort + rand.IntN((endPort-firstPort)/blockPorts)*blockPorts
			l := listen(ports.next)
			if ports.end = ports.next; l == nil {
				continue // it is another's
			}
			ports.taken, ports.end = append(ports.taken, l), ports.next+blockPorts
			ports.next++
		}
		ports.next++
		if l := listen(ports.next - 1); l != nil {
			l.Close()
			return l.Addr().String()
		}
	}
	panic("testenv: no port is free")
}

func listen(port int) net.Listener {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil
	}
	return l
}
