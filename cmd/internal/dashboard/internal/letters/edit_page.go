package letters

import (
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/cmd/internal/dashboard/internal/ui"
)

func (p *editPage) Draw(s *ui.Info) ui.Drawing {
	top := g.Group{crumbs(p.VHost, p.Queue), h.H1(g.Text("Change a dead letter and replay it"))}
	switch {
	case p.Refused:
		return ui.Drawing{Top: append(top, ui.Only(g.Text(ui.MayNotRead)))}
	case !p.Allowed:
		return ui.Drawing{Top: append(top, ui.Only(g.Text("This user may not replay dead letters.")))}
	case p.TooLarge:
		return ui.Drawing{Top: append(top, ui.Only(g.Text("The body is larger than "+ui.Bytes(maxEdited)+": download the message, change the file and import it.")))}
	}
	return ui.Drawing{Top: append(top, p.form(s))}
}

func (p *editPage) form(s *ui.Info) g.Node {
	body := "Body"
	switch {
	case p.Form == coded:
		body = "Body, in base64 because it is not text"
	case p.Draft.Unpacked:
		body = "Body, unpacked: it is packed again according to content_encoding"
	}
	f := ui.NewForm(nil, "exchange", p.Draft.Exchange, "routing_key", p.Draft.RoutingKey, "properties", string(p.Draft.Properties), "body", p.Text)
	if p.Problem != "" {
		f.Wrong("", p.Problem)
	}
	return h.Section(h.Class("card"), s.Sheet(EditPath, f, g.Group{
		p.names(),
		f.Field("Exchange", "exchange", "", h.MaxLength("255"), h.Placeholder("the default exchange")),
		f.Field("Routing key", "routing_key", "", h.MaxLength("255")),
		f.Area("Properties and headers, as JSON", "properties", "", 10),
		f.Area(body, "body", "", 10),
		h.P(h.Class("faint whole"), g.Text("You see what has changed before anything is sent. The message leaves this queue only when another queue has it; its death history begins again there.")),
	}, ui.Primary("Review the change"), ui.Link(URL(p.VHost, p.Queue), g.Text("Cancel"))))
}

// names are the hidden fields that identify the message.
func (p *editPage) names() g.Node {
	unpacked := ""
	if p.Draft.Unpacked {
		unpacked = "1"
	}
	return g.Group{
		ui.HiddenIf("unpacked", unpacked),
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("seq", strconv.FormatUint(p.Seq, 10)),
		ui.Hidden("queue", strconv.FormatUint(p.Draft.QueueID, 10)), ui.Hidden("form", p.Form),
	}
}

func (p *reviewPage) Draw(s *ui.Info) ui.Drawing {
	r := &p.Review
	does := func(value, class, text string) g.Node {
		return h.Button(h.Name("do"), h.Value(value), g.If(class != "", h.Class(class)), g.Text(text))
	}
	send := does("send", "primary", "Replay the changed message")
	switch {
	case r.Skipped != "":
		send = nil
	case r.NotJSON != "":
		send = does("send", "danger", "Replay although it is not JSON")
	case r.Diff == "":
		send = does("send", "primary", "Replay unchanged")
	}
	diff := ui.Card("diff", "What has changed", nil, g.If(r.Diff == "", ui.Empty(g.Text("Nothing."))), g.If(r.Diff != "", drawDiff(r.Diff)))
	return ui.Drawing{Live: g.Group{
		crumbs(p.VHost, p.Queue),
		h.H1(g.Text("Replay the changed message?")),
		g.If(r.NotJSON != "", ui.Problem("The body is no longer valid JSON: "+r.NotJSON+".")),
		g.If(r.Skipped != "", ui.Problem("The message would stay where it is, like those that "+skippedWords(string(r.Skipped))+".")),
		s.Change(EditPath, "doing", p.names(),
			ui.Hidden("exchange", p.Draft.Exchange), ui.Hidden("routing_key", p.Draft.RoutingKey), ui.Hidden("properties", string(p.Draft.Properties)), ui.Hidden("body", p.Text),
			send, does("again", "", "Back to editing"), ui.Link(URL(p.VHost, p.Queue), g.Text("Cancel"))),
		diff,
		ui.Card("where", "Where it goes", nil, drawTargets(p.VHost, r.Targets)),
	}}
}

// drawDiff draws the lines of a unified diff.
func drawDiff(diff string) g.Node {
	var lines g.Group
	for i, line := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		if i < 2 || line == `\ No newline at end of file` { // the names of the files
			continue
		}
		text := g.Text(visibleLine(line) + "\n")
		switch line[:min(len(line), 1)] {
		case "+":
			lines = append(lines, h.Ins(text))
		case "-":
			lines = append(lines, h.Del(text))
		case "@":
			lines = append(lines, ui.Class("faint", text))
		default:
			lines = append(lines, text)
		}
	}
	return h.Pre(h.Class("diff"), h.TabIndex("0"), h.Aria("label", "Difference"), lines)
}

// visibleLine is a line of text with its tabs; what is not printable is escaped.
func visibleLine(line string) string {
	if line == "" {
		return ""
	}
	return ui.Line(line)
}
