package topology

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// heading is the heading of both lists, with links from one to the other and a field to search.
func heading(title, path, find string) g.Node {
	to := func(text, url string) ui.Choice {
		if url == path {
			return ui.Choice{Name: text}
		}
		return ui.Choice{Name: text, URL: url}
	}
	return g.Group{
		h.H1(g.Text(title)),
		h.Div(h.Class("tabs"), ui.Choices("Lists", []ui.Choice{to("Connections", tab), to("Consumers", consumers)})),
		ui.Search(path, ui.NewForm(nil, "q", find).Field("Search", "q", "", h.Type("search"), h.Placeholder("client, user, address, queue"), g.Attr("size", "28")), ui.Button("Search")),
	}
}

func (p *listPage) draw(*ui.Info) ui.Drawing {
	d := ui.Drawing{Top: heading("Connections", tab, p.Find)}
	switch {
	case p.All == 0:
		d.Live = ui.Only(g.Text("No client is connected."))
	case p.Cut.Of == 0:
		d.Live = ui.Only(g.Text("No connection matches. "), ui.Link(tab, g.Text("Show all")), g.Text("."))
	default:
		d.Live = h.Section(h.Class("card"), ui.Table(
			[]string{"Client", "State", "#Past deadline", "#Unacked", "#Consumers", "#Channels", "#Published /s", "#Delivered /s", "User", "Address", "Connected"},
			g.Map(p.List, func(c connection) g.Node {
				return h.Tr(
					h.Td(ui.QueueLink(ui.At("/connection", "name", c.Name), c.VHost, c.Title)),
					h.Td(state(c.State())),
					ui.Amount(past(c.Past)), ui.Amount(ui.OrFaint(c.Unacked())), ui.Amount(ui.OrFaint(c.Consumers())), ui.Amount(ui.OrFaint(len(c.Channels))),
					ui.Amount(ui.Rate(c.Rate["publish"])), ui.Amount(ui.Rate(c.Rate["deliver_get"])),
					h.Td(ui.Name(c.User)), h.Td(h.Class("tight"), ui.Name(net.JoinHostPort(c.PeerHost, strconv.Itoa(c.PeerPort)))), h.Td(h.Class("tight"), ui.Ago(c.Since)))
			})), p.Cut.DrawIfCut("connection"))
	}
	return d
}

// state shows whether the connection is held up, in RabbitMQ's words.
func state(of string) g.Node {
	why := map[string]string{
		"flow": "it publishes faster than consumers take", "blocked": "it publishes, and memory or disk space is used up", "running": "nothing holds it up",
	}
	class := map[string]string{"flow": "tag warn", "blocked": "tag bad"}[of]
	return h.Span(h.Class(cmp.Or(class, "tag")), h.Title(why[of]), g.Text(of))
}

// past is how many messages are held past their deadlines.
func past(n int) g.Node {
	if n == 0 {
		return ui.Faint("0")
	}
	return ui.Class("bad", ui.Bold(ui.Number(n)))
}

func (p *onePage) draw(*ui.Info) ui.Drawing {
	closing := ui.Faint("Only its user or an administrator may close it.")
	if p.MayClose {
		closing = ui.DangerLink(ui.At(closePath, "name", p.Name), "Close…")
	}
	figures := ui.Figures(
		ui.Figure("State", g.If(p.State() != "running", h.Class("warn")), g.Text(p.State())),
		ui.Figure("Past deadline", g.If(p.Past > 0, h.Class("bad")), g.Text(ui.Number(p.Past))),
		ui.Figure("Unacked", g.Text(ui.Number(p.Unacked()))),
		ui.Figure("Consumers", g.Text(ui.Number(p.Consumers()))),
		ui.Figure("Published /s", ui.Rate(p.Rate["publish"])),
		ui.Figure("Delivered /s", ui.Rate(p.Rate["deliver_get"])),
		ui.Figure("Received", g.Text(ui.Bytes(int64(p.Received)))),
		ui.Figure("Sent", g.Text(ui.Bytes(int64(p.Sent)))))
	return ui.Drawing{
		Top:    g.Group{ui.Crumbs(tab, "Connections", p.VHost), h.H1(ui.Name(p.Title)), ui.Menu("Actions", closing)},
		Live:   g.Group{figures, p.holders(), p.channels()},
		Bottom: p.facts(),
	}
}

