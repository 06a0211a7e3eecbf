package settings

import "net"

// Reachable is the address of a listener for clients on this machine: an address that means every
// interface becomes loopback. A listener on [::] takes IPv4, too, and IPv6 may be off in a client.
func Reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip.Equal(net.IPv4zero) || ip.Equal(net.IPv6unspecified):
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
