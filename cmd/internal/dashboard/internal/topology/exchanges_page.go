package topology

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// exchangeText is the name of an exchange; the default one has none.
func exchangeText(name string) g.Node {
	if name == "" {
		return g.Text("(default exchange)")
	}
	return ui.Name(name)
}

func exchangeLink(vhost, name string) g.Node {
	return ui.Link(exchangeURL(vhost, name), exchangeText(name))
}

func (p *exchangeList) Draw(*ui.Info) ui.Drawing {
	top := g.Group{
		h.H1(g.Text("Exchanges")), ui.Done(p.Done),
		ui.Menu("Actions", ui.Action(newExchange, "New exchange…"), ui.Action(newBinding, "Bind…"), ui.Action(publish, "Publish…")),
		ui.Search(exchanges, ui.NewForm(nil, "q", p.Find).Field("Name contains", "q", "", h.Type("search")), ui.Button("Search")),
	}
	if p.Cut.Of == 0 {
		return ui.Drawing{Top: top, Live: ui.Only(g.Text("No exchange matches. "), ui.Link(exchanges, g.Text("Show all")), g.Text("."))}
	}
	return ui.Drawing{Top: top, Live: h.Section(h.Class("card"),
		ui.Table([]string{"Name", "Type", "#Bindings", "#Published", "#Into queues", "Features"}, g.Map(p.List, func(x operate.ExchangeInfo) g.Node {
			of := exchangePage{ExchangeInfo: x}
			return h.Tr(
				h.Td(exchangeLink(x.VHost, x.Name), g.If(x.VHost != "/", g.Group{g.Text(" "), ui.Class("faint", ui.Name(x.VHost))})), h.Td(ui.Name(x.Kind)),
				ui.Amount(ui.OrFaint(x.Bindings)), ui.Amount(ui.OrFaint(int(x.PublishedIn))), ui.Amount(ui.OrFaint(int(x.PublishedOut))),
				h.Td(ui.Names(of.features(), ui.Faint("–"))))
		})),
		p.Cut.DrawIfCut("exchange"))}
}

// features are the flags that the exchange was declared with.
func (p *exchangePage) features() (list []string) {
	for _, one := range []struct {
		is   bool
		name string
	}{{p.Durable, "durable"}, {p.AutoDelete, "deleted with its last binding"}, {p.Internal, "internal"}} {
		if one.is {
			list = append(list, one.name)
		}
	}
	return list
}

func (p *exchangePage) Draw(s *ui.Info) ui.Drawing {
	bind := ui.At(newBinding, "vhost", p.VHost, "source", p.Name)
	return ui.Drawing{
		Top: g.Group{
			ui.Crumbs(exchanges, "Exchanges", p.VHost), h.H1(exchangeText(p.Name)), ui.Done(p.Done),
			ui.Menu("Actions",
				g.If(!p.Internal, ui.Action(ui.At(publish, "vhost", p.VHost, "exchange", p.Name), "Publish…")),
				g.If(p.Name != "", ui.Action(bind, "Bind…")),
				g.If(p.Delete, ui.DangerLink(ui.At(deleteExchange, "vhost", p.VHost, "name", p.Name), "Delete…"))),
		},
		Live: g.Group{
			ui.Card("to", "Routes to", nil, p.bindings(s)),
			g.If(len(p.From) > 0, ui.Card("from", "Bound to", nil, Bindings(s, p.VHost, p.From))),
			ui.Card("set", "Settings", nil, ui.Facts(
				ui.Fact("Type", ui.Name(p.Kind)), ui.Fact("Features", ui.Names(p.features(), ui.Faint("none"))),
				ui.Fact("Published", g.Text(ui.Number(p.PublishedIn))), ui.Fact("Into queues", g.Text(ui.Number(p.PublishedOut))),
				g.Map(ui.Fields(p.Args), func(a ui.Pair) g.Node { return ui.PairRow(a, g.Text(" "), ui.Faint("argument")) }))),
		},
	}
}

func (p *exchangePage) bindings(s *ui.Info) g.Node {
	switch {
	case p.Name == "":
		return ui.Empty(g.Text("It routes to the queue named by the routing key, and cannot be bound."))
	case len(p.To) == 0:
		return ui.Empty(g.Text("Nothing is bound to it: messages that are published here are lost, and dead letters are parked."))
	}
	return Bindings(s, p.VHost, p.To)
}

// maxBindings bounds the bindings that a page lists.
const maxBindings = 200

// Bindings lists the bindings of an exchange or a queue, each with a button to remove it.
func Bindings(s *ui.Info, vhost string, list []operate.Binding) g.Node {
	found := len(list)
	list = list[:min(found, maxBindings)]
	return g.Group{
		ui.Table([]string{"From", "By the key", "To", "Arguments", ""}, g.Map(list, func(b operate.Binding) g.Node {
			remove := s.Change(deleteBinding, "", (&unbinding{Binding: b, VHost: vhost}).fields(), ui.Button("Unbind…"))
			return h.Tr(
				h.Td(exchangeLink(vhost, b.Source)), h.Td(key(b.RoutingKey)), h.Td(end(vhost, &b)), h.Td(arguments(b.Args)),
				h.Td(h.Class("tight"), g.If(b.Source != "", remove)))
		})),
		g.If(found > len(list), h.P(h.Class("note"), g.Text("The first "+ui.Number(len(list))+" of "+ui.Number(found)+"."))),
	}
}

