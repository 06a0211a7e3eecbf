package dashboard

import (
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// The elements that several pages have. Text and the values of attributes are escaped
// where they become markup, in gomponents; nothing in this package writes markup itself.

// name shows a name that somebody chose.
func name(text string) g.Node { return g.Text(visible(text)) }

// names lists names; with none it is otherwise.
func names(list []string, otherwise g.Node) g.Node {
	if len(list) == 0 {
		return otherwise
	}
	shown := make([]string, len(list))
	for i := range list {
		shown[i] = visible(list[i])
	}
	return g.Text(strings.Join(shown, ", "))
}

// href leads to a place of this site; anything else becomes its first page.
func href(to string) g.Node {
	if !strings.HasPrefix(to, "#") {
		to = local(to)
	}
	return h.Href(to)
}

func link(to string, children ...g.Node) g.Node {
	return h.A(slices.Insert(children, 0, href(to))...)
}

// follow is a link with that relation, or nothing where to is "".
func follow(relation, to, text string) g.Node {
	if to == "" {
		return nil
	}
	return h.A(h.Rel(relation), href(to), g.Text(text))
}

// queueLink names a queue, and its virtual host where that is not the usual one; it leads
// to url.
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

// spaced puts a space between elements that stand in a line, for those who read them
// without the style.
func spaced(list ...g.Node) (line g.Group) {
	for _, n := range list {
		if n != nil {
			line = append(line, n, g.Text(" "))
		}
	}
	return line
}

// either is yes or no.
func either(is bool, yes, no g.Node) g.Node {
	if is {
		return yes
	}
	return no
}

// card is a part of a page with a heading, and what stands beside that.
func card(id, heading string, beside g.Node, children ...g.Node) g.Node {
	return h.Section(h.Class("card"), h.Aria("labelledby", id),
		h.Div(h.Class("head"), h.H2(h.ID(id), g.Text(heading)), beside), g.Group(children))
}

// empty says why there is nothing, and what to do.
func empty(children ...g.Node) g.Node { return h.P(h.Class("empty"), g.Group(children)) }

// only is a page that only says something.
func only(children ...g.Node) g.Node { return h.Section(h.Class("card"), empty(children...)) }

// table has a column for each heading; one that begins with "#" is of numbers.
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

// fact is an entry of a list of names with what they are.
func fact(name string, is ...g.Node) g.Node {
	return h.Div(h.Dt(g.Text(name)), h.Dd(is...))
}

func facts(list ...g.Node) g.Node { return h.Dl(h.Class("parts"), g.Group(list)) }

// figure is one of the numbers at a page's top.
func figure(name string, is ...g.Node) g.Node {
	return h.Div(h.Span(g.Text(name)), h.B(is...))
}

func figures(list ...g.Node) g.Node {
	return h.Section(h.Class("numbers"), h.Aria("label", "Numbers"), g.Group(list))
}

// hidden is a field that nobody sees.
func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// hiddenIf is one that is left out where it would be empty.
func hiddenIf(name, value string) g.Node {
	if value == "" {
		return nil
	}
	return hidden(name, value)
}

// choose is a field with some values to choose from; that of "" is called otherwise.
func choose(name, label, otherwise string, values []string, chosen string) g.Node {
	return h.Label(g.Text(label), h.Select(h.Name(name), option("", otherwise, chosen),
		g.Map(values, func(v string) g.Node { return option(v, v, chosen) })))
}

func option(value, text, chosen string) g.Node {
	return h.Option(h.Value(value), g.If(value == chosen && value != "", h.Selected()), name(text))
}

// field is one to fill in.
func field(label, name, value string, attributes ...g.Node) g.Node {
	return h.Label(g.Text(label), h.Input(h.Name(name), h.Value(value), g.Group(attributes)))
}

// search is a form that looks for something and changes nothing.
func search(action string, children ...g.Node) g.Node {
	return h.Form(h.Class("filter"), h.Method("get"), h.Action(action), h.Role("search"), g.Group(children))
}

// change is a form that changes something: it carries the token of the visitor's pages.
func (s *shown) change(action string, children ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(action), hidden("token", s.Token), g.Group(children))
}

func button(text string) g.Node  { return h.Button(g.Text(text)) }
func primary(text string) g.Node { return h.Button(h.Class("primary"), g.Text(text)) }
