package admin

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/definitions"
	"curfew/broker/operate"
	"curfew/broker/server"
)

// ConnectionRow is a connection in a list: a part of what RabbitMQ's API shows of it.
type ConnectionRow struct {
	Name       string `json:"name" table:"CONNECTION="`
	Client     string `json:"user_provided_name" label:"Client" table:"CLIENT" faint:"none"`
	User       string `json:"user" table:"USER?"`
	VHost      string `json:"vhost" label:"Virtual host" table:"VHOST?"`
	State      string `json:"state" table:"STATE!"`
	Channels   int    `json:"channels" table:"CHANNELS?"`
	Consumers  int    `json:"consumers" table:"CONSUMERS?"`
	Unacked    int    `json:"messages_unacknowledged" label:"Holds" table:"UNACKED"`
	Since      int64  `json:"connected_at" table:"SINCE?" is:"instant" hide:"page"` // Unix ms
	Properties struct {
		Product string `json:"product"`
	} `json:"client_properties" table:"PRODUCT?" hide:"page"`
}

// Cell is a value as text for a table.
func (r ConnectionRow) Cell(column string) (string, bool) {
	return cmp.Or(r.Properties.Product, "-"), column == "client_properties"
}

// ListConnections lists the open AMQP connections that the actor may see.
var ListConnections = operate.Define(operate.Op{
	Name: operate.ListConnections, Noun: "connection", Title: "Show the connections of clients; close one", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Routes: []string{"GET /api/connections"}, ByHand: true, Command: "connections", Watched: true,
	Help:    "Show the connections of clients. STATE is running, blocked (it may not publish while memory or disk are low) or flow (it is slowed\ndown).",
	Example: "  curfew connections\n  curfew connections close '127.0.0.1:49152 -> 127.0.0.1:5672'",
}, func(ctx context.Context, c *operate.Call, _ operate.None) (list []ConnectionRow, err error) {
	all, err := c.ListConnections(ctx, c.Actor)
	for i := range all {
		one := &all[i]
		list = append(list, ConnectionRow{
			Name: one.Name, Client: operate.ClientOf(one.ClientProperties).Name, User: one.User, VHost: one.VHost, State: one.State(), Channels: len(one.Channels),
			Consumers: one.Consumers(), Unacked: one.Unacked(), Since: one.Since.UnixMilli(),
		})
	}
	return list, err
})

// Closing names a connection to be closed.
type Closing struct {
	Name   string `json:"connection" form:"name" eg:"'127.0.0.1:49152 -> 127.0.0.1:5672'"`
	Reason string `json:"reason" log:"reason" default:"closed by an operator" doc:"what the client is told; it may connect again at once"`
}

// CloseConnection closes the actor's own connection, or any for an administrator: by its name, or by the one that the client gave itself if only one has
// it. The reason becomes a part of the text that the client gets. Errors: operate.ErrNotFound, operate.ErrNotYours or *operate.Invalid among others.
var CloseConnection = operate.Define(operate.Op{
	Name: "close_connection", Noun: "connection", Title: "Close a connection: what it holds goes back to its queues, or expires", Rule: operate.Rule{Role: operate.Management},
	Routes: []string{"DELETE /api/connections/{connection}"}, ByHand: true, Command: "connections close <connection>", Lists: "curfew connections",
	Help: `Close a connection, named as "curfew connections" lists it: by its addresses, or by the name that the client gave itself if only one
has it. What it holds goes back to its queues, and what is past its deadline expires. Most clients connect again.`,
	Page: operate.Page{On: "/connection/close", Title: "Close the connection", Tab: "/connections", Parent: "/connections", Up: "Connections", Rows: operate.ListConnections, Danger: true,
		Then: "The messages that it holds go back to their queues, and those past their deadlines expire.", Next: "/connections?said=connection_closed",
		May: func(_ *operate.Access, a operate.Actor, row any) bool {
			return a.Has(operate.Administrator) || row.(ConnectionRow).User == a.Name
		}},
}, func(_ context.Context, c *operate.Call, q Closing) (none operate.None, err error) {
	found, err := named(c, q.Name)
	if err != nil {
		return none, err
	}
	c.Log(zap.String("connection", found.Name))
	if found.User != c.Actor.Name && !c.Actor.Has(operate.Administrator) {
		return none, operate.ErrNotYours
	}
	c.Server.CloseConnections(cmp.Or(q.Reason, "closed by an operator"), func(name, user, _ string) bool { return name == found.Name && user == found.User })
	return none, nil
})

