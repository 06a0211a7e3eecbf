package letters

import (
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/monitor/dashboard/internal/ui"
)

// The filter of a list: a form whose fields are those of the address.

// often and seldom are the fields of the form, except for the reason. Those of seldom are folded while they are empty.
var (
	often = []fieldOf{
		{"since", "Died since", "2h, or 2030-01-31 08:00", false}, {"before", "Died before", "30m, or 2030-01-31 09:00", false},
		{"json", "JSON value", "customer.id=7", true}, {"body", "Body contains", "", false},
	}
	seldom = []fieldOf{
		{"message_id", "Message id", "", false}, {"header", "Header", "tenant=globex", true}, {"property", "Property", "type=order.created", true},
		{"died_in", "Died in queue", "", false}, {"exchange", "Published to", "any exchange", false}, {"key", "Routing key", "", false},
		{"pattern", "Body matches (RE2)", `error \d+`, false}, {"run", "Replayed by (ID of the replay)", "", false},
	}
)

// fieldOf is a field of the form.
type fieldOf struct {
	name, label, placeholder string
	several                  bool // it may be filled in more than once
}

func (p *listPage) form() g.Node {
	open := false
	for _, f := range seldom {
		open = open || len(p.Query[f.name]) > 0
	}
	order := ""
	if p.Oldest {
		order = "oldest"
	}
	f := ui.NewForm(url.Values(p.Query))
	for name, err := range p.Wrong {
		f.Wrong(name, err.Error())
	}
	field := func(one fieldOf) g.Node { return one.draw(f) }
	return h.Section(h.Class("card"), h.Aria("label", "Filter"),
		p.saved(),
		ui.Search(listPath,
			ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.HiddenIf("order", order),
			f.Choose("Reason", "reason", "", ui.Or("any", deadletters.Reasons)...),
			g.Map(often, field),
			h.Details(h.Class("more"), g.If(open, g.Attr("open")), h.Summary(g.Text("More conditions")), h.Div(h.Class("filter"), g.Map(seldom, field))),
			h.Div(h.Class("go"), ui.Primary("Search"), g.If(len(p.Query) > 0, ui.Link(URL(p.VHost, p.Queue), g.Text("Show all"))))))
}

// draw is an input for each value, and for one more where there may be several.
func (one *fieldOf) draw(f *ui.Form) g.Node {
	attributes := []g.Node{h.MaxLength("1000"), g.If(one.placeholder != "", g.Group{h.Placeholder(one.placeholder), g.Attr("size", strconv.Itoa(max(20, len(one.placeholder)+2)))})}
	if one.several {
		return f.Fields(one.label, one.name, attributes...)
	}
	return f.Field(one.label, one.name, "", attributes...)
}

// saved lists the filters that were saved for the queue.
func (p *listPage) saved() g.Node {
	if len(p.Saved) == 0 {
		return nil
	}
	return h.Nav(h.Class("choices"), h.Aria("label", "Saved filters"), ui.Faint("Saved:"), g.Text(" "), ui.Spaced(g.Map(p.Saved, func(f operate.SavedFilter) g.Node {
		q, _ := deadletters.ParseQuery(f.Query) // it was checked when it was read
		is := ui.Link(FindURL(p.VHost, p.Queue, q), ui.Name(f.Name))
		if q.String() == p.Query.String() {
			is = h.B(h.Aria("current", "true"), ui.Name(f.Name))
		}
		return is
	})...))
}

// keep is the form that saves the filter in force, or deletes it if it is saved.
func (p *listPage) keep(s *ui.Info) g.Node {
	if len(p.Query) == 0 || len(p.Wrong) > 0 || !p.May.save {
		return nil
	}
	where := g.Group{ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue)}
	for _, f := range p.Saved {
		if q, _ := deadletters.ParseQuery(f.Query); q.String() == p.Query.String() {
			return s.Change(forgetPath, "doing", where, ui.Hidden("filter", f.Name),
				ui.Faint("Saved as "), ui.Name(f.Name), g.If(f.By != "", g.Group{ui.Faint(" by "), ui.Name(f.By)}), g.Text(" "), h.Button(h.Class("quiet"), g.Text("Delete filter")))
		}
	}
	return s.Change(savePath, "filter", where, queryFields(p.Query),
		ui.NewForm(nil).Field("Save this filter as", "as", "", h.Required(), h.MaxLength("100"), g.Attr("size", "16")), ui.Button("Save"))
}

// queryFields are the hidden fields of a query.
func queryFields(q deadletters.Query) (fields g.Group) {
	for _, name := range deadletters.QueryFields {
		for _, value := range q[name] {
			fields = append(fields, ui.Hidden(name, value))
		}
	}
	return fields
}

// queryFacts describe a query.
func queryFacts(q deadletters.Query) (facts g.Group) {
	labels := map[string]string{"reason": "Reason", "seq": "Selected"}
	for _, f := range append(often[:len(often):len(often)], seldom...) {
		labels[f.name] = f.label
	}
	for _, name := range deadletters.QueryFields {
		if name == "queue_id" || len(q[name]) == 0 {
			continue
		}
		if name == "seq" {
			facts = append(facts, ui.Fact("Selected", g.Textf("%d on the page", len(q[name]))))
			continue
		}
		facts = append(facts, ui.Fact(labels[name], ui.Names(q[name], nil)))
	}
	return facts
}
