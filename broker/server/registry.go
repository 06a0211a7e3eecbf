package server

import (
	"cmp"
	"crypto/tls"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
)

// identity is what a connection displays of itself. It is known once the connection is open
// and does not change after that.
type identity struct {
	name        string
	user, vhost string
	mechanism   string
	properties  []byte // of the client, encoded
	since       time.Time
	frameMax    uint32
	channelMax  uint16
	heartbeat   time.Duration
	tls         *tls.ConnectionState
}

// traffic counts a connection's socket calls.
type traffic struct{ reads, received, writes, sent atomic.Uint64 }

func (t *traffic) read(n int)    { t.reads.Add(1); t.received.Add(uint64(n)) }
func (t *traffic) written(n int) { t.writes.Add(1); t.sent.Add(uint64(n)) }

// ConnectionInfo describes an open connection.
type ConnectionInfo struct {
	Name               string // "peer -> host", as RabbitMQ names connections
	User, VHost        string
	Mechanism          string
	ClientProperties   amqp.Table // must not be changed
	Since              time.Time
	PeerHost, Host     string
	PeerPort, Port     int
	FrameMax           uint32
	ChannelMax         uint16
	Heartbeat          time.Duration        // 0: none
	TLS                *tls.ConnectionState // nil: none
	Blocked            bool                 // it publishes, and a resource alarm is on
	Flow               bool                 // it publishes, and had to wait for consumers within the last second
	Reads, Received    uint64               // socket calls, bytes
	Writes, Sent       uint64
	Pending            int // bytes not yet written
	Channels           []ChannelInfo
	identityOfLifetime *identity
}

// ChannelInfo describes a channel.
type ChannelInfo struct {
	Number             uint16
	Connection         string
	State              string // the connection's
	User, VHost        string
	PeerHost           string
	PeerPort           int
	Confirm            bool
	Transactional      bool
	Prefetch           int // of consumers started from now on; 0: none
	GlobalPrefetch     int // over all consumers; 0: none
	Unacked            int
	Unconfirmed        uint64
	Consumers          []ConsumerInfo
	Counts             ChannelCounts
	identityOfLifetime *channel
}

// State is what its reader does, in RabbitMQ's words: "running", "blocked" by a resource alarm, or in "flow".
func (c *ConnectionInfo) State() string {
	switch {
	case c.Blocked:
		return "blocked"
	case c.Flow:
		return "flow"
	}
	return "running"
}

// Consumers returns how many it has on all channels.
func (c *ConnectionInfo) Consumers() (n int) {
	for i := range c.Channels {
		n += len(c.Channels[i].Consumers)
	}
	return n
}

// Unacked returns how many messages it holds on all channels.
func (c *ConnectionInfo) Unacked() (n int) {
	for i := range c.Channels {
		n += c.Channels[i].Unacked
	}
	return n
}

// Name returns the channel's name, in RabbitMQ's form.
func (c *ChannelInfo) Name() string {
	return c.Connection + " (" + strconv.Itoa(int(c.Number)) + ")"
}

// Identity distinguishes this channel from every other one of its process, past and future.
func (c *ChannelInfo) Identity() any { return c.identityOfLifetime }

// Identity distinguishes this connection from every other one of its process, past and
// future.
func (c *ConnectionInfo) Identity() any { return c.identityOfLifetime }

// ConsumerInfo describes a consumer.
type ConsumerInfo struct {
	Tag              string
	Queue            *broker.Queue
	NoAck, Exclusive bool
	Prefetch         int // 0: none
	Arguments        amqp.Table
	Status           broker.Status
	Channel          uint16
	Connection       string
	User             string
	PeerHost         string
	PeerPort         int
}

// Peer is the client at the other end of a connection.
type Peer struct {
	Name string // of the connection
	Host string
	Port int
}

// Peer identifies the owner of an exclusive queue, which is a connection.
func (c *connection) Peer() Peer {
	host, port := hostPort(c.nc.RemoteAddr())
	if i := c.identity.Load(); i != nil {
		return Peer{i.name, host, port}
	}
	return Peer{Host: host, Port: port}
}