func (p *onePage) holders() g.Node {
	if len(p.Holders) == 0 {
		return ui.Card("holds", "Consumers", nil, ui.Empty(g.Text("It consumes nothing and holds nothing.")))
	}
	return ui.Card("holds", "Consumers", nil, Table(p.Holders, p.Now, true, nil))
}

func (p *onePage) channels() g.Node {
	if len(p.Channels) == 0 {
		return ui.Card("channels", "Channels", nil, ui.Empty(g.Text("No channel is open.")))
	}
	var rows g.Group
	for i := range p.Channels {
		ch, rate := &p.Channels[i], p.Rates[i]
		mode := "–"
		switch {
		case ch.Transactional:
			mode = "transactions"
		case ch.Confirm:
			mode = "confirms"
		}
		rows = append(rows, h.Tr(
			h.Td(g.Text(strconv.Itoa(int(ch.Number)))), h.Td(g.Text(mode)), ui.Amount(limit(ch.Prefetch)), ui.Amount(limit(ch.GlobalPrefetch)),
			ui.Amount(ui.OrFaint(ch.Unacked)), ui.Amount(ui.OrFaint(int(ch.Unconfirmed))),
			ui.Amount(ui.Rate(rate["publish"])), ui.Amount(ui.Rate(rate["deliver_get"])), ui.Amount(ui.Rate(rate["ack"]))))
	}
	return ui.Card("channels", "Channels", nil, ui.Table([]string{"Number", "Publishes with", "#Prefetch", "#of the channel", "#Unacked", "#Unconfirmed", "#Published /s", "#Delivered /s", "#Acked /s"}, rows,
		h.Role("group"), h.Aria("label", "Channels"), h.TabIndex("0")))
}

func limit(prefetch int) g.Node {
	if prefetch == 0 {
		return ui.Faint("no limit")
	}
	return g.Text(ui.Number(prefetch))
}

func (p *onePage) facts() g.Node {
	encrypted := ui.Faint("no")
	if p.TLS != nil {
		encrypted = g.Text("yes")
	}
	heartbeat := ui.Faint("none")
	if p.Heartbeat > 0 {
		heartbeat = g.Text(ui.Span(p.Heartbeat))
	}
	return ui.Card("facts", "About it", nil, ui.Facts(
		ui.Fact("Name", ui.Name(p.Name)),
		ui.Fact("User", ui.Name(p.User)),
		ui.Fact("Address", ui.Name(net.JoinHostPort(p.PeerHost, strconv.Itoa(p.PeerPort)))),
		ui.Fact("Client", ui.NameOr(p.Client.Product, ui.Faint("none")), g.Text(" "), ui.Name(p.Client.Version)),
		ui.Fact("Platform", ui.NameOr(p.Client.Platform, ui.Faint("none"))),
		ui.Fact("Login", ui.Name(p.Mechanism)),
		ui.Fact("TLS", encrypted),
		ui.Fact("Heartbeat", heartbeat),
		ui.Fact("Connected", ui.Ago(p.Since))))
}

func (p *consumersPage) draw(*ui.Info) ui.Drawing {
	d := ui.Drawing{Top: heading("Consumers", consumers, p.Find)}
	switch {
	case p.All == 0:
		d.Live = ui.Only(g.Text("There are no consumers."))
	case p.Cut.Of == 0:
		d.Live = ui.Only(g.Text("No consumer matches. "), ui.Link(consumers, g.Text("Show all")), g.Text("."))
	default:
		d.Live = h.Section(h.Class("card"), Table(p.List, p.Now, true, p.work), p.Cut.DrawIfCut("consumer"))
	}
	return d
}

// work is how many messages wait for a consumer, and how many its channel acks.
func (p *consumersPage) work(c *operate.Consumer) g.Node {
	ch := channel{c.Connection, c.Channel}
	acked := g.Group{ui.Rate(p.Rates[ch]["ack"])}
	if n := p.Sharing[ch]; n > 1 {
		acked = append(acked, h.Br(), ui.Faint("of "+ui.Plural(n, "consumer")))
	}
	return g.Group{ui.Amount(ui.OrFaint(p.Waiting[c.Queue.ID])), ui.Amount(acked)}
}

