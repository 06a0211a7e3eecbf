package topology

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"curfew/broker/operate"
	_ "curfew/broker/operate/admin" // whose operations have pages
	"curfew/cmd/internal/dashboard/internal/ui"
)

// page is one page: the operations that it shows, in the order in which they were defined.
type page struct {
	Pages
	path string
	ops  []*operate.Op
	list *operate.Op // whose rows' links lead here; nil: none
	form bool        // the page has nothing but one form
}

// Group has the pages of operations, with their forms.
func (p Pages) Group() ui.Group {
	group := ui.Group{Pages: map[string]ui.Page{}, Changes: map[string]ui.Handler{}}
	all := map[string]*page{}
	for _, op := range operate.All {
		for _, path := range []string{op.Page.On, op.Page.Also} {
			if path == "" {
				continue
			}
			if all[path] == nil {
				all[path] = &page{Pages: p, path: path}
			}
			one := all[path]
			one.ops = append(one.ops, op)
			if !op.IsList {
				group.Changes[postOf(op)] = func(w http.ResponseWriter, r *http.Request, v ui.Visitor) { one.change(w, r, v, op) }
			}
		}
	}
	for path, one := range all {
		title, tab := one.ops[0].Page.Title, one.ops[0].Page.Tab
		if one.list = opening(path); one.list != nil {
			title, tab = ui.Sentence(one.list.Noun), one.list.Page.Tab
		}
		one.form = len(one.ops) == 1 && !one.ops[0].IsList && one.list == nil
		group.Pages[path] = ui.Page{Title: title, Tab: tab, Live: one.ops[0].Page.Live, Build: one.build}
	}
	return group
}

// opening is the list whose rows' links lead to a page; nil: there is none.
func opening(path string) *operate.Op {
	for _, op := range operate.All {
		if op.Page.Opens == path {
			return op
		}
	}
	return nil
}

func postOf(op *operate.Op) string { return cmp.Or(op.Page.Post, op.Page.On) }

// card is one operation on a page.
type card struct {
	op     *operate.Op
	rows   []any // of a list
	all    int   // before the search
	cut    ui.Cut
	more   string         // that there may be more than all; "": these are all
	form   *ui.Form       // of any other operation
	effect operate.Effect // of a dry run, or of a form that stays; nil: there was none
	result any            // of a form that stays
	row    any            // that a dangerous operation is about, or a form that says so
	looks  bool           // the visitor may see the row, and no more
}

// view is what a page shows.
type view struct {
	*page
	cards  []*card
	facts  any      // the row that the page is about; nil: it is about none
	keys   []string // names of form fields that the page has fixed
	values url.Values
	vhosts []string
	done   string
	actor  operate.Actor
}

func (p *page) build(r *http.Request, v ui.Visitor) (ui.View, error) {
	c, err := p.content(r, v, r.URL.Query(), nil)
	return c.draw, err
}

// content gathers what the page shows for a query. sent is the card of a form that was sent and is shown again; nil: none was.
func (p *page) content(r *http.Request, v ui.Visitor, q url.Values, sent *card) (*view, error) {
	c := &view{page: p, values: q, vhosts: p.Operations.VHostNames(v.Actor), actor: v.Actor}
	if done := operate.Defined[operate.Operation(q.Get("done"))]; done != nil {
		c.done = done.Page.Done
	}
	if p.list != nil {
		rows, err := p.rows(r, &c.actor, p.list, q)
		if err != nil {
			return nil, err
		}
		if c.facts = rowOf(p.list, p.list, rows, q); c.facts == nil {
			return nil, operate.ErrNotFound
		}
		for _, k := range keysOf(p.list, p.list) {
			c.keys = append(c.keys, k.column.Form)
		}
	}
	for i, op := range p.ops {
		one := &card{op: op}
		switch {
		case sent != nil && sent.op == op:
			one = sent
		case op.IsList:
			rows, err := p.rows(r, &c.actor, op, q)
			if err != nil {
				return nil, err
			}
			field := "page"
			if i > 0 {
				field = string(op.Name)
			}
			without := url.Values{}
			for name, list := range q {
				if name != "done" {
					without[name] = list
				}
			}
			one.all = len(rows)
			if count := op.Field("count"); count != nil && int64(one.all) >= count.Max {
				one.more = "These are the first " + ui.Number(one.all) + ", the most that are listed. If there are more, they show as these leave."
			}
			if op.Page.Find != "" {
				rows = slices.DeleteFunc(rows, func(row any) bool {
					return !slices.ContainsFunc(op.Columns, func(f operate.Field) bool {
						return f.On("page") && (f.Kind == operate.Text || f.Kind == operate.Traffic) && strings.Contains(strings.ToLower(operate.Plain(f.Of(row))), strings.ToLower(q.Get("q")))
					})
				})
			}
			one.rows, one.cut = ui.CutOf(rows, p.path, without, field)
		case p.form || c.actor.Has(op.Role):
			if err := p.begin(one, &c.actor, q); err != nil {
				return nil, err
			}
		default:
			continue
		}
		if op.Page.Danger || op.Page.About {
			if err := p.about(r, one, &c.actor, q); err != nil {
				return nil, err
			}
		}
		c.cards = append(c.cards, one)
	}
	return c, nil
}

