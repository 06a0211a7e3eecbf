package letters

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/dashboard/internal/ui"
)

const (
	// searchTime bounds the search of one page, and countTime the count of its groups unless all are asked for.
	searchTime = 10 * time.Second
	countTime  = 60 * time.Millisecond
	// listRows is how many messages one page shows, and rowBody how many bytes of each body are read for its first line.
	listRows = 50
	rowBody  = 2 << 10
	// maxLine is how many characters of a body's first line are shown.
	maxLine = 160
)

// listPage is what the page of a queue's dead letters shows.
type listPage struct {
	VHost, Queue string
	Filter       deadletters.Filter
	Wrong        error // with the filter
	Groups       []deadletters.Group
	Counted      int  // messages that are in the groups
	Partly       bool // only the newest are counted
	Saved        []operate.SavedFilter
	Rows         []deadletters.Item
	Refused      bool // the user may not read the queue
	TooLong      bool
	Oldest       bool // first
	All          bool // rows are selected at first
	After        string
	First        string // URL of the first page; "": this is it
	At           url.Values
	Now          int64
	Position     deadletters.Position // of the rows
	May          rights
	Done         string // what was just done; "": nothing
	Problem      string // what could not be done; "": nothing
}

// rights are what the user may do with a queue's dead letters.
type rights struct{ replay, resend, purge, fill, save bool }

func rightsOf(o *operate.Operations, by operate.Actor, at operate.QueueName) rights {
	may := func(op operate.Operation) bool { return o.May(by, op, at) }
	return rights{may(operate.StartReplay.Name), may(messages.ResendDeadLetter.Name), may(operate.PurgeDeadLetters.Name), may(messages.ImportDeadLetters.Name), may(operate.SaveFilter.Name)}
}

func (d Pages) listPage(ctx context.Context, by operate.Actor, q url.Values) (*listPage, error) {
	p := &listPage{
		VHost: q.Get("vhost"), Queue: q.Get("name"), Filter: deadletters.Filter(q.Get("filter")), Oldest: q.Get("order") == "oldest", All: q.Get("all") == "1",
		Now: d.Operations.State().NowMillis,
	}
	for _, did := range []string{"replayed", "imported", "deleted"} { // before the redirect to this page
		if n, err := strconv.Atoi(q.Get(did)); err == nil {
			p.Done = ui.Plural(n, "message") + " " + did + "."
		}
	}
	p.At, p.Wrong = listQuery(q), p.Filter.Check()
	at := ui.Named(q)
	p.May = rightsOf(d.Operations, by, at)
	err := d.count(ctx, by, p, q.Get("count") == "all")
	if operate.Refused(err) {
		p.Refused = true
		return p, nil
	}
	if err == nil {
		p.Saved, err = operate.ListFilters.Do(ctx, d.Operations, by, operate.QueueFilter{VHost: at.VHost, Queue: at.Name})
	}
	if err == nil && p.Wrong == nil {
		err = d.search(ctx, by, p, q.Get("after"))
	}
	return p, err
}

// count groups the messages of the queue: the newest, or all of them.
func (d Pages) count(ctx context.Context, by operate.Actor, p *listPage, all bool) error {
	limited, cancel := context.WithTimeout(ctx, map[bool]time.Duration{false: countTime, true: searchTime}[all])
	defer cancel()
	groups, err := messages.GroupDeadLetters.Do(limited, d.Operations, by, messages.DeadLetters{VHost: p.VHost, Queue: p.Queue})
	for _, one := range groups {
		p.Counted += one.Messages
	}
	p.Partly = err != nil && limited.Err() != nil
	if p.Partly && ctx.Err() == nil {
		err = nil
	}
	const most = 50
	p.Groups = groups[:min(len(groups), most)]
	return err
}

// search finds the rows of a page. A search that takes too long shows what it has found, and the next page goes on from there.
func (d Pages) search(ctx context.Context, by operate.Actor, p *listPage, after string) error {
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	from, _ := strconv.ParseUint(after, 10, 64)
	found, err := messages.SearchDeadLetters.Do(limited, d.Operations, by, messages.DeadLetters{
		VHost: p.VHost, Queue: p.Queue, Filter: p.Filter, After: operate.Seq(from), Newest: !p.Oldest, Count: listRows, Truncate: rowBody,
	})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		p.TooLong, err = true, nil
	}
	p.Position, p.Rows = found.Position, found.Items
	if found.Next != 0 {
		p.After = ui.With(listPath, p.At, "after", ui.Text(found.Next))
	}
	if from != 0 {
		p.First = ui.With(listPath, p.At, "after", "")
	}
	return err
}