// named is the connection with that name, or the only one whose client has it.
func named(c *operate.Call, name string) (*server.ConnectionInfo, error) {
	var clients []*server.ConnectionInfo
	all := c.Server.List()
	for i := range all {
		switch {
		case all[i].Name == name:
			return &all[i], nil
		case name == "" || strings.Contains(name, " -> "): // that is a connection's own name
		case operate.ClientOf(all[i].ClientProperties).Name == name && (c.Actor.Has(operate.Monitor) || all[i].User == c.Actor.Name):
			clients = append(clients, &all[i])
		}
	}
	switch len(clients) {
	case 0:
		return nil, operate.ErrNotFound
	case 1:
		return clients[0], nil
	}
	names := make([]string, len(clients))
	for i, one := range clients {
		names[i] = "'" + one.Name + "'"
	}
	return nil, &operate.Invalid{Reason: fmt.Sprintf("%d connections have this name; choose one: %s", len(names), strings.Join(names, ", "))}
}

// ChannelRow is a channel in a list: a part of what RabbitMQ's API shows of it.
type ChannelRow struct {
	Name        string `json:"name" table:"CHANNEL="`
	User        string `json:"user" table:"USER?"`
	VHost       string `json:"vhost" table:"VHOST?"`
	State       string `json:"state" table:"STATE!"`
	Consumers   int    `json:"consumer_count" table:"CONSUMERS"`
	Unacked     int    `json:"messages_unacknowledged" table:"UNACKED"`
	Prefetch    int    `json:"prefetch_count" table:"PREFETCH?"`
	Unconfirmed int    `json:"messages_unconfirmed" table:"UNCONFIRMED?"`
	Confirm     bool   `json:"confirm" hide:"table"`
}

// Cell is a value as text for a table.
func (r ChannelRow) Cell(column string) (string, bool) {
	return "-", column == "messages_unconfirmed" && !r.Confirm
}

// ListChannels lists the channels of the connections that the actor may see.
var ListChannels = operate.Define(operate.Op{
	Name: "list_channels", Noun: "channel", Title: "Show the channels of clients", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Routes: []string{"GET /api/channels"}, ByHand: true, Command: "channels", Watched: true, Example: "  curfew channels --watch",
}, func(ctx context.Context, c *operate.Call, _ operate.None) (list []ChannelRow, err error) {
	all, err := c.ListConnections(ctx, c.Actor)
	for i := range all {
		for j := range all[i].Channels {
			ch := &all[i].Channels[j]
			list = append(list, ChannelRow{ch.Name(), ch.User, ch.VHost, ch.State, len(ch.Consumers), ch.Unacked, ch.Prefetch, int(ch.Unconfirmed), ch.Confirm})
		}
	}
	return list, err
})

// Holder is a consumer, or a channel that holds messages.
type Holder struct {
	VHost        string         `json:"vhost" hide:"table"` // of the queue
	Queue        HeldQueue      `json:"queue"`
	Client       operate.Client `json:"client"` // as it says itself; empty: it does not
	Unacked      int            `json:"messages_unacknowledged" table:"UNACKED"`
	Oldest       *int64         `json:"oldest_unacknowledged_at" table:"OLDEST" is:"instant"` // when the oldest was delivered, Unix ms; null: none is held
	PastDeadline int            `json:"messages_past_deadline" table:"PAST!"`                 // of these
	Activity     string         `json:"activity_status" table:"STATUS?"`
	Prefetch     int            `json:"prefetch_count" table:"PREFETCH?"`
	User         string         `json:"user" table:"USER?"`
	ConsumerTag  string         `json:"consumer_tag" table:"CONSUMER?"` // empty for basic.get
	Connection   string         `json:"connection" table:"CONNECTION?"`
	Kind         string         `json:"kind" hide:"table"` // consumer; cancelled: what a cancelled consumer has not settled; get: what basic.get took
	AckRequired  bool           `json:"ack_required" hide:"table"`
	Exclusive    bool           `json:"exclusive" hide:"table"`
	Active       bool           `json:"active" hide:"table"`
	Arguments    map[string]any `json:"arguments" hide:"table"`
	Timeout      int64          `json:"consumer_timeout" hide:"table"`  // how long a delivery may stay unacknowledged, ms: set by the consumer, its queue, or `CURFEW_CONSUMER_TIMEOUT`; 0: forever. A lock has a time limit of its own
	Earliest     *int64         `json:"earliest_deadline" hide:"table"` // the earliest deadline of these, Unix ms; null: there is none
	Channel      HoldingChannel `json:"channel_details" hide:"table"`
}

