package topology

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// textsOf are the values of a field of a form.
func textsOf(f *operate.Field, request any) []string {
	switch v := f.Of(request).(type) {
	case []string:
		return v
	case nil:
		return []string{f.Start}
	case bool:
		return []string{map[bool]string{true: "1"}[v]}
	default:
		if reflect.ValueOf(v).Kind() == reflect.Map {
			var text bytes.Buffer
			_ = json.Indent(&text, []byte(operate.Plain(v)), "", "  ") // it is JSON
			return []string{text.String()}
		}
		return []string{operate.Plain(v)}
	}
}

// draw shows what was gathered.
func (c *view) draw(s *ui.Info) ui.Drawing {
	if c.form {
		return c.drawForm(s, c.cards[0])
	}
	var top, live g.Group
	switch {
	case c.list != nil:
		top = g.Group{
			h.P(h.Class("crumbs"), ui.Link(c.list.Page.On, g.Text(c.list.Page.Title))), h.H1(valueNode(&c.list.Columns[0], c.facts)), ui.Done(c.done),
			c.links(c.list, c.facts, "Actions"),
		}
		live = append(live, ui.Card("about", "About", nil, factsOf(c.list, c.facts, []string{c.list.Columns[0].Form})))
	default:
		top = g.Group{h.H1(g.Text(c.ops[0].Page.Title)), ui.Lists(s, c.path), ui.Done(c.done), c.begins()}
		if find := c.ops[0].Page.Find; find != "" && c.cards[0].all > 0 {
			top = append(top, ui.Search(c.path, ui.NewForm(c.values).Field("Search", "q", "", h.Type("search"), h.Placeholder(find)), ui.Button("Search")))
		}
	}
	for _, one := range c.cards {
		body := c.table(one)
		if !one.op.IsList {
			body = c.sheet(s, one)
		}
		live = append(live, ui.Card(string(one.op.Name), one.op.Page.Title, nil, body, one.cut.DrawIfCut(one.op.Noun), g.If(one.more != "", h.P(h.Class("note"), g.Text(one.more)))))
	}
	return ui.Drawing{Top: top, Live: live}
}

// begins are the links to the forms that make something new on the page, or why there are none.
func (c *view) begins() g.Node {
	var links []g.Node
	var refused error
	for _, op := range operate.All {
		list := operate.Defined[op.Page.Rows]
		if op.Page.Begin == "" || list == nil || list.Page.On != c.path {
			continue
		}
		if err := c.actor.Require(op.Role); err != nil {
			refused = err
			continue
		}
		if c.mayChange(op, nil, nil) {
			links = append(links, ui.Action(op.Page.On, op.Page.Begin))
		}
	}
	if links == nil && refused != nil {
		links = append(links, ui.Faint(ui.Sentence(refused.Error())+"."))
	}
	return ui.Menu("Actions", links...)
}

// links are the links to what can be done with a row of a list.
func (c *view) links(list *operate.Op, row any, label string) g.Node {
	var links []g.Node
	if c.mayChange(list, list, row) {
		for _, one := range list.Page.More {
			links = append(links, ui.Action(atRow(one.To, list, row), one.Text))
		}
	}
	for _, op := range operate.All {
		if op.Page.Rows != list.Name || op.Page.Link == "" || !c.actor.Has(op.Role) || !c.mayChange(op, list, row) || op.Page.Only != nil && !op.Page.Only(row) {
			continue
		}
		to := pageOf(op.Page.On, op, list, row)
		if op.Page.Danger {
			links = append(links, ui.DangerLink(to, op.Page.Link))
		} else {
			links = append(links, ui.Action(to, op.Page.Link))
		}
	}
	if links == nil {
		return nil
	}
	return ui.Menu(label, links...)
}

// mayChange reports whether the visitor may do an operation, other than look, in the virtual host of a row, or for no row in some virtual host.
func (c *view) mayChange(op, list *operate.Op, row any) bool {
	if row != nil && op.Page.May != nil && !op.Page.May(c.Operations, c.actor, row) {
		return false
	}
	if op.Role == operate.Administrator || op.Field("vhost") == nil {
		return true
	}
	if row == nil {
		return operate.MayChange(c.Operations, c.actor, "")
	}
	at := map[string]string{}
	for _, column := range list.Columns {
		at[column.Name] = operate.Plain(column.Of(row))
	}
	if at["vhost"] == "" {
		return true
	}
	return operate.MayChange(c.Operations, c.actor, at["vhost"])
}