// clientsNamed is how many clients of a queue a list names.
const clientsNamed = 3

// Clients names the clients of a queue's consumers, each once, in their order. Those that hold messages past their deadlines say how many.
func Clients(list []operate.Consumer) g.Node {
	var first []*operate.Consumer
	held := map[string]int{}
	for i := range list {
		name := title(&list[i].Client, list[i].User)
		if _, known := held[name]; !known {
			first = append(first, &list[i])
		}
		held[name] += list[i].PastDeadline
	}
	nodes := g.Group{}
	for _, c := range first[:min(len(first), clientsNamed)] {
		name := title(&c.Client, c.User)
		nodes = append(nodes, h.Div(ui.Link(ui.At("/connection", "name", c.Connection), ui.Name(name)), g.If(held[name] > 0, ui.Class("bad", g.Text(" holds "+ui.Number(held[name])+" past deadline")))))
	}
	return g.Group{nodes, g.If(len(first) > clientsNamed, h.Div(ui.Faint("and "+ui.Number(len(first)-clientsNamed)+" more")))}
}

// Table lists who holds messages of one queue or of several. now is in Unix ms. With work it also shows how much each consumer does, and how many
// messages wait for it.
func Table(list []operate.Consumer, now int64, queues bool, work func(*operate.Consumer) g.Node) g.Node {
	headings := []string{"Client", "#Past deadline", "#Unacked", "#Prefetch", "Held for", "User", "Address", "Status"}
	if work != nil {
		headings = slices.Insert(headings, 3, "#Waiting", "#Acked /s")
	}
	if queues {
		headings = slices.Insert(headings, 1, "Queue")
	}
	return ui.Table(headings, g.Map(list, func(c operate.Consumer) g.Node { return row(&c, now, queues, work) }))
}

func row(c *operate.Consumer, now int64, queues bool, work func(*operate.Consumer) g.Node) g.Node {
	tag := cmp.Or(c.Tag, "basic.get")
	oldest := ui.Faint("–")
	if c.OldestMillis != 0 {
		oldest = h.Time(h.Title(ui.UTC(c.OldestMillis)), g.Text(ui.Millis(max(now-c.OldestMillis, 0))))
	}
	over := past(c.PastDeadline)
	if c.EarliestMillis != 0 {
		over = g.Group{over, h.Br(), ui.Faint("for " + ui.Millis(max(now-c.EarliestMillis, 0)))}
	}
	queue := c.Queue
	return h.Tr(
		h.Td(ui.Link(ui.At("/connection", "name", c.Connection), ui.Name(title(&c.Client, c.User))), h.Br(), ui.Class("faint", ui.Name(tag))),
		g.Iff(queues, func() g.Node {
			return h.Td(ui.QueueLink(ui.QueueURL(queue.VHost().Name(), queue.Name), queue.VHost().Name(), queue.Name))
		}),
		ui.Amount(over), ui.Amount(ui.OrFaint(c.Unacked)), g.Iff(work != nil, func() g.Node { return work(c) }), ui.Amount(limit(c.Prefetch)), h.Td(h.Class("tight"), oldest),
		h.Td(ui.Name(c.User)), h.Td(h.Class("tight"), ui.Name(net.JoinHostPort(c.PeerHost, strconv.Itoa(c.PeerPort)))), h.Td(status(c)))
}

// status shows whether messages are delivered to the consumer, and what else is special about it.
func status(c *operate.Consumer) g.Node {
	switch {
	case c.Cancelled:
		return ui.Class("tag warn", g.Text("cancelled"))
	case c.Tag == "":
		return ui.Faint("gets messages one by one")
	case c.NoAck:
		return g.Text(words(string(c.Status)) + ", without acks")
	case c.Exclusive:
		return g.Text(words(string(c.Status)) + ", exclusive")
	}
	return g.Text(words(string(c.Status)))
}

// words is a status in plain words instead of RabbitMQ's.
func words(status string) string {
	switch status {
	case "up":
		return "active"
	case "single_active":
		return "the single active one"
	case "waiting":
		return "waits until it is the active one"
	}
	return status
}