// HeldQueue names a queue.
type HeldQueue struct {
	Name  string `json:"name"`
	VHost string `json:"vhost"`
}

// HoldingChannel is the channel of a consumer, as in RabbitMQ's API.
type HoldingChannel struct {
	Name       string `json:"name"`
	Number     uint16 `json:"number"`
	Connection string `json:"connection_name"`
	Node       string `json:"node"`
	PeerHost   string `json:"peer_host"`
	PeerPort   int    `json:"peer_port"`
	User       string `json:"user"`
}

// Cell is a value as text for a table.
func (h Holder) Cell(column string) (string, bool) {
	switch {
	case column == "queue":
		return h.Queue.Name, true
	case column == "client":
		return cmp.Or(h.Client.Name, h.Connection), true
	case column == "consumer_tag" && h.Kind == "get":
		return "(basic.get)", true
	case column == "consumer_tag" && h.Kind == "cancelled":
		return h.ConsumerTag + " (cancelled)", true
	}
	return "", false
}

// ListHolders lists who holds messages or may get them.
var ListHolders = operate.Define(operate.Op{
	Name: "list_holders", Title: "Show who consumes, of one queue or of all, and who holds messages past their deadlines", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Text:   "Consumers, and channels that hold messages by `basic.get`. Those with the most messages past their deadlines come first.",
	Routes: []string{"GET /api/curfew/consumers/{vhost}/{queue}", "GET /api/curfew/consumers/{vhost}", "GET /api/curfew/consumers"}, Command: "consumers [queue]", Watched: true,
	Help: `Show who consumes, those that hold messages past their deadlines first.

UNACKED is how many messages a consumer has and has not settled, OLDEST since when it has the oldest, PAST how many of them are past their
deadlines: they expire only if they are given back. To take them away from a consumer, close its connection (curfew connections close).`,
	Example: "  curfew consumers\n  curfew consumers -A\n  curfew consumers orders --watch",
}, func(_ context.Context, c *operate.Call, q operate.QueueFilter) (list []Holder, err error) {
	all, err := operate.Holders(c.Access, c.Actor, operate.QueueName{VHost: q.VHost, Name: q.Queue})
	for i := range all {
		h := &all[i]
		channel, queue := server.ChannelInfo{Number: h.Channel, Connection: h.Connection}, HeldQueue{h.Queue.Name, h.Queue.VHost().Name()}
		list = append(list, Holder{
			VHost: queue.VHost, Queue: queue, Client: h.Client, Unacked: h.Unacked, Oldest: unlessZero(h.OldestMillis), PastDeadline: h.PastDeadline,
			Activity: string(h.Status), Prefetch: h.Prefetch, User: h.User, ConsumerTag: h.Tag, Connection: h.Connection, Kind: h.Kind(), AckRequired: !h.NoAck,
			Exclusive: h.Exclusive, Active: h.Status != broker.Waiting, Arguments: definitions.JSONOf(h.Arguments), Timeout: h.TimeoutMillis, Earliest: unlessZero(h.EarliestMillis),
			Channel: HoldingChannel{channel.Name(), h.Channel, h.Connection, c.NodeName, h.PeerHost, h.PeerPort, h.User},
		})
	}
	return list, err
})

func unlessZero(unixMillis int64) *int64 {
	if unixMillis == 0 {
		return nil
	}
	return &unixMillis
}