// pageOf is the page at path for an operation on a row of a list.
func pageOf(path string, op, list *operate.Op, row any) string {
	var pairs []string
	for _, k := range keysOf(op, list) {
		pairs = append(pairs, k.column.Form, operate.Plain(k.column.Of(row)))
	}
	return ui.At(path, pairs...)
}

// table is the table of a list.
func (c *view) table(one *card) g.Node {
	switch {
	case len(one.rows) == 0 && one.all > 0:
		return ui.Empty(g.Text("Nothing matches. "), ui.Link(c.path, g.Text("Show all")), g.Text("."))
	case len(one.rows) == 0 && one.op.Page.Empty != "":
		return ui.Empty(g.Text(one.op.Page.Empty))
	}
	var heads []string
	columns := slices.DeleteFunc(one.op.Shown("page", one.rows), func(f operate.Field) bool { return slices.Contains(c.keys, f.Form) || !f.On("list") })
	for _, f := range columns {
		if slices.Contains(numbers, f.Kind) {
			heads = append(heads, "#"+f.Label)
		} else {
			heads = append(heads, f.Label)
		}
	}
	return ui.Table(append(heads, ""), g.Map(one.rows, func(row any) g.Node {
		var cells g.Group
		for i, f := range columns {
			cell := cellOf(one.op, &f, row)
			if i == 0 && one.op.Page.Opens != "" {
				cell = ui.Link(pageOf(one.op.Page.Opens, one.op, one.op, row), cell)
			}
			if slices.Contains(numbers, f.Kind) {
				cells = append(cells, ui.Amount(cell))
			} else {
				cells = append(cells, h.Td(cell))
			}
		}
		actions := g.Node(nil)
		if one.op.Page.Opens == "" {
			actions = c.links(one.op, row, "Actions on "+nameOf(columns, row))
		}
		return h.Tr(cells, h.Td(actions))
	}))
}

// tableOf is the table of a list on a page of something else, without some columns.
func tableOf(o *operate.Operations, by operate.Actor, list *operate.Op, rows []any, without ...string) g.Node {
	return (&view{page: &page{Pages: Pages{Operations: o}}, actor: by, keys: without}).table(&card{op: list, rows: rows})
}

// numbers are the kinds that have columns of numbers.
var numbers = []operate.Kind{operate.Number, operate.Bad, operate.PerTime, operate.Bytes}

// nameOf is what a row begins with: the texts in its first columns.
func nameOf(columns []operate.Field, row any) string {
	var names []string
	for _, f := range columns {
		if f.Kind != operate.Text || len(names) == 2 {
			break
		}
		names = append(names, ui.Visible(operate.Plain(f.Of(row))))
	}
	return strings.Join(names, " ")
}

// factsOf are the columns of a row, one below the other.
func factsOf(list *operate.Op, row any, without []string) g.Node {
	var facts []g.Node
	for _, f := range list.Shown("page", []any{row}) {
		if !slices.Contains(without, f.Form) {
			facts = append(facts, ui.Fact(f.Label, cellOf(list, &f, row)))
		}
	}
	return ui.Facts(facts...)
}

// cellOf shows a value of a row, with a link if it has one.
func cellOf(list *operate.Op, f *operate.Field, row any) g.Node {
	if f.To == "" {
		return valueNode(f, row)
	}
	return ui.Link(atRow(f.To, list, row), valueNode(f, row))
}

// atRow is a path with values of a row.
func atRow(path string, list *operate.Op, row any) string {
	return filled(path, list.Columns, func(column operate.Field) (name, value string) { return column.Name, operate.Plain(column.Of(row)) })
}

