package dashboard

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/letters"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/audit"
)

const (
	// auditRows is how many records one page lists.
	auditRows = 100
	// auditTime bounds a search.
	auditTime = 10 * time.Second
	// auditGlance bounds that for the page without a search.
	auditGlance = 500 * time.Millisecond
)

// auditPage is the content of the audit page.
type auditPage struct {
	On      bool
	Form    *ui.Form
	Records []audit.Record
	More    bool // there are older ones
	TooLong bool // the search was stopped before it was complete
	Asked   bool // a field is filled in
	Kinds   []ui.Choice
	CSV     string
	JSONL   string
}

// auditWithin has the time spans to choose from.
var auditWithin = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

func (d *Dashboard) audit(r *http.Request, _ ui.Visitor) (ui.View, error) {
	v := r.URL.Query()
	plain := len(v) == 0
	if plain {
		v.Set("reason", audit.Changed) // not the flood of expiries
	}
	p := &auditPage{On: d.Audit != nil, Form: ui.NewForm(r.URL.Query())}
	for _, k := range []ui.Choice{{Name: "Changes", URL: audit.Changed}, {Name: "Expiries", URL: "expired"}, {Name: "Everything"}} {
		of := maps.Clone(v)
		of.Set("reason", k.URL)
		if k.URL == v.Get("reason") {
			k.URL = ""
		} else {
			k.URL = "/audit?" + of.Encode()
		}
		p.Kinds = append(p.Kinds, k)
	}
	if !p.On {
		return p.draw, nil
	}
	v.Set("message_id", strings.TrimSpace(v.Get("message_id")))
	q, err := audit.QueryOf(v)
	if err != nil {
		return nil, err
	}
	p.Asked = !plain && (len(q.Values()) > 0 || v.Get("within") != "")
	if span, ok := auditWithin[v.Get("within")]; ok {
		q.From = time.Now().Add(-span).Truncate(time.Second)
	}
	p.CSV, p.JSONL = ui.With("/audit/export", q.Values(), "format", "csv"), ui.With("/audit/export", q.Values(), "format", "jsonl")
	q.Limit, q.Newest = auditRows+1, true
	most := auditTime
	if plain {
		most = auditGlance
	}
	ctx, cancel := context.WithTimeout(r.Context(), most)
	defer cancel()
	return p.draw, p.find(ctx, d.Audit.Dir, q)
}

func (p *auditPage) find(ctx context.Context, dir string, q audit.Query) error {
	for record, err := range audit.Search(ctx, dir, q) {
		if err != nil && ctx.Err() != nil {
			p.TooLong = true
			return nil
		}
		if err != nil {
			return err
		}
		if len(p.Records) == auditRows {
			p.More = true
			break
		}
		p.Records = append(p.Records, record)
	}
	return nil
}

func (p *auditPage) draw(*ui.Info) ui.Drawing {
	top := h.H1(g.Text("Audit"))
	if !p.On {
		return ui.Drawing{Top: top, Live: ui.Only(g.Text("The audit is off. It needs a data folder: set CURFEW_DATA_DIR, and CURFEW_AUDIT=true."))}
	}
	files := h.Span(h.A(ui.Href(p.CSV), h.Download(""), g.Text("CSV")), g.Text(" · "), h.A(ui.Href(p.JSONL), h.Download(""), g.Text("JSON lines")))
	return ui.Drawing{Top: g.Group{top, p.search()}, Live: ui.Card("records", "Records", files, ui.Choices("Show", p.Kinds),
		g.If(p.TooLong && p.Asked, h.P(h.Class("problem"), g.Text("The search took too long and was stopped. Choose a queue or a shorter time."))),
		p.found(), g.If(p.TooLong && !p.Asked, h.P(g.Text("Only the newest records have been searched for changes. "), ui.Link("/audit?reason="+audit.Changed, g.Text("Search all records")))))}
}

func (p *auditPage) search() g.Node {
	f := p.Form
	return ui.Search("/audit",
		f.Field("Queue", "queue", "", h.MaxLength("255")),
		f.Field("Virtual host", "vhost", "", h.Placeholder("all"), h.MaxLength("255")),
		f.Field("Message id", "message_id", "", h.MaxLength("255")),
		f.Field("User", "user", "", h.MaxLength("255")),
		f.Choose("What", "reason", "", ui.Or("everything", audit.Reasons)...),
		f.Choose("Outcome", "outcome", "", ui.Or("any", audit.Outcomes)...),
		f.Choose("Path", "path", "", ui.Or("any", audit.Paths)...),
		f.Choose("Within", "within", "", "", "all time", "1h", "the last hour", "24h", "the last day", "7d", "the last week"),
		f.Field("Least lateness", "min_lateness", "", h.Placeholder("250ms"), g.Attr("size", "8")),
		ui.Button("Search", h.Class("primary")))
}

