package admin

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/definitions"
	"curfew/broker/operate"
	"curfew/broker/server"
)

// ConnectionFilter names a connection; "" is any.
type ConnectionFilter struct {
	Name string `json:"name" hide:"command"`
}

// ConnectionRow is a connection in a list: a part of what RabbitMQ's API shows of it, and more on pages.
type ConnectionRow struct {
	Title      string       `json:"-" label:"Client"`
	Name       string       `json:"name" table:"CONNECTION=" hide:"list"`
	Client     string       `json:"user_provided_name" table:"CLIENT" hide:"page"`
	User       string       `json:"user" table:"USER?"`
	VHost      string       `json:"vhost" label:"Virtual host" table:"VHOST?"`
	State      string       `json:"state" table:"STATE!" is:"flow"`
	Past       int          `json:"-" label:"Past deadline" is:"bad"` // messages that it holds past their deadlines
	Channels   int          `json:"channels" table:"CHANNELS?"`
	Consumers  int          `json:"consumers" table:"CONSUMERS?"`
	Unacked    int          `json:"messages_unacknowledged" label:"Unacked" table:"UNACKED"`
	Published  operate.Rate `json:"-" label:"Published /s" is:"rate"`
	Delivered  operate.Rate `json:"-" label:"Delivered /s" is:"rate"`
	Address    string       `json:"-" label:"Address"`
	Since      int64        `json:"connected_at" label:"Connected" table:"SINCE?" is:"ago"` // Unix ms
	Properties struct {
		Product string `json:"product"`
	} `json:"client_properties" table:"PRODUCT?" hide:"page"`
	Program   string        `json:"-" label:"Program" hide:"list" faint:"none"`
	Platform  string        `json:"-" label:"Platform" hide:"list" faint:"none"`
	Received  int64         `json:"-" label:"Received" hide:"list" is:"bytes"`
	Sent      int64         `json:"-" label:"Sent" hide:"list" is:"bytes"`
	Login     string        `json:"-" label:"Login" hide:"list"`
	TLS       string        `json:"-" label:"TLS" hide:"list" faint:"no"`
	Heartbeat time.Duration `json:"-" label:"Heartbeat" hide:"list" is:"elapsed" faint:"none"`
}

// Cell is a value as text for a table.
func (r ConnectionRow) Cell(column string) (string, bool) {
	return cmp.Or(r.Properties.Product, "-"), column == "client_properties"
}

// ListConnections lists the open AMQP connections that the actor may see, those that hold most past its deadline first.
var ListConnections = operate.Define(operate.Op{
	Name: operate.ListConnections, Noun: "connection", Title: "Show the connections of clients; close one", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Routes: []string{"GET /api/connections"}, ByHand: true, Command: "connections", Watched: true,
	Help:    "Show the connections of clients. STATE is running, blocked (it may not publish while memory or disk are low) or flow (it is slowed\ndown).",
	Example: "  curfew connections\n  curfew connections close '127.0.0.1:49152 -> 127.0.0.1:5672'",
	Page:    operate.Page{On: "/connections", Title: "Connections", Tab: "/connections", Opens: "/connection", Find: clientSearch, Live: true, Empty: "No client is connected."},
}, func(ctx context.Context, c *operate.Call, q ConnectionFilter) (list []ConnectionRow, err error) {
	past := map[string]int{}
	holders, err := operate.Holders(c.Operations, c.Actor, operate.QueueName{})
	if err != nil {
		return nil, err
	}
	for i := range holders {
		past[holders[i].Connection] += holders[i].PastDeadline
	}
	all, err := c.ListConnections(ctx, c.Actor)
	c.Rates.Refresh()
	for i := range all {
		one := &all[i]
		if q.Name != "" && q.Name != one.Name {
			continue
		}
		sum, channels := operate.Counts{}, []any{}
		for j := range one.Channels {
			channels = append(channels, one.Channels[j].Identity)
			for name, n := range operate.ChannelCounts(&one.Channels[j].Stats) {
				sum[name] += n
			}
		}
		client, rates := operate.ClientOf(one.ClientProperties), c.Rates.Of(sum, channels...)
		row := ConnectionRow{
			Title: client.Title(one.Name), Name: one.Name, Client: client.Name, User: one.User, VHost: one.VHost, State: one.State(), Past: past[one.Name], Channels: len(one.Channels),
			Consumers: one.Consumers(), Unacked: one.Unacked(), Published: rates["publish"], Delivered: rates["deliver_get"], Address: net.JoinHostPort(one.PeerHost, strconv.Itoa(one.PeerPort)),
			Since: one.Since.UnixMilli(), Program: strings.TrimSpace(client.Product + " " + client.Version), Platform: client.Platform, Received: int64(one.Received), Sent: int64(one.Sent),
			Login: one.Mechanism, Heartbeat: one.Heartbeat,
		}
		if one.TLS != nil {
			row.TLS = "yes"
		}
		list = append(list, row)
	}
	slices.SortStableFunc(list, func(x, y ConnectionRow) int {
		return cmp.Or(cmp.Compare(y.Past, x.Past), cmp.Compare(y.Unacked, x.Unacked), cmp.Compare(x.Title, y.Title))
	})
	return list, err
})