// rows are the rows of a list that a query is about.
func (p Pages) rows(r *http.Request, a *operate.Actor, list *operate.Op, q url.Values) ([]any, error) {
	values := map[string]any{}
	if count := list.Field("count"); count != nil {
		values["count"] = count.Max
	}
	for _, f := range list.Fields {
		if f.On("page") && q.Has(f.Form) {
			values[f.Name] = q.Get(f.Form)
		}
	}
	request, err := list.Decode(values)
	if err != nil {
		return nil, err
	}
	result, _, err := p.Operations.Do(r.Context(), *a, list, request, nil)
	return operate.Rows(result), err
}

// rowOf is the row of a list that the fields of op in a query name; nil: there is none.
func rowOf(op, list *operate.Op, rows []any, q url.Values) any {
	for _, row := range rows {
		if !slices.ContainsFunc(keysOf(op, list), func(k rowKey) bool { return operate.Plain(k.column.Of(row)) != q.Get(k.column.Form) }) {
			return row
		}
	}
	return nil
}

// rowKey is a field of an operation that says which row of a list it is about.
type rowKey struct{ column, field operate.Field }

// keysOf are the texts that an operation's request and the rows of a list have in common.
func keysOf(op, list *operate.Op) (keys []rowKey) {
	for _, column := range list.Columns {
		for _, f := range op.Fields {
			if f.Form == column.Form && f.Kind == operate.Text && f.OneOf == nil && !f.Seen {
				keys = append(keys, rowKey{column, f})
			}
		}
	}
	return keys
}

// begin fills the form of an operation: with what it would replace, or else the query, or else what an empty form has.
func (p Pages) begin(one *card, a *operate.Actor, q url.Values) error {
	op, values, query := one.op, url.Values{}, map[string]any{}
	for _, f := range op.Fields {
		if q.Has(f.Form) {
			values[f.Form] = q[f.Form]
			if f.Kind == operate.Text {
				query[f.Name] = q.Get(f.Form)
			}
		} else {
			values.Set(f.Form, f.Start)
		}
	}
	one.form = ui.NewForm(values)
	request, err := op.Decode(query)
	if err != nil {
		return err
	}
	if op.Page.Stays && !op.Page.May(p.Operations, *a, request) {
		return operate.ErrNotYours
	}
	if vhost := op.Field("vhost"); vhost != nil && !op.AnyVHost && q.Get(vhost.Form) == "" {
		return a.Require(op.Role)
	}
	current, version, err := p.Operations.Now(*a, op, request)
	if op.Page.About && operate.Refused(err) {
		one.looks = true
		return nil
	}
	if err != nil {
		return err
	}
	if current == nil && op.Page.Begin != "" {
		version = "" // the form makes something new, whatever there is under a name that a link has
	}
	one.form.Values.Set("was", version)
	if current == nil {
		return nil
	}
	for _, f := range op.Fields {
		if f.On("page") && f.Kind != operate.Password && !f.Own {
			one.form.Values[f.Form] = textsOf(&f, current)
		}
		if f.Optional {
			one.form.Values["was-"+f.Form] = one.form.Values[f.Form]
		}
	}
	return nil
}

// about finds the row that a dangerous operation is about.
func (p Pages) about(r *http.Request, one *card, a *operate.Actor, q url.Values) error {
	if err := a.Require(one.op.Role); err != nil {
		return err
	}
	list := operate.Defined[one.op.Page.Rows]
	rows, err := p.rows(r, a, list, q)
	if err != nil {
		return err
	}
	if one.row = rowOf(one.op, list, rows, q); one.row == nil {
		return operate.ErrNotFound
	}
	if may := one.op.Page.May; may != nil && !one.op.Page.Stays && !may(p.Operations, *a, one.row) {
		return operate.ErrNotYours
	}
	return nil
}

