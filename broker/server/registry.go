package server

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server/internal/deliveries"
)

// identity is what a connection displays of itself. It is known once the connection is open
// and does not change after that.
type identity struct {
	name        string
	user, vhost string
	protocol    string
	mechanism   string
	properties  []byte // of the client, encoded
	since       time.Time
	frameMax    uint32
	channelMax  uint16
	heartbeat   time.Duration
	tls         *tls.ConnectionState
}

// ConnectionInfo describes an open connection.
type ConnectionInfo struct {
	Protocol         string // "AMQP 0-9-1" or "AMQP 1.0"
	Name             string // "peer -> host", as RabbitMQ names connections
	Client           string // whose it is, for people, as queues keep whose consumer was the last to leave
	User, VHost      string
	Mechanism        string
	ClientProperties amqp.Table // must not be changed
	Since            time.Time
	PeerHost, Host   string
	PeerPort, Port   int
	FrameMax         uint32
	ChannelMax       uint16
	Heartbeat        time.Duration        // 0: none
	TLS              *tls.ConnectionState // nil: none
	Blocked          bool                 // it publishes, and a resource alarm is on
	Flow             bool                 // it publishes, and had to wait for consumers within the last second
	Reads, Received  uint64               // socket calls, bytes
	Writes, Sent     uint64
	Pending          int // bytes not yet written
	Channels         []ChannelInfo
	Identity         any // distinguishes this connection from every other one of its process, past and future
}

// ChannelInfo describes a channel.
type ChannelInfo struct {
	Number         uint16
	Connection     string
	State          string // the connection's
	User, VHost    string
	PeerHost       string
	PeerPort       int
	Confirm        bool
	Transactional  bool
	Prefetch       int // of consumers started from now on; 0: none
	GlobalPrefetch int // over all consumers; 0: none
	Unacked        int
	Unconfirmed    uint64
	Consumers      []ConsumerInfo
	Stats          ChannelStats
	Identity       any // distinguishes this channel from every other one of its process, past and future
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

// ConsumerInfo describes a consumer.
type ConsumerInfo struct {
	Tag              string
	Queue            *broker.Queue
	NoAck, Exclusive bool
	Prefetch         int   // 0: none
	TimeoutMillis    int64 // how long a delivery may stay unacknowledged unless it is locked; 0: forever
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

// client is whose connection it is, for people: what the client calls itself, the user and the address.
func (c *connection) client() string {
	i := c.identity.Load()
	if i == nil {
		return ""
	}
	name, _ := i.clientProperties()["connection_name"].(string)
	name = strings.ToValidUTF8(name[:min(len(name), 128)], "") // queues keep it
	return fmt.Sprintf("%s (user %s, %s)", cmp.Or(name, "a client without a name"), i.user, c.Peer().Host)
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

// Clients calls fn with the user and the properties of each open connection, in no order.
func (s *Server) Clients(fn func(user string, properties amqp.Table)) {
	for _, c := range s.open() {
		if i := c.identity.Load(); i != nil {
			fn(i.user, i.clientProperties())
		}
	}
}

// Counts returns how many connections and channels are open.
func (s *Server) Counts() (connections, channels int) {
	for _, c := range s.open() {
		if c.identity.Load() != nil {
			connections++
			channels += c.channels.count()
		}
	}
	return connections, channels
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
	reason = strings.ToValidUTF8(reason[:min(len(reason), 200)], "") // AMQP 0-9-1 allows 255, with the text around it
	for _, c := range s.open() {
		if i := c.identity.Load(); i != nil && match(i.name, i.user, i.vhost) {
			c.forceClose(amqp.NewException(amqp.ConnectionForced, 0, 0, "%s", reason))
			n++
		}
	}
	return n
}

// list adds the connection to those that List returns.
func (c *connection) list(h *handshake) {
	protocol := "AMQP 0-9-1"
	if c.ten != nil {
		protocol = "AMQP 1.0"
	}
	c.identity.Store(&identity{
		protocol: protocol,
		name:     addrText(c.nc.RemoteAddr()) + " -> " + addrText(c.nc.LocalAddr()),
		user:     c.userName, vhost: c.user.VHost.Name(), mechanism: h.mechanism, properties: h.properties,
		since: time.Now(), frameMax: c.frameMax, channelMax: c.channelMax, heartbeat: h.heartbeat, tls: h.client.TLS,
	})
	c.srv.Totals.ConnectionsOpened.Add(1)
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

func (c *connection) info(i *identity) ConnectionInfo {
	info := ConnectionInfo{
		Protocol: i.protocol, Name: i.name, Client: c.client(), User: i.user, VHost: i.vhost, Mechanism: i.mechanism, ClientProperties: i.clientProperties(), Since: i.since,
		FrameMax: i.frameMax, ChannelMax: i.channelMax, Heartbeat: i.heartbeat, TLS: i.tls, Blocked: c.blocked.Load(), Flow: c.inFlow(),
		Reads: c.reads.Load(), Received: c.received.Load(), Pending: c.out.Pending(),
		Identity: i, Writes: c.out.Writes.Load(), Sent: c.out.Octets.Load(),
	}
	info.PeerHost, info.PeerPort = hostPort(c.nc.RemoteAddr())
	info.Host, info.Port = hostPort(c.nc.LocalAddr())
	for _, ch := range c.channels.list() {
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

func (ch *channel) info(of *ConnectionInfo) ChannelInfo {
	d := ch.deliveries.Info()
	info := ChannelInfo{
		Number: ch.id, Connection: of.Name, State: of.State(), User: of.User, VHost: of.VHost, PeerHost: of.PeerHost, PeerPort: of.PeerPort,
		Transactional: ch.tx.Load() != nil, Prefetch: d.Prefetch, GlobalPrefetch: d.GlobalPrefetch, Unacked: d.Unacked,
		Stats: ChannelStats{
			Published: ch.published.published.Load(), Returned: ch.published.returned.Load(), Dropped: ch.published.dropped.Load(),
			MessageStats: d.Stats,
		},
		Identity: ch,
	}
	if c := ch.confirms.Load(); c != nil {
		info.Confirm = true
		info.Stats.Confirmed, info.Unconfirmed = c.counts()
	}
	for _, c := range d.Consumers {
		info.Consumers = append(info.Consumers, ch.consumerInfo(c, of))
	}
	slices.SortFunc(info.Consumers, func(x, y ConsumerInfo) int { return cmp.Compare(x.Tag, y.Tag) })
	return info
}

func (ch *channel) consumerInfo(c *deliveries.Consumer, of *ConnectionInfo) ConsumerInfo {
	return ConsumerInfo{
		Tag: c.Tag, Queue: c.Queue, NoAck: c.NoAck, Exclusive: c.Exclusive, Prefetch: c.Prefetch, Arguments: c.Arguments(), Status: c.Status(),
		Channel: ch.id, Connection: of.Name, User: of.User, PeerHost: of.PeerHost, PeerPort: of.PeerPort,
		TimeoutMillis: deliveries.Timeout(c.Queue, c, ch.conn.srv.timeoutMillis),
	}
}