// valueNode shows a value of a row.
func valueNode(f *operate.Field, row any) g.Node {
	v := f.Of(row)
	if i := slices.Index(f.OneOf, operate.Plain(v)); i >= 0 && i < len(f.Texts) && f.Texts[i] != "" {
		return g.Text(f.Texts[i])
	}
	switch {
	case operate.Plain(v) == "" || operate.Plain(v) == "{}":
		return ui.Faint(f.Faint)
	case f.Kind == operate.Pattern:
		return ui.Code(operate.Plain(v))
	case slices.Contains(numbers, f.Kind) && f.Faint != "" && reflect.ValueOf(v).IsZero():
		return ui.Faint(f.Faint)
	case f.Kind == operate.Number:
		n, _ := strconv.Atoi(operate.Plain(v))
		return ui.OrFaint(n)
	case f.Kind == operate.Bad && v != 0:
		return ui.Class("bad", ui.Bold(ui.Number(v.(int))))
	case f.Kind == operate.Bad:
		return ui.Faint("0")
	case f.Kind == operate.PerTime:
		return ui.Rate(v.(operate.Rate))
	case f.Kind == operate.Bytes:
		return g.Text(ui.Bytes(v.(int64)))
	case f.Kind == operate.Elapsed && v == time.Duration(0):
		return ui.Faint(cmp.Or(f.Faint, "–"))
	case f.Kind == operate.Elapsed:
		return g.Text(ui.Span(v.(time.Duration)))
	case f.Kind == operate.Ago:
		return ui.Ago(time.UnixMilli(v.(int64)))
	case f.Kind == operate.Instant:
		at, is := v.(time.Time)
		if ms, _ := v.(int64); !is && ms != 0 {
			at = time.UnixMilli(ms)
		}
		return ui.Either(at.IsZero(), ui.Faint("–"), h.Time(g.Text(ui.Instant(at))))
	case f.Kind == operate.Traffic:
		why := map[string]string{"flow": "it publishes faster than consumers take", "blocked": "it publishes, and memory or disk space is used up", "running": "nothing holds it up"}
		class := map[string]string{"flow": "tag warn", "blocked": "tag bad"}[v.(string)]
		return h.Span(h.Class(cmp.Or(class, "tag")), h.Title(why[v.(string)]), g.Text(v.(string)))
	case f.Kind == operate.Progress:
		class := map[string]string{"running": "tag warn", "done": "tag good"}[operate.Plain(v)]
		return ui.Class(cmp.Or(class, "tag bad"), g.Text(operate.Plain(v)))
	case f.Kind == operate.Share && v.(int) < 0:
		return h.Progress(h.Aria("label", "not known"))
	case f.Kind == operate.Share:
		share := operate.Plain(v)
		return h.Progress(h.Max("100"), h.Value(share), h.Aria("label", share+" of 100"), g.Text(share+" %"))
	case f.Kind == operate.List:
		return ui.Names(v.([]string), nil)
	case f.Kind == operate.Object && f.Name == "definition":
		return lines(ui.Settings(entries(v)))
	case f.Kind == operate.Object:
		return lines(ui.Fields(entries(v)))
	case f.Kind == operate.Features:
		p := v.(operate.Properties)
		return lines(append(ui.Properties(&p), ui.Fields(p.Headers)...))
	case f.Kind == operate.Content:
		return ui.MessageBody(f.Label, v.(operate.Body))
	}
	return ui.Name(operate.Plain(v))
}

// lines are names with values, one below the other.
func lines(pairs []ui.Pair) (all g.Group) {
	for i, one := range pairs {
		all = append(all, g.If(i > 0, h.Br()), ui.Name(one.Name), g.Text(" = "), ui.Bold(ui.Visible(one.Value)))
	}
	return all
}

// hidden are the fields that say which row a form is about, and how it was; last is the last of the names.
func (c *view) hidden(one *card) (fields g.Group, names []string, last string) {
	list := operate.Defined[one.op.Page.Rows]
	for _, k := range keysOf(one.op, list) {
		last = c.values.Get(k.field.Form)
		fields, names = append(fields, ui.Hidden(k.field.Form, last)), append(names, k.field.Form)
	}
	for _, f := range one.op.Fields {
		for _, column := range list.Columns {
			if f.Seen && column.Form == f.Form {
				if one.effect == nil || one.form.Get(f.Form) == "" { // what a dry run said is of the row as it was then
					one.form.Values.Set(f.Form, operate.Plain(column.Of(one.row)))
				}
				fields, names = append(fields, ui.Hidden(f.Form, one.form.Get(f.Form))), append(names, f.Form)
			}
		}
	}
	return fields, names, last
}