// change does an operation with the form that was sent.
func (p *page) change(w http.ResponseWriter, r *http.Request, v ui.Visitor, op *operate.Op) {
	one := &card{op: op, form: ui.NewForm(r.PostForm)}
	f := one.form
	values := p.read(op, f)
	confirmed := true
	if op.Page.Typed != "" {
		typed := f.Need(op.Page.Typed)
		confirmed = typed == "0" || f.Confirmed(typed)
	}
	var err error
	if f.OK() && confirmed {
		err = p.do(r, v, one, values)
	}
	if err == nil && f.OK() && one.effect == nil {
		http.Redirect(w, r, afterOperation(op, f), http.StatusSeeOther) //nolint:gosec // the path is a page of this site
		return
	}
	f.Values.Del("confirm")
	c, gone := p.content(r, v, f.Values, one)
	if gone != nil {
		p.Site.Refuse(w, r, cmp.Or(err, gone))
		return
	}
	if one.effect != nil && err == nil {
		p.Site.Show(w, r, http.StatusOK, v, p.path, c.draw)
		return
	}
	f.Again(p.Site, w, r, v, p.path, err, c.draw)
}

// do does the operation. If the form is for a dry run, the card has its effect then.
func (p *page) do(r *http.Request, v ui.Visitor, one *card, values map[string]any) error {
	op, f := one.op, one.form
	tries := op.Page.DryRun && (f.Get("do") == "" || f.Get("do") == "try")
	for _, field := range op.Fields {
		if field.Own {
			values[field.Name] = field.Name == "dry_run" && tries || field.Button != "" && f.Get("do") == field.Name
		}
	}
	var seen *string
	if was := f.Get("was"); !op.Page.Danger {
		seen = &was
	}
	var result any
	request, err := op.Decode(values)
	if err == nil {
		result, _, err = p.Operations.Do(r.Context(), v.Actor, op, request, seen)
	}
	if bad, is := errors.AsType[*operate.Wrong](err); is && op.Field(bad.Field) != nil {
		f.Wrong(op.Field(bad.Field).Form, ui.Sentence(bad.Error())+".")
		return nil
	}
	for _, row := range operate.Rows(result) {
		for _, column := range op.Columns { // for the path of the next page
			f.Values.Set("result-"+column.Form, operate.Plain(column.Of(row)))
		}
	}
	if (tries || op.Page.Stays) && err == nil {
		one.effect, _ = result.(operate.Effect)
		one.result = result
	}
	return err
}

// read reads the values of the request's fields from a form.
func (p *page) read(op *operate.Op, f *ui.Form) map[string]any {
	values := map[string]any{}
	for _, field := range op.Fields {
		if !field.On("page") || field.Own {
			continue
		}
		text := f.Get(field.Form)
		if field.Optional && text == f.Get("was-"+field.Form) {
			continue // somebody else may have changed it
		}
		switch {
		case text == "" && field.Empty != "":
			values[field.Name] = field.Empty
		case field.Filled && text == "":
			f.Need(field.Form)
		case field.Kind == operate.Flag:
			values[field.Name] = text != ""
		case field.Kind == operate.List && field.OneOf != nil:
			values[field.Name] = append([]string{}, f.Values[field.Form]...)
		case field.Kind == operate.Lines: // browsers end each line with CR LF
			values[field.Name] = strings.ReplaceAll(text, "\r\n", "\n")
		case slices.Contains([]operate.Kind{operate.Object, operate.Span, operate.Number, operate.Instant}, field.Kind):
			if v := f.Value(field.Form, field.Kind); v != nil {
				values[field.Name] = v
			}
		default:
			values[field.Name] = text
		}
	}
	return values
}

// afterOperation is the page to go to when an operation is done.
func afterOperation(op *operate.Op, f *ui.Form) string {
	path := cmp.Or(op.Page.Next, op.Page.Parent, op.Page.On)
	if strings.ContainsAny(path, "{?") {
		return filled(path, slices.Concat(op.Fields, op.Columns), func(field operate.Field) (name, value string) {
			return field.Form, cmp.Or(f.Get(field.Form), f.Get("result-"+field.Form))
		})
	}
	return ui.At(path, append(keysIn(path, f.Values), "done", string(op.Name))...)
}

// keysIn are the names and values by which a query or a form names the row that a page is about; nil: it is about none.
func keysIn(path string, values url.Values) (pairs []string) {
	if list := opening(path); list != nil {
		for _, k := range keysOf(list, list) {
			pairs = append(pairs, k.column.Form, values.Get(k.column.Form))
		}
	}
	return pairs
}

// filled is a path with values for the names in braces.
func filled(to string, fields []operate.Field, of func(operate.Field) (name, value string)) string {
	var names, pairs []string
	for _, field := range fields {
		name, value := of(field)
		names = append(names, "{"+name+"}", value)
	}
	values := strings.NewReplacer(names...)
	path, query, _ := strings.Cut(to, "?")
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		pairs = append(pairs, name, values.Replace(value))
	}
	return ui.At(values.Replace(path), pairs...)
}
