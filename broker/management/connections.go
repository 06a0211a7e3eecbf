package management

import (
	"cmp"
	"crypto/tls"
	"slices"
	"time"

	"curfew/broker"
	"curfew/broker/definitions"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/broker/server"
)

// visibleConnections returns the open connections that the user may see.
func visibleConnections(r *request) []server.ConnectionInfo {
	list, _ := r.Operations.ListConnections(r.HTTP.Context(), r.Actor) // the route was permitted
	return list
}

func listConnections(r *request) error {
	vhost, user := r.Param("vhost"), r.Param("user")
	r.api.rates.Refresh()
	all := slices.DeleteFunc(visibleConnections(r), func(c server.ConnectionInfo) bool {
		return vhost != "" && c.VHost != vhost || user != "" && c.User != user
	})
	return r.Rows(len(all), func(i int) object { return connectionObject(r, &all[i]) })
}

func getConnection(r *request) error {
	c, err := r.Operations.Connection(r.HTTP.Context(), r.Actor, r.Param("connection"))
	if err != nil {
		return err
	}
	r.api.rates.Refresh()
	return r.One(connectionObject(r, c))
}

// closeReason is what a client gets as the reason when somebody closes its connection by hand.
const closeReason = "Closed via management plugin"

// closeConnections closes the connection in the path, or those of the user there. The reason is X-Reason, or the parameter of the command. It is data: it only
// becomes part of a text.
func closeConnections(r *request) error {
	ctx, reason := r.HTTP.Context(), cmp.Or(r.HTTP.Header.Get("X-Reason"), r.HTTP.URL.Query().Get("reason"), closeReason)
	if user := r.Param("user"); user != "" {
		return r.Done(r.Operations.CloseConnectionsOf(ctx, r.Actor, user, reason))
	}
	_, err := admin.CloseConnection.Do(ctx, r.Operations, r.Actor, admin.Closing{Name: r.Param("connection"), Reason: reason})
	return r.Done(err)
}

func connectionObject(r *request, c *server.ConnectionInfo) object {
	properties := definitions.JSONOf(c.ClientProperties)
	given, _ := properties["connection_name"].(string)
	o := object{
		"name": c.Name, "node": r.api.Node, "type": "network", "protocol": c.Protocol, "state": c.State(),
		"user": c.User, "user_who_performed_action": c.User, "vhost": c.VHost, "auth_mechanism": c.Mechanism,
		"user_provided_name": given, "client_properties": properties, "connected_at": c.Since.UnixMilli(),
		"host": c.Host, "port": c.Port, "peer_host": c.PeerHost, "peer_port": c.PeerPort,
		"channel_max": c.ChannelMax, "frame_max": c.FrameMax, "timeout": int(c.Heartbeat / time.Second), "channels": len(c.Channels),
		"recv_cnt": c.Reads, "send_cnt": c.Writes, "send_pend": c.Pending, "reductions": 0, "reductions_details": object{"rate": rest.Rate(0)},
		"ssl": false, "ssl_protocol": nil, "ssl_cipher": nil, "ssl_hash": nil, "ssl_key_exchange": nil,
		"peer_cert_issuer": nil, "peer_cert_subject": nil, "peer_cert_validity": nil, "garbage_collection": noGarbage,
	}
	o["consumers"], o["messages_unacknowledged"] = c.Consumers(), c.Unacked() // Curfew's own
	if c.TLS != nil {
		addTLS(o, c.TLS)
	}
	for name, v := range r.api.counts(operate.ConnectionCounts(c), c.Identity) {
		o[name] = v
	}
	r.addSamples(o, c.Identity, "data_rates", "recv_oct", "send_oct")
	return o
}

// addTLS adds how the connection is protected, and the subject of the client's certificate.
func addTLS(o object, s *tls.ConnectionState) {
	o["ssl"], o["ssl_protocol"], o["ssl_cipher"] = true, tls.VersionName(s.Version), tls.CipherSuiteName(s.CipherSuite)
	if len(s.PeerCertificates) == 0 {
		return
	}
	cert := s.PeerCertificates[0]
	o["peer_cert_subject"], o["peer_cert_issuer"] = cert.Subject.String(), cert.Issuer.String()
	o["peer_cert_validity"] = cert.NotBefore.UTC().Format(time.RFC3339) + " - " + cert.NotAfter.UTC().Format(time.RFC3339)
}

