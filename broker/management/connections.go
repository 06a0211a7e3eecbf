package management

import (
	"crypto/tls"
	"slices"
	"time"

	"curfew/broker"
	"curfew/broker/server"
)

// connections are the open ones the user may see: his own, or all if he monitors.
func (q *request) connections() []server.ConnectionInfo {
	return slices.DeleteFunc(q.api.Server.List(), func(c server.ConnectionInfo) bool {
		return !q.user.is(monitor) && c.User != q.user.Name
	})
}

func (q *request) listConnections() error {
	vhost, user := q.param("vhost"), q.param("user")
	q.api.rates.refresh()
	all := slices.DeleteFunc(q.connections(), func(c server.ConnectionInfo) bool {
		return vhost != "" && c.VHost != vhost || user != "" && c.User != user
	})
	return q.rows(len(all), func(i int) object { return q.connectionObject(&all[i]) })
}

// connection is the one that the path names.
func (q *request) connection() (*server.ConnectionInfo, error) {
	name := q.param("connection")
	for _, c := range q.api.Server.List() {
		if c.Name != name {
			continue
		}
		if !q.user.is(monitor) && c.User != q.user.Name {
			return nil, unauthorised("User not authorised to access object")
		}
		return &c, nil
	}
	return nil, errNotFound
}

func (q *request) getConnection() error {
	c, err := q.connection()
	if err != nil {
		return err
	}
	asked, err := q.spans()
	if err != nil {
		return err
	}
	q.api.rates.refresh()
	o := q.connectionObject(c)
	q.samples(o, c.Identity(), asked, "data_rates", "recv_oct", "send_oct")
	return q.one(o)
}

// closeReason is what a client is told that somebody closed by hand.
const closeReason = "Closed via management plugin"

// closeConnection closes the user's own connection, or any for an administrator.
// X-Reason is data: it becomes part of a text and nothing else.
func (q *request) closeConnection() error {
	c, err := q.connection()
	if err != nil {
		return err
	}
	if c.User != q.user.Name && !q.user.is(administrator) {
		return unauthorised("User not authorised to access object")
	}
	q.api.Server.CloseConnections(q.closeReason(), func(name, user, _ string) bool { return name == c.Name && user == c.User })
	return q.done()
}

const maxReason = 200 // octets; a reply text has 255

func (q *request) closeReason() string {
	reason := q.Header.Get("X-Reason")
	if reason == "" {
		return closeReason
	}
	return reason[:min(len(reason), maxReason)]
}

// closeUser closes all connections of a user.
func (q *request) closeUser() error {
	wanted := q.param("user")
	if wanted != q.user.Name && !q.user.is(administrator) {
		return unauthorised("User not authorised to access object")
	}
	q.api.Server.CloseConnections(q.closeReason(), func(_, user, _ string) bool { return user == wanted })
	return q.done()
}

// connectionState is in RabbitMQ's words.
func connectionState(c *server.ConnectionInfo) string {
	switch {
	case c.Blocked:
		return "blocked"
	case c.Flow:
		return "flow"
	}
	return "running"
}

func (q *request) connectionObject(c *server.ConnectionInfo) object {
	properties := jsonOf(c.ClientProperties)
	given, _ := properties["connection_name"].(string)
	o := object{
		"name": c.Name, "node": q.api.Node, "type": "network", "protocol": "AMQP 0-9-1", "state": connectionState(c),
		"user": c.User, "user_who_performed_action": c.User, "vhost": c.VHost, "auth_mechanism": c.Mechanism,
		"user_provided_name": given, "client_properties": properties, "connected_at": c.Since.UnixMilli(),
		"host": c.Host, "port": c.Port, "peer_host": c.PeerHost, "peer_port": c.PeerPort,
		"channel_max": c.ChannelMax, "frame_max": c.FrameMax, "timeout": int(c.Heartbeat / time.Second), "channels": len(c.Channels),
		"recv_cnt": c.Reads, "send_cnt": c.Writes, "send_pend": c.Pending, "reductions": 0, "reductions_details": object{"rate": rate(0)},
		"ssl": false, "ssl_protocol": nil, "ssl_cipher": nil, "ssl_hash": nil, "ssl_key_exchange": nil,
		"peer_cert_issuer": nil, "peer_cert_subject": nil, "peer_cert_validity": nil, "garbage_collection": noGarbage,
	}
	if c.TLS != nil {
		addTLS(o, c.TLS)
	}
	for name, v := range q.api.rates.stats(c.Identity(), counts{"recv_oct": c.Received, "send_oct": c.Sent}) {
		o[name] = v
	}
	return o
}