func key(routing string) g.Node {
	if routing == "" {
		return ui.Faint("none")
	}
	return ui.Code(ui.Visible(routing))
}

func end(vhost string, b *operate.Binding) g.Node {
	if b.ToExchange {
		return g.Group{ui.Faint("exchange "), exchangeLink(vhost, b.Destination)}
	}
	return ui.Link(ui.QueueURL(vhost, b.Destination), ui.Name(b.Destination))
}

func arguments(args operate.Table) g.Node {
	var list []string
	for _, a := range ui.Fields(args) {
		list = append(list, a.Name+"="+a.Value)
	}
	return ui.Names(list, ui.Faint("–"))
}

func (p *exchangeForm) Draw(s *ui.Info) ui.Drawing {
	f := p.Form
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(exchanges, g.Text("Exchanges"))), h.H1(g.Text("New exchange")),
		h.Section(h.Class("card"), s.Sheet(newExchange, f, g.Group{
			f.Field("Name", "name", "", h.Required(), h.MaxLength("255")),
			f.ChooseVHost(p.VHosts),
			f.Choose("Type", "type", "", "topic", "topic: patterns of words, such as orders.*.eu", "direct", "direct: exactly the key", "fanout", "fanout: to all that are bound",
				"headers", "headers: by the headers", delayedKind, delayedKind+": holds messages back first"),
			f.Choose("Routes as", "x-delayed-type", "Only for "+delayedKind+".", "topic", "topic", "direct", "direct", "fanout", "fanout", "headers", "headers"),
			f.Field("Alternate exchange", "alternate-exchange", "For messages that it cannot route."),
			f.Field("Time to live", "x-message-ttl", "The longest for messages that it routes: in ms, or as 90s, 10m or 24h."),
			h.FieldSet(h.Legend(g.Text("The exchange")), f.Check("survives a restart", "durable"), f.Check("is deleted with its last binding", "auto_delete"), f.Check("takes messages from exchanges only", "internal")),
			f.Area("Other arguments", "arguments", "A JSON object.", 3),
		}, ui.Primary("Create the exchange"), ui.Link(exchanges, g.Text("Cancel")))),
	}}
}

func (d *exchangeDeletion) Draw(s *ui.Info) ui.Drawing {
	return ui.Drawing{Live: g.Group{
		ui.Crumbs(exchanges, "Exchanges", d.VHost), h.H1(g.Text("Delete the exchange "), ui.Name(d.Name), g.Text("?")),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("Bindings", g.Text(ui.Number(d.Bindings)+": they are removed, too. Publishing to the exchange will fail, and dead letters for it will be parked.")),
			ui.Fact("Published so far", g.Text(ui.Number(d.PublishedIn))))),
		h.Section(h.Class("card"), s.Sheet(deleteExchange, d.Form, g.Group{
			ui.Hidden("vhost", d.VHost), ui.Hidden("name", d.Name),
			h.FieldSet(h.Legend(g.Text("Only if")), d.Form.Check("nothing is bound to it", "if_unused")),
		}, ui.Danger("Delete the exchange"), ui.Link(exchangeURL(d.VHost, d.Name), g.Text("Cancel")))),
	}}
}

func (p *bindingForm) Draw(s *ui.Info) ui.Drawing {
	f := p.Form
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link(exchanges, g.Text("Exchanges"))), h.H1(g.Text("New binding")),
		h.Section(h.Class("card"), s.Sheet(newBinding, f, g.Group{
			f.Field("From the exchange", "source", "", h.Required()),
			f.ChooseVHost(p.VHosts),
			f.Field("To", "destination", "", h.Required()),
			f.Choose("Which is", "to", "", "queue", "a queue", "exchange", "an exchange"),
			f.Field("By the routing key", "key", "For a topic exchange * stands for one word and # for any number.", h.MaxLength("255")),
			f.Area("Arguments", "arguments", `A JSON object; for a headers exchange the headers, and {"x-match": "any"}.`, 3),
		}, ui.Primary("Bind"), ui.Link(exchanges, g.Text("Cancel")))),
	}}
}

func (u *unbinding) fields() g.Group {
	to := "queue"
	if u.ToExchange {
		to = "exchange"
	}
	return g.Group{
		ui.Hidden("vhost", u.VHost), ui.Hidden("source", u.Source), ui.Hidden("destination", u.Destination), ui.Hidden("to", to), ui.Hidden("key", u.RoutingKey),
		ui.Hidden("args", digest(u.Args)),
	}
}

func (u *unbinding) Draw(s *ui.Info) ui.Drawing {
	return ui.Drawing{Live: g.Group{
		ui.Crumbs(exchanges, "Exchanges", u.VHost), h.H1(g.Text("Remove this binding?")),
		h.Section(h.Class("card"), ui.Facts(
			ui.Fact("From", exchangeLink(u.VHost, u.Source)), ui.Fact("By the key", key(u.RoutingKey)), ui.Fact("To", end(u.VHost, &u.Binding)), ui.Fact("Arguments", arguments(u.Args)))),
		s.Sheet(deleteBinding, u.Form, append(u.fields(), ui.Hidden("confirmed", "1")), ui.Danger("Remove"), ui.Link(exchangeURL(u.VHost, u.Source), g.Text("Cancel"))),
	}}
}