// noGarbage takes the place of the details that RabbitMQ shows about its runtime.
var noGarbage = object{"max_heap_size": -1, "min_bin_vheap_size": -1, "min_heap_size": -1, "fullsweep_after": -1, "minor_gcs": -1}

func listChannels(r *request) error {
	vhost := r.Param("vhost")
	r.api.rates.Refresh()
	var all []server.ChannelInfo
	for _, c := range visibleConnections(r) {
		if vhost == "" || c.VHost == vhost {
			all = append(all, c.Channels...)
		}
	}
	return r.Rows(len(all), func(i int) object { return channelObject(r, &all[i]) })
}

func connectionChannels(r *request) error {
	c, err := r.Operations.Connection(r.HTTP.Context(), r.Actor, r.Param("connection"))
	if err != nil {
		return err
	}
	r.api.rates.Refresh()
	return r.Rows(len(c.Channels), func(i int) object { return channelObject(r, &c.Channels[i]) })
}

func getChannel(r *request) error {
	name := r.Param("channel")
	for _, c := range visibleConnections(r) {
		for _, ch := range c.Channels {
			if ch.Name() == name {
				r.api.rates.Refresh()
				o := channelObject(r, &ch)
				o["consumer_details"] = consumerObjects(r, ch.Consumers)
				o["publishes"], o["deliveries"] = []any{}, []any{}
				return r.One(o)
			}
		}
	}
	return rest.ErrNotFound
}

func channelObject(r *request, ch *server.ChannelInfo) object {
	o := object{
		"name": ch.Name(), "number": ch.Number, "node": r.api.Node, "state": ch.State,
		"user": ch.User, "user_who_performed_action": ch.User, "vhost": ch.VHost,
		"connection_details": object{"name": ch.Connection, "peer_host": ch.PeerHost, "peer_port": ch.PeerPort},
		"confirm":            ch.Confirm, "transactional": ch.Transactional,
		"consumer_count": len(ch.Consumers), "prefetch_count": ch.Prefetch, "global_prefetch_count": ch.GlobalPrefetch,
		"messages_unacknowledged": ch.Unacked, "messages_unconfirmed": ch.Unconfirmed, "messages_uncommitted": 0, "acks_uncommitted": 0,
		"pending_raft_commands": 0, "reductions": 0, "reductions_details": object{"rate": rest.Rate(0)}, "garbage_collection": noGarbage,
		"message_stats": r.api.counts(operate.ChannelCounts(&ch.Stats), ch.Identity),
	}
	r.addStatSamples(o, ch.Identity)
	return o
}

func listConsumers(r *request) error {
	all, _ := r.Operations.ListConsumers(r.HTTP.Context(), r.Actor, r.Param("vhost"), "") // the route was permitted
	return r.Rows(len(all), func(i int) object { return consumerObject(r, &all[i]) })
}

func consumerObjects(r *request, consumers []server.ConsumerInfo) []object {
	list := []object{}
	for i := range consumers {
		list = append(list, consumerObject(r, &consumers[i]))
	}
	return list
}

func consumerObject(r *request, c *server.ConsumerInfo) object {
	channel := server.ChannelInfo{Number: c.Channel, Connection: c.Connection}
	return object{
		"consumer_tag": c.Tag, "ack_required": !c.NoAck, "exclusive": c.Exclusive, "prefetch_count": c.Prefetch,
		"active": c.Status != broker.Waiting, "activity_status": c.Status, "arguments": definitions.JSONOf(c.Arguments),
		"consumer_timeout": c.TimeoutMillis,
		"queue":            object{"name": c.Queue.Name, "vhost": c.Queue.VHost().Name()},
		"channel_details": object{
			"name": channel.Name(), "number": c.Channel, "connection_name": c.Connection, "node": r.api.Node,
			"peer_host": c.PeerHost, "peer_port": c.PeerPort, "user": c.User,
		},
	}
}