// firstLine is the first line with text of a body, unpacked; body is its beginning.
func firstLine(p *amqp.Properties, body []byte, whole int) string {
	cut := len(body) < whole
	if deadletters.IsPacked(p.ContentEncoding) {
		plain, more, err := deadletters.Unpack(p.ContentEncoding, body, rowBody)
		if len(plain) == 0 && err != nil {
			return "(" + p.ContentEncoding + " that cannot be unpacked)"
		}
		body, cut = plain, more || err != nil
	}
	text, dumped := ui.Body(body, cut)
	if dumped {
		return "(binary)"
	}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		text = ui.Unescaped(text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) > 1 || line != "" && !strings.ContainsAny(line, "{[") { // JSON on many lines begins with a bracket
			return cutTo(line, maxLine)
		}
	}
	return cutTo(strings.TrimSpace(text), maxLine)
}

func cutTo(line string, most int) string {
	n := 0
	for i := range line {
		if n++; n > most {
			return line[:i] + "…"
		}
	}
	return line
}

func (p *listPage) draw(s *ui.Info) ui.Drawing {
	top := g.Group{ui.Crumbs("/dead-letters", "Dead letters", p.VHost), h.H1(ui.Name(p.Queue))}
	if p.Refused {
		return ui.Drawing{Top: append(top, ui.Only(g.Text(ui.MayNotRead)))}
	}
	return ui.Drawing{Top: append(top,
		ui.Done(p.Done),
		ui.Problem(p.Problem),
		p.parked(s),
		g.If(len(p.Groups) > 0, ui.Card("groups", "By cause", p.counted(), ui.Table(
			[]string{"Reason", "In queue", "Published to", "#Messages", "", "Oldest", "Newest"}, g.Map(p.Groups, p.drawGroup)))),
		p.form(),
		p.found(s),
		p.importForm(s))}
}

// counted shows which messages the groups are of, if that is not all of them.
func (p *listPage) counted() g.Node {
	if !p.Partly {
		return nil
	}
	return h.Span(ui.Faint("of the newest "+ui.Plural(p.Counted, "message")+" "), ui.Link(ui.With(listPath, p.At, "count", "all"), g.Text("Count all")))
}

func (p *listPage) drawGroup(l deadletters.Group) g.Node {
	share := max(l.Messages*100/max(p.Groups[0].Messages, 1), 1) // of 100, of the largest group
	why, exchange := "never died", ui.NameOr(l.Exchange, ui.Faint("default exchange"))
	if l.Reason != "" {
		why = ui.Visible(l.Reason)
	}
	return h.Tr(
		h.Td(ui.Link(URL(p.VHost, p.Queue, l.Filter()), g.Text(why)), ui.Faint(deadletters.ReasonWords(l.Reason))), h.Td(g.If(l.Queue != "", ui.Name(l.Queue))), h.Td(exchange), ui.Amount(g.Text(ui.Number(l.Messages))),
		h.Td(h.Class("share"), ui.Strip(share)),
		h.Td(ui.Ago(l.Oldest)), h.Td(ui.Ago(l.Newest)))
}