// addTLS says how the connection is protected, and whose certificate the client
// showed.
func addTLS(o object, s *tls.ConnectionState) {
	o["ssl"], o["ssl_protocol"], o["ssl_cipher"] = true, tls.VersionName(s.Version), tls.CipherSuiteName(s.CipherSuite)
	if len(s.PeerCertificates) == 0 {
		return
	}
	cert := s.PeerCertificates[0]
	o["peer_cert_subject"], o["peer_cert_issuer"] = cert.Subject.String(), cert.Issuer.String()
	o["peer_cert_validity"] = cert.NotBefore.UTC().Format(time.RFC3339) + " - " + cert.NotAfter.UTC().Format(time.RFC3339)
}

// noGarbage stands where RabbitMQ tells of its runtime.
var noGarbage = object{"max_heap_size": -1, "min_bin_vheap_size": -1, "min_heap_size": -1, "fullsweep_after": -1, "minor_gcs": -1}

func (q *request) listChannels() error {
	vhost := q.param("vhost")
	q.api.rates.refresh()
	var all []server.ChannelInfo
	for _, c := range q.connections() {
		if vhost == "" || c.VHost == vhost {
			all = append(all, c.Channels...)
		}
	}
	return q.rows(len(all), func(i int) object { return q.channelObject(&all[i]) })
}

func (q *request) connectionChannels() error {
	c, err := q.connection()
	if err != nil {
		return err
	}
	q.api.rates.refresh()
	return q.rows(len(c.Channels), func(i int) object { return q.channelObject(&c.Channels[i]) })
}

func (q *request) getChannel() error {
	name := q.param("channel")
	for _, c := range q.connections() {
		for _, ch := range c.Channels {
			if ch.Name() == name {
				q.api.rates.refresh()
				o := q.channelObject(&ch)
				o["consumer_details"] = q.consumerObjects(ch.Consumers)
				o["publishes"], o["deliveries"] = []any{}, []any{}
				return q.one(o)
			}
		}
	}
	return errNotFound
}

func (q *request) channelObject(ch *server.ChannelInfo) object {
	return object{
		"name": ch.Name(), "number": ch.Number, "node": q.api.Node, "state": "running",
		"user": ch.User, "user_who_performed_action": ch.User, "vhost": ch.VHost,
		"connection_details": object{"name": ch.Connection, "peer_host": ch.PeerHost, "peer_port": ch.PeerPort},
		"confirm":            ch.Confirm, "transactional": ch.Transactional,
		"consumer_count": len(ch.Consumers), "prefetch_count": ch.Prefetch, "global_prefetch_count": ch.GlobalPrefetch,
		"messages_unacknowledged": ch.Unacked, "messages_unconfirmed": ch.Unconfirmed, "messages_uncommitted": 0, "acks_uncommitted": 0,
		"pending_raft_commands": 0, "reductions": 0, "reductions_details": object{"rate": rate(0)}, "garbage_collection": noGarbage,
		"message_stats": q.api.messageStats(ch.Identity(), channelCounts(&ch.Counts)),
	}
}

func (q *request) listConsumers() error {
	vhost := q.param("vhost")
	all := q.consumersBy(vhost, "")
	return q.rows(len(all), func(i int) object { return q.consumerObject(&all[i]) })
}

// consumersBy lists consumers of a virtual host or of all ("") the user may see,
// on a queue or on any ("").
func (q *request) consumersBy(vhost, queue string) (list []server.ConsumerInfo) {
	seen := map[string]bool{}
	for _, vh := range q.vhosts() {
		seen[vh.Name()] = true
	}
	for _, c := range q.api.Server.List() {
		if !seen[c.VHost] || vhost != "" && c.VHost != vhost {
			continue
		}
		for _, ch := range c.Channels {
			for _, one := range ch.Consumers {
				if queue == "" || one.Queue.Name() == queue {
					list = append(list, one)
				}
			}
		}
	}
	return list
}

func (q *request) consumerObjects(consumers []server.ConsumerInfo) []object {
	list := []object{}
	for i := range consumers {
		list = append(list, q.consumerObject(&consumers[i]))
	}
	return list
}

func (q *request) consumerObject(c *server.ConsumerInfo) object {
	channel := server.ChannelInfo{Number: c.Channel, Connection: c.Connection}
	return object{
		"consumer_tag": c.Tag, "ack_required": !c.NoAck, "exclusive": c.Exclusive, "prefetch_count": c.Prefetch,
		"active": c.Status != broker.Waiting, "activity_status": c.Status, "arguments": jsonOf(c.Arguments),
		"consumer_timeout": c.Queue.ConsumerTimeoutMillis(),
		"queue":            object{"name": c.Queue.Name(), "vhost": c.Queue.VHost().Name()},
		"channel_details": object{
			"name": channel.Name(), "number": c.Channel, "connection_name": c.Connection, "node": q.api.Node,
			"peer_host": c.PeerHost, "peer_port": c.PeerPort, "user": c.User,
		},
	}
}
