package letters

import (
	"net/http"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// form is the field of the filter. What it proposes narrows the filter that is in force.
func (p *listPage) form() g.Node {
	f, order := ui.NewForm(nil, "filter", string(p.Filter)), ""
	if p.Wrong != nil {
		f.Wrong("filter", p.Wrong.Error())
	}
	if p.Oldest {
		order = "oldest"
	}
	return h.Section(h.Class("card"), h.Aria("label", "Filter"),
		p.saved(),
		ui.Search(listPath,
			ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.HiddenIf("order", order),
			f.Field("Filter", "filter", "", h.MaxLength("16000"), g.Attr("size", "80"), g.Attr("spellcheck", "false"), g.Attr("list", "filters"),
				h.Placeholder(`reason == "expired" && died > ago("2h") && json.customer.id == 7`)),
			h.DataList(h.ID("filters"), g.Map(deadletters.Fields, func(field deadletters.Field) g.Node {
				filter := deadletters.Filter(field.Example)
				if p.Wrong == nil {
					filter = p.Filter.And(filter)
				}
				return h.Option(h.Value(string(filter)), g.Text(field.Text))
			})),
			h.Div(h.Class("go"), ui.Button("Search", h.Class("primary")), g.If(p.Filter != "", ui.Link(URL(p.VHost, p.Queue, ""), g.Text("Show all"))))),
		h.Details(h.Class("more"), h.Summary(g.Text("Words for filters")), words()))
}

// words is the table of what a filter may have.
func words() g.Node {
	row := func(w deadletters.Word) g.Node {
		return h.Tr(h.Td(ui.Code(w.Name)), h.Td(g.Text(w.Kind)), h.Td(g.Text(w.Text)), h.Td(ui.Code(w.Example)))
	}
	return ui.Table([]string{"Word", "Is", "Meaning", "Example"},
		g.Group{g.Map(deadletters.Fields, func(f deadletters.Field) g.Node { return row(f.Word) }), g.Map(deadletters.Functions, row), g.Map(deadletters.Operators, row)})
}

// saved lists the filters that were saved for the queue.
func (p *listPage) saved() g.Node {
	if len(p.Saved) == 0 {
		return nil
	}
	return h.Nav(h.Class("choices"), h.Aria("label", "Saved filters"), ui.Faint("Saved:"), g.Text(" "), ui.Spaced(g.Map(p.Saved, func(f operate.SavedFilter) g.Node {
		if f.Filter == p.Filter {
			return h.B(h.Aria("current", "true"), ui.Name(f.Name))
		}
		return ui.Link(URL(p.VHost, p.Queue, f.Filter), ui.Name(f.Name))
	})...))
}

// keep is the form that saves the filter in force, or deletes it if it is saved.
func (p *listPage) keep(s *ui.Info) g.Node {
	if p.Filter == "" || p.Wrong != nil || !p.May.save {
		return nil
	}
	where := g.Group{ui.Hidden("vhost", p.VHost), ui.Hidden("name", p.Queue), ui.Hidden("filter", string(p.Filter))}
	for _, f := range p.Saved {
		if f.Filter == p.Filter {
			return s.Change(forgetPath, "doing", where, ui.Hidden("as", f.Name),
				ui.Faint("Saved as "), ui.Name(f.Name), g.If(f.By != "", g.Group{ui.Faint(" by "), ui.Name(f.By)}), g.Text(" "), h.Button(h.Class("quiet"), g.Text("Delete filter")))
		}
	}
	return s.Change(savePath, "filter", where, ui.NewForm(nil).Field("Save this filter as", "as", "", h.Required(), h.MaxLength("100"), g.Attr("size", "16")), ui.Button("Save"))
}

// changeFilter saves the filter of a list under a name, or deletes a saved one, and redirects to the list, which says it.
func (d Pages) changeFilter(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	c, name, said := chosenBy(r.PostForm), r.PostForm.Get("as"), "filter_saved"
	var err error
	if r.URL.Path == forgetPath {
		said = "filter_deleted"
		_, err = operate.DeleteFilter.Do(r.Context(), d.Operations, v.Actor, operate.FilterName{VHost: c.VHost, Queue: c.Queue, Name: name})
	} else {
		filter := operate.FilterToSave{VHost: c.VHost, Queue: c.Queue, Name: strings.TrimSpace(name), Filter: c.Filter}
		_, err = operate.SaveFilter.Do(r.Context(), d.Operations, v.Actor, filter)
	}
	if err != nil {
		d.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, URL(c.VHost, c.Queue, c.Filter)+"&said="+said, http.StatusSeeOther)
}