// List returns the open connections with their channels and consumers, ordered by name.
func (s *Server) List() []ConnectionInfo {
	var all []ConnectionInfo
	for _, c := range s.open() {
		if i := c.identity.Load(); i != nil {
			all = append(all, c.info(i))
		}
	}
	slices.SortFunc(all, func(x, y ConnectionInfo) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// Counts returns how many connections and channels are open.
func (s *Server) Counts() (connections, channels int) {
	for _, c := range s.open() {
		if c.identity.Load() != nil {
			connections++
			channels += c.channelCount()
		}
	}
	return connections, channels
}

func (c *connection) channelCount() int {
	c.listing.Lock()
	defer c.listing.Unlock()
	return len(c.channels)
}

func (s *Server) open() []*connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*connection, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// CloseConnections closes the open connections for which match returns true, with 320
// CONNECTION_FORCED and the reason, and returns their number. It does not wait for the
// clients to answer.
func (s *Server) CloseConnections(reason string, match func(name, user, vhost string) bool) (n int) {
	for _, c := range s.open() {
		if i := c.identity.Load(); i != nil && match(i.name, i.user, i.vhost) {
			c.forceClose(amqp.NewException(amqp.ConnectionForced, 0, 0, "%s", reason))
			n++
		}
	}
	return n
}

// list adds the connection to those that List returns.
func (c *connection) list() {
	c.identity.Store(&identity{
		name: addrText(c.nc.RemoteAddr()) + " -> " + addrText(c.nc.LocalAddr()),
		user: c.user, vhost: c.vhost.Name(), mechanism: c.mechanism, properties: c.properties,
		since: time.Now(), frameMax: c.frameMax, channelMax: c.chanMax, heartbeat: c.heartbeat, tls: c.tls,
	})
	c.srv.totals.connectionsOpened.Add(1)
}

// clientProperties decodes the client's properties. Few ask for them, and encoded they take
// a fraction of the memory.
func (i *identity) clientProperties() amqp.Table {
	t, _, _ := amqp.ParseTable(i.properties, amqp.Limits{}) // it was encoded here
	return t
}

func addrText(a net.Addr) string {
	if a == nil {
		return "unknown"
	}
	return a.String()
}

// unlist removes the connection from those that List returns.
func (c *connection) unlist() {
	if c.identity.Swap(nil) != nil {
		c.srv.totals.connectionsClosed.Add(1)
	}
}

func (c *connection) info(i *identity) ConnectionInfo {
	info := ConnectionInfo{
		Name: i.name, User: i.user, VHost: i.vhost, Mechanism: i.mechanism, ClientProperties: i.clientProperties(), Since: i.since,
		FrameMax: i.frameMax, ChannelMax: i.channelMax, Heartbeat: i.heartbeat, TLS: i.tls, Blocked: c.blocked.Load(), Flow: c.inFlow(),
		Reads: c.traffic.reads.Load(), Received: c.traffic.received.Load(),
		Writes: c.traffic.writes.Load(), Sent: c.traffic.sent.Load(), Pending: c.out.pending(),
		identityOfLifetime: i,
	}
	info.PeerHost, info.PeerPort = hostPort(c.nc.RemoteAddr())
	info.Host, info.Port = hostPort(c.nc.LocalAddr())
	for _, ch := range c.listChannels() {
		info.Channels = append(info.Channels, ch.info(&info))
	}
	return info
}

func hostPort(a net.Addr) (host string, port int) {
	host, text, err := net.SplitHostPort(addrText(a))
	if err != nil {
		return addrText(a), 0
	}
	port, _ = strconv.Atoi(text)
	return host, port
}

// listChannels returns the channels, ordered by number. Any goroutine may call it.
func (c *connection) listChannels() []*channel {
	c.listing.Lock()
	defer c.listing.Unlock()
	all := make([]*channel, 0, len(c.channels))
	for _, ch := range c.channels {
		all = append(all, ch)
	}
	slices.SortFunc(all, func(x, y *channel) int { return cmp.Compare(x.id, y.id) })
	return all
}

func (ch *channel) info(of *ConnectionInfo) ChannelInfo {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	info := ChannelInfo{
		Number: ch.id, Connection: of.Name, State: of.State(), User: of.User, VHost: of.VHost, PeerHost: of.PeerHost, PeerPort: of.PeerPort,
		Confirm: ch.confirm, Transactional: ch.tx != nil, Prefetch: ch.prefetch, GlobalPrefetch: ch.limit, Unacked: ch.unacked.count,
		Unconfirmed: ch.toConfirm - ch.answered, Counts: ch.counts,
		identityOfLifetime: ch,
	}
	for _, c := range ch.consumers {
		info.Consumers = append(info.Consumers, c.info(of))
	}
	slices.SortFunc(info.Consumers, func(x, y ConsumerInfo) int { return cmp.Compare(x.Tag, y.Tag) })
	return info
}

func (c *consumer) info(of *ConnectionInfo) ConsumerInfo {
	return ConsumerInfo{
		Tag: c.Tag, Queue: c.on, NoAck: c.NoAck, Exclusive: c.Exclusive, Prefetch: c.prefetch, Arguments: c.decodeArguments(), Status: c.Status(),
		Channel: c.ch.id, Connection: of.Name, User: of.User, PeerHost: of.PeerHost, PeerPort: of.PeerPort,
	}
}

// pending returns how many bytes wait to be written.
func (o *outbox) pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.buf)
}