// parked shows why messages are parked, and what to do about it.
func (p *listPage) parked(s *ui.Info) g.Node {
	var rows g.Group
	for _, one := range p.Groups {
		if one.Why != "" {
			rows = append(rows, h.Li(p.cause(s, &one)))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return ui.Card("parked", "Why they are parked here", p.counted(), h.Ul(h.Class("causes"), rows))
}

func (p *listPage) cause(s *ui.Info, one *deadletters.Group) g.Node {
	replay := s.Change(replayPath, "", ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("filter", string(one.Filter())), ui.Hidden("to", deadletters.ToOnward), ui.Button("Replay them to it…"))
	return g.Group{h.P(ui.Advice(one.Advice)), g.If(p.May.replay, replay)}
}

func (p *listPage) found(s *ui.Info) g.Node {
	title := "Messages"
	if p.Filter != "" {
		title = "Matching messages"
	}
	views := ui.Views(listPath, p.At, "after", "order", map[bool]string{true: "oldest"}[p.Oldest], "", "Newest first", "oldest", "Oldest first")
	return ui.Card("found", title, ui.Choices("Order", views), p.keep(s), p.rows(s))
}

func (p *listPage) rows(s *ui.Info) g.Node {
	more := ui.Follow("next", p.After, "After →")
	if p.TooLong {
		more = ui.Follow("next", p.After, "Search on →")
	}
	pager := h.P(h.Class("pager"), ui.Spaced(ui.Follow("first", p.First, "← First"), more))
	slow := g.If(p.TooLong, h.P(h.Class("problem"), g.Text("The search took too long and was stopped, so this page does not show everything. Search on from here, or use "), ui.Code("curfew dlq"), g.Text(", which has no time limit.")))
	switch {
	case p.Wrong != nil:
		return ui.Empty(g.Text("Nothing was searched: correct what is marked above."))
	case len(p.Rows) == 0 && p.TooLong:
		return g.Group{slow, pager}
	case len(p.Rows) == 0 && p.Filter != "":
		return ui.Empty(g.Text("No message matches. "), ui.Link(URL(p.VHost, p.Queue, ""), g.Text("Show all")))
	case len(p.Rows) == 0:
		return ui.Empty(g.Text("The queue is empty: no dead letters."))
	}
	return g.Group{slow, s.Change(replayPath, "letters",
		ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.HiddenIf("filter", string(p.Filter)), ui.Hidden("shown", p.Position.String()),
		ui.HiddenIf("order", p.At.Get("order")), ui.HiddenIf("after", p.At.Get("after")),
		p.actions(),
		h.Ol(h.Class("messages"), g.Map(p.Rows, p.drawRow))),
		pager,
		h.P(h.Class("faint"), g.Text("This page changes nothing. As of "+ui.UTC(p.Now)+"."))}
}

// actions are the buttons for the messages, next to those that select.
func (p *listPage) actions() g.Node {
	all := "All"
	if p.Filter != "" {
		all = "All that match"
	}
	choose := ui.Link(ui.With(listPath, p.At, "all", "1"), g.Text("Select the page"))
	if p.All {
		choose = ui.Link(ui.With(listPath, p.At), g.Text("Select none"))
	}
	return h.Div(h.Class("actions"),
		h.Div(h.Role("group"), h.Aria("label", "Selected"), h.Span(g.Text("Selected")), p.buttons("selected"), choose),
		h.Div(h.Role("group"), h.Aria("label", all), h.Span(g.Text(all)), p.buttons("all")))
}

func (p *listPage) buttons(of string) g.Node {
	does := func(path, class, text string) g.Node {
		return h.Button(h.Name("of"), h.Value(of), h.FormAction(path), g.If(class != "", h.Class(class)), g.Text(text))
	}
	return ui.Spaced(
		g.If(p.May.replay, does(replayPath, "", "Replay…")),
		g.If(p.May.purge, does(purgePath, "danger asks", "Delete…")),
		does(exportPath, "", "Download"))
}

func (p *listPage) drawRow(item deadletters.Item) g.Node {
	l := &item.Letter
	number, line := ui.Text(l.Seq), firstLine(&l.Properties, l.Message.Body, l.BodyBytes)
	to, title := ui.MessageURL(messagePath, p.VHost, p.Queue, l.Seq), ui.NameOr(l.Properties.MessageID, g.Text("#"+number))
	when := g.Node(nil)
	if len(l.Deaths) > 0 && !l.Deaths[0].Time.IsZero() {
		when = ui.Ago(l.Deaths[0].Time)
	}
	return h.Li(
		h.Input(h.Type("checkbox"), h.Name("pick"), h.Value(number), h.Aria("label", "Select message "+number), g.If(p.All, h.Checked()), g.If(l.State == operate.Unacked, h.Disabled())),
		h.Div(h.Class("letter"),
			h.Div(h.Class("message"), ui.Spaced(
				h.Span(h.Class("grow"), h.A(h.Class("what"), ui.Href(to), title), g.Text(" "), about(l)),
				ui.Class("tags", tags(l)),
				ui.Class("when", when),
				ui.Class("size", g.Text(ui.Bytes(int64(l.BodyBytes)))))),
			h.P(h.Class("line"), ui.Either(line == "", ui.Faint("no body"), ui.Name(line)))))
}

// about shows why, where and with which key a message died.
func about(l *deadletters.Letter) g.Node {
	key, died := string(l.Message.RoutingKey), "never died"
	if len(l.Deaths) > 0 {
		last := &l.Deaths[0]
		if len(last.Keys) > 0 {
			key = last.Keys[0]
		}
		died = ui.Visible(last.Reason) + " in " + ui.Visible(last.Queue)
	}
	kind := g.If(l.Properties.Type != "", g.Group{ui.Class("tag", ui.Name(l.Properties.Type)), g.Text(" ")})
	return g.Group{kind, ui.NameOr(key, ui.Faint("no key")), g.Text(" "), ui.Faint(died)}
}

func tags(l *deadletters.Letter) g.Node {
	var tags []g.Node
	if len(l.Deaths) > 0 && l.Deaths[0].Count > 1 {
		tags = append(tags, ui.Class("tag warn", g.Text(ui.Number(l.Deaths[0].Count)+" times")))
	}
	if l.Replays > 0 {
		tags = append(tags, ui.Class("tag", g.Text("replayed "+ui.Number(l.Replays)+"×")))
	}
	if l.State == operate.Unacked {
		tags = append(tags, ui.Class("tag warn", g.Text("unacked")))
	}
	return ui.Spaced(tags...)
}

func (p *listPage) importForm(s *ui.Info) g.Node {
	if !p.May.fill {
		return nil
	}
	return h.Details(h.Class("card"), h.Summary(g.Text("Import a file into this queue")),
		h.Form(h.Class("filter"), h.Method("post"), h.Action(ImportPath), h.EncType("multipart/form-data"),
			ui.Hidden("token", s.Token), ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), // before the file, which is read as it comes
			ui.NewForm(nil).Field("An exported file, at most "+ui.Bytes(MaxUpload), "file", "", h.Type("file"), h.Required(), h.Accept(".jsonl,.json,.txt")),
			ui.Button("Import")))
}
