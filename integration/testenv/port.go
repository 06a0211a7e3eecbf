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

var ports struct {
	sync.Mutex
	next int // 0 before the first
}

// FreeAddr returns a loopback address at which nobody listens. The same process is given no
// address twice, and different processes begin at different ones. It is safe for
// concurrent use.
func FreeAddr() string {
	ports.Lock()
	defer ports.Unlock()
	for range endPort - firstPort {
		if ports.next == 0 {
			ports.next = firstPort + rand.IntN(endPort-firstPort)
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports.next))
		if ports.next++; ports.next == endPort {
			ports.next = firstPort
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	panic("testenv: no port is free")
}