func (p *auditPage) found() g.Node {
	switch {
	case len(p.Records) > 0:
		headings := []string{"When", "What", "Queue", "Message or user", "#Lateness", "Path", "Outcome", "To"}
		return g.Group{
			ui.Table(headings, g.Map(p.Records, func(r audit.Record) g.Node { return auditRow(&r) }), // some have links
				h.Role("group"), h.Aria("label", "Records"), h.TabIndex("0")),
			g.If(p.More, h.P(h.Class("faint"), g.Textf("These are the last %d. For older ones, narrow the search or download the file.", len(p.Records)))),
		}
	case p.TooLong:
		return ui.Empty(g.Text("None was found before the search was stopped."))
	case p.Asked:
		return ui.Empty(g.Text("No record matches. "), ui.Link("/audit?reason=", g.Text("Show all")))
	}
	return ui.Empty(g.Text("Nobody has changed anything yet. What is changed is recorded here, with who made the change."))
}

func auditRow(r *audit.Record) g.Node {
	at := h.Td(h.Time(g.Text(ui.UTC(r.At))))
	if r.Lost > 0 {
		return h.Tr(at, h.Td(h.ColSpan("7"), h.Class("warn"), g.Text(ui.Plural(r.Lost, "record")+" before this one could not be saved")))
	}
	queue := ui.Faint("–")
	if r.Queue == "" && r.VHost != "" {
		queue = g.Group{ui.Faint("virtual host "), ui.Name(r.VHost)}
	}
	if r.Queue != "" {
		queue = ui.QueueLink(ui.QueueURL(r.VHost, r.Queue), r.VHost, r.Queue)
	}
	if c := r.Change; c != nil {
		return h.Tr(at, h.Td(ui.Name(operate.Operation(c.Operation).Words())), h.Td(queue), h.Td(ui.Name(c.User)), h.Td(), h.Td(h.Class("faint"), ui.Name(c.Face)),
			h.Td(result(c.Result)), h.Td(ui.NameOr(c.Detail, nil)))
	}
	id := ui.NameOr(string(r.MessageID), ui.Faint("none"))
	var late g.Node = g.Group(nil)
	if r.Died() == audit.Expired {
		late = g.Group{g.Text(ui.Span(r.Lateness())), g.If(r.Held(), ui.Faint(" "+deadline.HeldLong))}
	}
	return h.Tr(at, h.Td(ui.Name(r.Died()+deadletters.ReasonWords(r.Died()))),
		h.Td(queue), h.Td(id), ui.Amount(late),
		h.Td(h.Class("faint"), ui.Name(r.Path)), h.Td(ui.Outcome(r.Outcome)), h.Td(deadLetterAt(r)))
}

// deadLetterAt links each queue that a dead letter went to with the dead letter in it: by its message-id, or if it has none by where and when it died.
func deadLetterAt(r *audit.Record) g.Node {
	if len(r.To) == 0 {
		return ui.Faint("nowhere")
	}
	if r.Outcome != "dead_lettered" && r.Outcome != "parked" {
		return ui.Names(r.To, nil)
	}
	filter := "any(deaths, " + deadletters.Equals(".queue", r.Queue) + ")"
	if len(r.MessageID) > 0 {
		filter = filter.And(deadletters.Equals("message_id", string(r.MessageID)))
	} else { // it died within the second that its history names, or its first death there was earlier
		died := time.UnixMilli(r.At).UTC().Truncate(time.Second)
		filter = filter.And(deadletters.Filter(fmt.Sprintf("died >= date(%q) && died < date(%q)", died.Add(-time.Second).Format(time.RFC3339), died.Add(2*time.Second).Format(time.RFC3339))))
	}
	return ui.Spaced(g.Map(r.To, func(queue string) g.Node { return ui.Link(letters.URL(r.VHost, queue, filter), ui.Name(queue)) })...)
}

// result shows what became of a change.
func result(of string) g.Node {
	if of == "done" {
		return ui.Class("tag", g.Text(of))
	}
	return ui.Class("tag warn", ui.Name(of))
}