// drawForm is a page with one form.
func (c *view) drawForm(s *ui.Info, one *card) ui.Drawing {
	about := one.op.Page
	back := about.Parent
	crumbs := h.P(h.Class("crumbs"), ui.Link(back, g.Text(about.Up)))
	if list := opening(about.Parent); list != nil {
		back = ui.At(about.Parent, keysIn(about.Parent, c.values)...)
		crumbs = h.P(h.Class("crumbs"), ui.Link(list.Page.On, g.Text(list.Page.Title)), g.Text(" / "), ui.Link(back, ui.Name(c.values.Get(list.Columns[0].Form))))
	} else if about.Parent == "/queue" {
		vhost, name := c.values.Get("vhost"), c.values.Get("name")
		back, crumbs = ui.QueueURL(vhost, name), ui.QueueCrumbs(vhost, name)
	}
	cancel := ui.Link(back, g.Text("Cancel"))
	title := h.H1(g.Text(about.Title))
	var body g.Node
	switch {
	case about.Danger:
		hidden, keys, last := c.hidden(one)
		for _, f := range one.op.Fields {
			if f.On("page") && !slices.Contains(keys, f.Form) {
				hidden = append(hidden, c.field(one.form, &f))
			}
		}
		if name := c.values.Get("name"); name != "" {
			last = name
		}
		if about.Typed != "" && one.form.Get(about.Typed) != "0" {
			hidden = append(hidden, one.form.Typed(one.form.Get(about.Typed)))
		}
		title = h.H1(g.Text(about.Title+" "), ui.Name(last), g.Text("?"))
		body = g.Group{factsOf(operate.Defined[about.Rows], one.row, nil), h.P(g.Text(about.Then)), s.Sheet(postOf(one.op), one.form, hidden, ui.Button(cmp.Or(about.Button, about.Title), h.Class("danger")), cancel)}
	case one.looks:
		body = ui.Empty(g.Text("This user may look at it, and may not change it."))
	default:
		body = c.sheet(s, one, cancel)
	}
	if about.About {
		body = g.Group{factsOf(operate.Defined[about.Rows], one.row, nil), g.If(about.Then != "", h.P(g.Text(about.Then))), body}
	}
	if rows := operate.Rows(one.result); about.Stays && len(rows) > 0 && len(one.op.Columns) > 0 {
		body = g.Group{factsOf(one.op, rows[0], nil), body}
	}
	return ui.Drawing{Live: g.Group{crumbs, title, h.Section(h.Class("card"), body)}}
}

// sheet is the form of an operation.
func (c *view) sheet(s *ui.Info, one *card, others ...g.Node) g.Node {
	about := one.op.Page
	buttons := []g.Node{ui.Button(about.Button)}
	if len(others) > 0 {
		buttons[0] = ui.Button(about.Button, h.Class("primary"))
	}
	fields, keys := g.Group{ui.HiddenIf("was", one.form.Get("was"))}, []string(nil)
	if about.About {
		var hidden g.Group
		hidden, keys, _ = c.hidden(one)
		fields = append(fields, hidden)
	}
	if about.DryRun {
		buttons[0] = ui.Button("Dry run…", h.Class("primary"))
	}
	var folded g.Group
	more := ""
	for _, f := range one.op.Fields {
		switch {
		case !f.On("page") || f.Own || slices.Contains(keys, f.Form):
		case f.More != "":
			more, folded = f.More, append(folded, c.field(one.form, &f))
		default:
			fields = append(fields, c.field(one.form, &f))
		}
		if f.Optional {
			fields = append(fields, ui.HiddenIf("was-"+f.Form, one.form.Get("was-"+f.Form)))
		}
	}
	if folded != nil {
		fields = append(fields, h.Details(g.If(!one.form.OK(), g.Attr("open")), h.Summary(g.Text(more)), h.Div(h.Class("sheet"), folded)))
	}
	if one.effect != nil {
		sentences, harm, more := one.effect.Words()
		class, primary := "good", "primary"
		if harm {
			class, primary = "bad", "danger"
		}
		fields = append(fields, h.Div(h.Class("whole verdict "+class), h.Role("status"), g.Map(sentences, func(text string) g.Node { return h.P(g.Text(ui.Visible(text))) })))
		if about.Stays {
			return s.Sheet(postOf(one.op), one.form, fields, append(buttons, others...)...)
		}
		buttons = append([]g.Node{ui.Button(about.Button, h.Class(primary), h.Name("do"), h.Value("set"))}, others...)
		for _, f := range one.op.Fields {
			if f.Button != "" && more {
				buttons = slices.Insert(buttons, 1, ui.Button(f.Button, h.Class("danger"), h.Name("do"), h.Value(f.Name)))
			}
		}
		return s.Sheet(postOf(one.op), one.form, fields, slices.Insert(buttons, len(buttons)-len(others), ui.Button("Dry run again", h.Name("do"), h.Value("try")))...)
	}
	return s.Sheet(postOf(one.op), one.form, fields, append(buttons, others...)...)
}

