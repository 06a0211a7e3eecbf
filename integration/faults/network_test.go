package faults

import (
	"net"
	"sync"
	"testing"
	"time"

	"curfew/integration/testenv"
)

const networkDelay = 100 * time.Millisecond

// TestRedisBehindABadNetwork puts a network between Curfew and its Redis that is slow,
// then swallows everything without a word, then resets connections all the time, then
// heals. Publishing and deadlines go on throughout, and the schedule comes back.
func TestRedisBehindABadNetwork(t *testing.T) {
	t.Parallel()
	link := newLink(t, testenv.StartRedis(t).Addr)
	tr := newTrial(t, t.TempDir())
	tr.settings = []string{"REDIS_URL=redis://" + link.addr}
	tr.tell()
	tr.start()
	tr.process.ready()
	tr.declare()
	tr.scheduleUp()
	r := tr.rounds()
	r.run("as it should be")
	link.slow(networkDelay)
	r.run("slow")
	link.swallow()
	r.run("swallowing")
	link.reset(true)
	r.run("resetting")
	link.reset(false)
	link.slow(0)
	tr.scheduleUp()
	r.run("healed")
	r.end()
}

// scheduleUp waits for the schedule in Redis to be the one that fires.
func (tr *trial) scheduleUp() {
	tr.t.Helper()
	eventually(tr.t, startLimit, "the schedule in Redis", func() bool { return tr.process.metric("curfew_schedule_up") == 1 })
}

// link is a network between one listener and one server.
type link struct {
	addr, server string

	mu        sync.Mutex
	delay     time.Duration
	swallowed chan struct{} // nil: all gets through; closed when it does again
	resetting bool
	conns     map[*net.TCPConn]struct{}
}

func newLink(t *testing.T, server string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	l := &link{addr: listener.Addr().String(), server: server, conns: map[*net.TCPConn]struct{}{}}
	t.Cleanup(func() {
		listener.Close()
		l.reset(true)
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.join(conn.(*net.TCPConn))
		}
	}()
	return l
}

// slow has every piece of data take so long, in both directions.
func (l *link) slow(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// swallow lets nothing through, and says nothing.
func (l *link) swallow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.swallowed = make(chan struct{})
}

// reset ends what is open without a goodbye, and with on whatever comes.
func (l *link) reset(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resetting = on; l.swallowed != nil {
		close(l.swallowed)
		l.swallowed = nil
	}
	for conn := range l.conns {
		conn.SetLinger(0)
		conn.Close()
	}
}

func (l *link) join(client *net.TCPConn) {
	defer client.Close()
	conn, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	l.mu.Lock()
	if l.resetting {
		client.SetLinger(0)
		l.mu.Unlock()
		return
	}
	l.conns[client], l.conns[server] = struct{}{}, struct{}{}
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.carry(client, server) })
	both.Go(func() { l.carry(server, client) })
	both.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, client)
	delete(l.conns, server)
}

// carry takes data one way until an end is gone; then it ends the other.
func (l *link) carry(from, to *net.TCPConn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<14)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		l.travel()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// travel takes as long as the network does.
func (l *link) travel() {
	l.mu.Lock()
	delay, swallowed := l.delay, l.swallowed
	l.mu.Unlock()
	if delay > 0 {
		<-time.After(delay)
	}
	if swallowed != nil {
		<-swallowed
	}
}
