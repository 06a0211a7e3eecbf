package dashboard

import (
	"slices"
	"strings"

	"curfew/monitor/dashboard/internal/format"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// The elements that the pages share. gomponents escapes texts and the values of attributes; nothing
// in this package writes markup itself.

// name shows a name that somebody chose.
func name(text string) g.Node { return g.Text(format.Visible(text)) }

// names lists names, or shows otherwise if there are none.
func names(list []string, otherwise g.Node) g.Node {
	if len(list) == 0 {
		return otherwise
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = format.Visible(list[i])
	}
	return g.Text(strings.Join(texts, ", "))
}

// href links to a page of this site; any other address becomes the first page.
func href(to string) g.Node {
	if !strings.HasPrefix(to, "#") {
		to = local(to)
	}
	return h.Href(to)
}

func link(to string, children ...g.Node) g.Node {
	return h.A(slices.Insert(children, 0, href(to))...)
}

// follow is a link with a relation, or nothing if to is "".
func follow(relation, to, text string) g.Node {
	if to == "" {
		return nil
	}
	return h.A(h.Rel(relation), href(to), g.Text(text))
}

// queueLink links a queue's name to url, followed by its virtual host unless that is "/".
func queueLink(url, vhost, queue string) g.Node {
	if vhost == "/" {
		return link(url, name(queue))
	}
	return g.Group{link(url, name(queue)), g.Text(" "), class("faint", name(vhost))}
}

func class(name string, children ...g.Node) g.Node {
	return h.Span(slices.Insert(children, 0, h.Class(name))...)
}

func faint(text string) g.Node { return class("faint", g.Text(text)) }
func code(text string) g.Node  { return h.Code(g.Text(text)) }
func bold(text string) g.Node  { return h.B(g.Text(text)) }

// spaced puts spaces between the elements of a line, for readers without the style sheet.
func spaced(list ...g.Node) (line g.Group) {
	for _, n := range list {
		if n != nil {
			line = append(line, n, g.Text(" "))
		}
	}
	return line
}

// either returns yes if is, otherwise no.
func either(is bool, yes, no g.Node) g.Node {
	if is {
		return yes
	}
	return no
}

// card is a part of a page with a heading. aside is shown next to the heading.
func card(id, heading string, aside g.Node, children ...g.Node) g.Node {
	return h.Section(h.Class("card"), h.Aria("labelledby", id),
		h.Div(h.Class("head"), h.H2(h.ID(id), g.Text(heading)), aside), g.Group(children))
}

// empty explains why there is nothing to show, and what to do about it.
func empty(children ...g.Node) g.Node { return h.P(h.Class("empty"), g.Group(children)) }

// only is a page with one text.
func only(children ...g.Node) g.Node { return h.Section(h.Class("card"), empty(children...)) }

// table has a column for each heading. A heading that begins with "#" makes a column of numbers.
func table(headings []string, rows g.Group) g.Node {
	return h.Div(h.Class("scroll"), h.Table(
		h.THead(h.Tr(g.Map(headings, heading))),
		h.TBody(rows)))
}

func heading(text string) g.Node {
	if number, ok := strings.CutPrefix(text, "#"); ok {
		return h.Th(h.Class("number"), g.Text(number))
	}
	return h.Th(g.Text(text))
}

// amount is a cell of a column of numbers.
func amount(children ...g.Node) g.Node { return h.Td(h.Class("number"), g.Group(children)) }

// fact is an entry of a description list.
func fact(name string, is ...g.Node) g.Node {
	return h.Div(h.Dt(g.Text(name)), h.Dd(is...))
}

func facts(list ...g.Node) g.Node { return h.Dl(h.Class("parts"), g.Group(list)) }

// figure is one of the numbers at the top of a page.
func figure(name string, is ...g.Node) g.Node {
	return h.Div(h.Span(g.Text(name)), h.B(is...))
}

func figures(list ...g.Node) g.Node {
	return h.Section(h.Class("numbers"), h.Aria("label", "Numbers"), g.Group(list))
}

// hidden is a hidden field of a form.
func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// hiddenIf is a hidden field that is left out if it is empty.
func hiddenIf(name, value string) g.Node {
	if value == "" {
		return nil
	}
	return hidden(name, value)
}

// choose is a field with values to choose from. The empty value is labelled otherwise.
func choose(name, label, otherwise string, values []string, chosen string) g.Node {
	return h.Label(g.Text(label), h.Select(h.Name(name), option("", otherwise, chosen),
		g.Map(values, func(v string) g.Node { return option(v, v, chosen) })))
}

func option(value, text, chosen string) g.Node {
	return h.Option(h.Value(value), g.If(value == chosen && value != "", h.Selected()), name(text))
}

// field is an input field.
func field(label, name, value string, attributes ...g.Node) g.Node {
	return h.Label(g.Text(label), h.Input(h.Name(name), h.Value(value), g.Group(attributes)))
}

// search is a form that searches and changes nothing.
func search(action string, children ...g.Node) g.Node {
	return h.Form(h.Class("filter"), h.Method("get"), h.Action(action), h.Role("search"), g.Group(children))
}

// change is a form that changes something. It has the visitor's token.
func (s *pageInfo) change(action string, children ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(action), hidden("token", s.Token), g.Group(children))
}

func button(text string) g.Node  { return h.Button(g.Text(text)) }
func primary(text string) g.Node { return h.Button(h.Class("primary"), g.Text(text)) }