// field is a field of a form.
func (c *view) field(f *ui.Form, of *operate.Field) g.Node {
	var attributes []g.Node
	if of.Filled {
		attributes = append(attributes, h.Required())
	}
	hint := of.Doc
	switch {
	case slices.Contains(c.keys, of.Form):
		// a field of text for password managers
		return h.Input(h.Name(of.Form), h.Value(f.Get(of.Form)), h.AutoComplete("username"), h.ReadOnly(), g.Attr("hidden"))
	case of.Form == "vhost":
		return f.Choose("Virtual host", "vhost", "", ui.Or("", c.vhosts)...)
	case of.Kind == operate.Password:
		return f.Password(of.Label, of.Form, "new-password", hint)
	case of.Kind == operate.Object:
		return f.Area(of.Label, of.Form, hint, 5)
	case of.Kind == operate.Lines:
		return f.Area(of.Label, of.Form, hint, 8)
	case of.Kind == operate.Instant:
		attributes = append(attributes, h.Type("datetime-local"), h.Step("1"))
	case of.Kind == operate.List && of.OneOf != nil:
		return boxes(f, of)
	case of.OneOf != nil:
		var options []string
		if of.Start == "" && of.Default == "" && !of.Filled {
			options = append(options, "", of.Faint)
		}
		for i, one := range of.OneOf {
			text := strings.ReplaceAll(one, "_", " ")
			if i < len(of.Texts) && of.Texts[i] != "" {
				text = of.Texts[i]
			} else if len(of.Texts) > 1 {
				continue
			}
			options = append(options, one, text)
		}
		return f.Choose(of.Label, of.Form, hint, options...)
	case of.Kind == operate.Flag:
		return f.Check(of.Label, of.Form)
	case of.Kind == operate.Number:
		attributes = append(attributes, g.Attr("inputmode", "numeric"))
	case of.Name == "user": // for password managers
		attributes = append(attributes, h.AutoComplete("username"), h.MaxLength("255"))
	case of.Kind == operate.Text:
		attributes = append(attributes, h.MaxLength("255"))
	}
	return f.Field(of.Label, of.Form, hint, attributes...)
}

// boxes are a box for each value that is known of a list. Others stay as they are.
func boxes(f *ui.Form, of *operate.Field) g.Node {
	chosen := f.Values[of.Form]
	var list, others g.Group
	for i, one := range of.OneOf {
		list = append(list, h.Label(h.Class("inline"), h.Input(h.Type("checkbox"), h.Name(of.Form), h.Value(one), g.If(slices.Contains(chosen, one), h.Checked())), h.Span(g.Text(one+": "+of.Texts[i]))))
	}
	for _, one := range chosen {
		if !slices.Contains(of.OneOf, one) && one != "" {
			others = append(others, ui.Hidden(of.Form, one))
		}
	}
	return g.Group{h.FieldSet(h.Legend(g.Text(of.Label)), list), others}
}

// entries are those of a map whose keys are texts.
func entries(of any) map[string]any {
	all := map[string]any{}
	for name, v := range reflect.ValueOf(of).Seq2() {
		if all[name.String()] = v.Interface(); v.CanInt() {
			all[name.String()] = v.Int()
		}
	}
	return all
}
