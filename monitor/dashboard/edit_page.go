package dashboard

import (
	"strconv"

	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (p *editPage) Draw(s *ui.Info) ui.Drawing {
	top := g.Group{
		h.P(h.Class("crumbs"), ui.Link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), ui.Link(lettersURL(p.VHost, p.Queue), ui.Name(p.Queue)), g.Text(" · virtual host "), ui.Name(p.VHost)),
		h.H1(g.Text("Change a dead letter and replay it")),
	}
	switch {
	case p.Refused:
		return ui.Drawing{Top: append(top, ui.Only(g.Text("This user may not read the queue: ask for the permission to read it.")))}
	case !p.Allowed:
		return ui.Drawing{Top: append(top, ui.Only(g.Text("This user may not replay.")))}
	case p.TooLarge:
		return ui.Drawing{Top: append(top, ui.Only(g.Text("The body is larger than "+format.Bytes(maxEdited)+": download the message, change the file and import it.")))}
	}
	return ui.Drawing{Top: append(top, p.form(s))}
}

func (p *editPage) form(s *ui.Info) g.Node {
	body := "Body"
	if p.Form == coded {
		body = "Body, in base64 because it is not text"
	}
	return h.Section(h.Class("card"), s.Change(editPath, h.Class("edit"),
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("seq", strconv.FormatUint(p.Seq, 10)),
		ui.Hidden("queue", strconv.FormatUint(p.Draft.QueueID, 10)), ui.Hidden("form", p.Form),
		ui.Field("Exchange", "exchange", p.Draft.Exchange, h.MaxLength("255"), h.Placeholder("the default exchange")),
		ui.Field("Routing key", "routing_key", p.Draft.RoutingKey, h.MaxLength("255")),
		ui.Area("Properties and headers, as in an exported file", "properties", string(p.Draft.Properties)),
		ui.Area(body, "body", p.Text),
		h.P(h.Class("faint"), g.Text("The message leaves this queue only when another one has it. Its history begins again there.")),
		h.P(h.Class("pager"), ui.Spaced(ui.Primary("Replay the changed message"), ui.Link(lettersURL(p.VHost, p.Queue), g.Text("Cancel"))))))
}
