package server

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// lookAtPeer asks the system about the client of a socket that is not read. ok is false if it cannot
// say anything.
func lookAtPeer(nc net.Conn) (p peerState, ok bool) {
	tcp, isTCP := nc.(*net.TCPConn)
	if !isTCP {
		return p, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return p, false
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		unread, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		ok = err == nil
		p = peerState{
			reset:    info.State == unix.BPF_TCP_CLOSE,
			left:     info.State == unix.BPF_TCP_CLOSE_WAIT,
			crowded:  unread >= int(info.Rcv_wnd), // 0 in systems that do not tell it
			sent:     time.Duration(info.Last_data_recv) * time.Millisecond,
			answered: time.Duration(info.Last_ack_recv) * time.Millisecond,
		}
	})
	return p, ok && err == nil
}