// clientSearch is what lists of clients can be searched for.
const clientSearch = "client, user, address, queue"

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
	Page: operate.Page{On: "/connection/close", Title: "Close the connection", Tab: "/connections", Parent: "/connections", Up: "Connections", Rows: operate.ListConnections, Link: "Close…", Danger: true,
		Then: "The messages that it holds go back to their queues, and those past their deadlines expire.", Next: "/connections?said=connection_closed",
		May: func(_ *operate.Operations, a operate.Actor, row any) bool {
			return a.Has(operate.Administrator) || row.(ConnectionRow).User == a.Name
		}},
}, func(_ context.Context, c *operate.Call, q Closing) (none operate.None, err error) {
	found, err := named(c, q.Name)
	if err != nil {
		return none, err
	}
	c.Log(zap.String("connection", found.Name))
	c.Log(zap.String("client", found.Client))
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

// ChannelFilter names a connection; "" is any.
type ChannelFilter struct {
	Connection string `json:"connection" form:"name" hide:"command"`
}

// ChannelRow is a channel in a list: a part of what RabbitMQ's API shows of it, and more on pages.
type ChannelRow struct {
	Name        string       `json:"name" table:"CHANNEL=" hide:"page"`
	Number      string       `json:"-" label:"Number"`
	User        string       `json:"user" table:"USER?" hide:"page"`
	VHost       string       `json:"vhost" table:"VHOST?" hide:"page"`
	State       string       `json:"state" table:"STATE!" hide:"page"`
	Mode        string       `json:"-" label:"Publishes with" faint:"–"`
	Consumers   int          `json:"consumer_count" label:"Consumers" table:"CONSUMERS"`
	Unacked     int          `json:"messages_unacknowledged" label:"Unacked" table:"UNACKED"`
	Prefetch    int          `json:"prefetch_count" label:"Prefetch" table:"PREFETCH?" faint:"no limit"`
	Shared      int          `json:"-" label:"of the channel" faint:"no limit"`
	Unconfirmed int          `json:"messages_unconfirmed" label:"Unconfirmed" table:"UNCONFIRMED?"`
	Published   operate.Rate `json:"-" label:"Published /s" is:"rate"`
	Delivered   operate.Rate `json:"-" label:"Delivered /s" is:"rate"`
	Acked       operate.Rate `json:"-" label:"Acked /s" is:"rate"`
	Confirm     bool         `json:"confirm" hide:"table page"`
}

// Cell is a value as text for a table.
func (r ChannelRow) Cell(column string) (string, bool) {
	return "-", column == "messages_unconfirmed" && !r.Confirm
}

// ListChannels lists the channels of the connections that the actor may see.
var ListChannels = operate.Define(operate.Op{
	Name: "list_channels", Noun: "channel", Title: "Show the channels of clients", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Routes: []string{"GET /api/channels"}, ByHand: true, Command: "channels", Watched: true, Example: "  curfew channels --watch",
	Page: operate.Page{On: "/connection", Title: "Channels", Live: true, Empty: "No channel is open."},
}, func(ctx context.Context, c *operate.Call, q ChannelFilter) (list []ChannelRow, err error) {
	all, err := c.ListConnections(ctx, c.Actor)
	c.Rates.Refresh()
	for i := range all {
		if q.Connection != "" && q.Connection != all[i].Name {
			continue
		}
		for j := range all[i].Channels {
			ch := &all[i].Channels[j]
			rates := c.Rates.Of(operate.ChannelCounts(&ch.Stats), ch.Identity)
			row := ChannelRow{
				Name: ch.Name(), Number: strconv.Itoa(int(ch.Number)), User: ch.User, VHost: ch.VHost, State: ch.State, Consumers: len(ch.Consumers), Unacked: ch.Unacked, Prefetch: ch.Prefetch,
				Shared: ch.GlobalPrefetch, Unconfirmed: int(ch.Unconfirmed), Published: rates["publish"], Delivered: rates["deliver_get"], Acked: rates["ack"], Confirm: ch.Confirm,
			}
			switch {
			case ch.Transactional:
				row.Mode = "transactions"
			case ch.Confirm:
				row.Mode = "confirms"
			}
			list = append(list, row)
		}
	}
	return list, err
})

// HolderFilter names a queue and a connection; "" is any.
type HolderFilter struct {
	operate.QueueFilter
	Connection string `json:"connection" form:"name" hide:"api command"`
}

// Holder is a consumer, or a channel that holds messages.
type Holder struct {
	Title        string         `json:"-" label:"Client" to:"/connection?name={connection}"`
	VHost        string         `json:"vhost" label:"Virtual host" hide:"table"` // of the queue
	Queue        HeldQueue      `json:"queue" hide:"page"`
	At           string         `json:"-" label:"Queue" to:"/queue?vhost={vhost}&name={at}"`
	Client       operate.Client `json:"client" hide:"page"` // as it says itself; empty: it does not
	Unacked      int            `json:"messages_unacknowledged" label:"Unacked" table:"UNACKED"`
	Oldest       *int64         `json:"oldest_unacknowledged_at" hide:"page" table:"OLDEST" is:"instant"` // when the oldest was delivered, Unix ms; null: none is held
	Held         time.Duration  `json:"-" label:"Held for" is:"elapsed"`
	PastDeadline int            `json:"messages_past_deadline" label:"Past deadline" table:"PAST!" is:"bad"` // of these
	Over         time.Duration  `json:"-" label:"Past for" is:"elapsed" omit:""`
	Waiting      int            `json:"-" label:"Waiting"` // ready messages of the queue
	Acked        operate.Rate   `json:"-" label:"Channel acks /s" is:"rate"`
	Activity     string         `json:"activity_status" hide:"page" table:"STATUS?"`
	Prefetch     int            `json:"prefetch_count" label:"Prefetch" table:"PREFETCH?" faint:"no limit"`
	User         string         `json:"user" table:"USER?"`
	Address      string         `json:"-" label:"Address"`
	ConsumerTag  string         `json:"consumer_tag" label:"Consumer" table:"CONSUMER?" faint:"basic.get"` // empty for basic.get
	Status       string         `json:"-" label:"Status"`
	Connection   string         `json:"connection" hide:"page" table:"CONNECTION?"`
	Kind         string         `json:"kind" hide:"table page"` // consumer; cancelled: what a cancelled consumer has not settled; get: what basic.get took
	AckRequired  bool           `json:"ack_required" hide:"table page"`
	Exclusive    bool           `json:"exclusive" hide:"table page"`
	Active       bool           `json:"active" hide:"table page"`
	Arguments    map[string]any `json:"arguments" hide:"table page"`
	Timeout      int64          `json:"consumer_timeout" hide:"table page"`  // how long a delivery may stay unacknowledged, ms: set by the consumer, its queue, or `CURFEW_CONSUMER_TIMEOUT`; 0: forever. A lock has a time limit of its own
	Earliest     *int64         `json:"earliest_deadline" hide:"table page"` // the earliest deadline of these, Unix ms; null: there is none
	Channel      HoldingChannel `json:"channel_details" hide:"table page"`
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
	Page:    operate.Page{On: "/consumers", Also: "/connection", Title: "Consumers", Tab: "/connections", Find: clientSearch, Live: true, Empty: "None consumes, and none holds a message."},
}, func(ctx context.Context, c *operate.Call, q HolderFilter) (list []Holder, err error) {
	all, err := operate.Holders(c.Operations, c.Actor, operate.QueueName{VHost: q.VHost, Name: q.Queue})
	all = slices.DeleteFunc(all, func(h operate.Consumer) bool { return q.Connection != "" && q.Connection != h.Connection })
	acked, onPage, now := map[string]operate.Rate{}, c.Actor.Face == operate.Dashboard, c.Broker.UnixMillis(c.Broker.Now())
	if onPage && err == nil && q.Queue == "" && len(all) > 0 { // it looks at all connections
		err = ackRates(ctx, c, all, acked)
	}
	for i := range all {
		h := &all[i]
		channel, queue := server.ChannelInfo{Number: h.Channel, Connection: h.Connection}, HeldQueue{h.Queue.Name, h.Queue.VHost().Name()}
		row := Holder{
			VHost: queue.VHost, Queue: queue, Client: h.Client, Unacked: h.Unacked, Oldest: unlessZero(h.OldestMillis), PastDeadline: h.PastDeadline,
			Activity: string(h.Status), Prefetch: h.Prefetch, User: h.User, ConsumerTag: h.Tag, Connection: h.Connection, Kind: h.Kind(), AckRequired: !h.NoAck,
			Exclusive: h.Exclusive, Active: h.Status != broker.Waiting, Arguments: definitions.JSONOf(h.Arguments), Timeout: h.TimeoutMillis, Earliest: unlessZero(h.EarliestMillis),
			Channel: HoldingChannel{channel.Name(), h.Channel, h.Connection, c.NodeName, h.PeerHost, h.PeerPort, h.User},
		}
		if onPage {
			row.Title, row.At, row.Status, row.Address, row.Acked = h.Client.Title(h.User), queue.Name, h.Words(), net.JoinHostPort(h.PeerHost, strconv.Itoa(h.PeerPort)), acked[channel.Name()]
			row.Waiting, _, _ = h.Queue.Messages.Counts()
			row.Held, row.Over = since(now, h.OldestMillis), since(now, h.EarliestMillis)
		}
		list = append(list, row)
	}
	return list, err
})

// ackRates finds how fast the channels of consumers ack, by their names.
func ackRates(ctx context.Context, c *operate.Call, list []operate.Consumer, to map[string]operate.Rate) error {
	for i := range list {
		to[(&server.ChannelInfo{Number: list[i].Channel, Connection: list[i].Connection}).Name()] = operate.Rate{}
	}
	c.Rates.Refresh()
	connections, err := c.ListConnections(ctx, c.Actor)
	for i := range connections {
		for j := range connections[i].Channels {
			ch := &connections[i].Channels[j]
			if _, listed := to[ch.Name()]; listed {
				to[ch.Name()] = c.Rates.Of(operate.ChannelCounts(&ch.Stats), ch.Identity)["ack"]
			}
		}
	}
	return err
}

// since is how long ago something was, both in Unix ms; 0: it was never.
func since(now, at int64) time.Duration {
	if at == 0 {
		return 0
	}
	return time.Duration(max(now-at, 0)) * time.Millisecond
}

func unlessZero(unixMillis int64) *int64 {
	if unixMillis == 0 {
		return nil
	}
	return &unixMillis
}
