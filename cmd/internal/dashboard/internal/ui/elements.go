package ui

import (
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
)

// The elements that the pages share. gomponents escapes texts and the values of attributes; nothing
// in this package writes markup itself, except the labels of cells (Labelled).

// wordEnds are what a word of a name ends with. Before a digit they may be part of a number or a time.
var wordEnds = regexp.MustCompile(`([._/:-]+)([^\d\s._/:-])`)

// Name shows a name that a user chose. A line ends after one of its marks, and within a word only if that alone is too wide.
func Name(text string) g.Node { return breaking(Visible(text)) }

// breaking is a text in which a line may end after the marks of a name.
func breaking(text string) g.Node {
	if !wordEnds.MatchString(text) {
		return g.Text(text)
	}
	var words g.Group
	for _, word := range strings.Split(wordEnds.ReplaceAllString(text, "$1\n$2"), "\n") {
		words = append(words, g.Text(word), h.Wbr())
	}
	return words[:len(words)-1]
}

// Names lists names, or shows the node "otherwise" if there are none.
func Names(list []string, otherwise g.Node) g.Node {
	if len(list) == 0 {
		return otherwise
	}
	names := g.Group{Name(list[0])}
	for _, name := range list[1:] {
		names = append(names, g.Text(", "), Name(name))
	}
	return Class("names", names...)
}

// Href links to a page of this site; any other address becomes the first page.
func Href(to string) g.Node {
	if !strings.HasPrefix(to, "#") {
		to = Local(to)
	}
	return h.Href(to)
}

func Link(to string, children ...g.Node) g.Node {
	return h.A(slices.Insert(children, 0, Href(to))...)
}

// Follow is a link with a relation, or nothing if to is "".
func Follow(relation, to, text string) g.Node {
	if to == "" {
		return nil
	}
	return h.A(h.Rel(relation), Href(to), g.Text(text))
}

// QueueLink links a queue's name to url, followed by its virtual host unless that is "/".
func QueueLink(url, vhost, queue string) g.Node {
	if vhost == "/" {
		return Link(url, Name(queue))
	}
	return g.Group{Link(url, Name(queue)), g.Text(" "), Class("faint", Name(vhost))}
}

func Class(name string, children ...g.Node) g.Node {
	return h.Span(slices.Insert(children, 0, h.Class(name))...)
}

func Faint(text string) g.Node { return Class("faint", breaking(text)) }
func Bold(text string) g.Node  { return h.B(breaking(text)) }

// Code is a piece of code. A command has a button beside it that copies it.
func Code(text string) g.Node {
	code := h.Code(Name(text))
	if !strings.HasPrefix(text, "curfew ") {
		return code
	}
	return Class("command", code, g.Text(" "), Copy("", "Copy "+Visible(text)))
}

// Copy is a button that copies the text of the element with an ID, or with "" of the one before it. Without scripts it is not shown.
func Copy(id, label string) g.Node {
	return h.Button(h.Type("button"), h.Class("quiet"), h.Data("copy", id), h.Aria("label", label), g.Text("Copy"))
}

// Advice is a text with commands, which are in backquotes.
func Advice(text string) (nodes g.Group) {
	for n, part := range strings.Split(text, "`") {
		nodes = append(nodes, Either(n%2 == 1, Code(part), g.Text(part)))
	}
	return nodes
}

// Spaced puts spaces between the elements of a line, for readers without the style sheet.
func Spaced(list ...g.Node) (line g.Group) {
	for _, n := range list {
		if n != nil {
			line = append(line, n, g.Text(" "))
		}
	}
	return line
}

// Either returns yes if is, otherwise no.
func Either(is bool, yes, no g.Node) g.Node {
	if is {
		return yes
	}
	return no
}

// Card is a part of a page with a heading. aside is shown next to the heading.
func Card(id, heading string, aside g.Node, children ...g.Node) g.Node {
	return h.Section(h.Class("card"), h.Aria("labelledby", id),
		h.Div(h.Class("head"), h.H2(h.ID(id), g.Text(heading)), aside), g.Group(children))
}

// Empty explains why there is nothing to show, and what to do about it.
func Empty(children ...g.Node) g.Node { return h.P(h.Class("empty"), g.Group(children)) }

// MayNotRead is the text of a page about a queue that the user may not read.
const MayNotRead = "This user may not read the queue: ask for the permission to read it."

// Only is a page with one text.
func Only(children ...g.Node) g.Node { return h.Section(h.Class("card"), Empty(children...)) }

// Table has a column for each heading. A heading that begins with "#" makes a column of numbers. On a phone each row is a card. One
// without links and buttons needs a label and a tab index: if it is wider than the screen, the keyboard scrolls it.
func Table(headings []string, rows g.Group, attributes ...g.Node) g.Node {
	return h.Div(h.Class("scroll"), g.Group(attributes), h.Table(
		h.THead(h.Tr(g.Map(headings, Heading))),
		h.TBody(Labelled(headings, rows))))
}

// Heading is the heading of a column; that of a column of numbers begins with "#".
func Heading(text string) g.Node {
	if text == "" { // the column explains itself, such as one of buttons
		return h.Td()
	}
	if number, ok := strings.CutPrefix(text, "#"); ok {
		return h.Th(h.Class("number"), g.Text(number))
	}
	return h.Th(g.Text(text))
}

// Amount is a cell of a column of numbers.
func Amount(children ...g.Node) g.Node { return h.Td(h.Class("number"), g.Group(children)) }

// Fact is an entry of a description list.
func Fact(name string, is ...g.Node) g.Node {
	return h.Div(h.Dt(g.Text(name)), h.Dd(is...))
}

func Facts(list ...g.Node) g.Node { return h.Dl(h.Class("parts"), g.Group(list)) }

// Figure is one of the numbers at the top of a page.
func Figure(name string, is ...g.Node) g.Node {
	return h.Div(h.Span(g.Text(name)), h.B(is...))
}

func Figures(list ...g.Node) g.Node {
	return h.Section(h.Class("numbers"), h.Aria("label", "Numbers"), g.Group(list))
}

// Hidden is a hidden field of a form.
func Hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// HiddenIf is a hidden field that is left out if it is empty.
func HiddenIf(name, value string) g.Node {
	if value == "" {
		return nil
	}
	return Hidden(name, value)
}

// Button is a button of a form. Its class is "primary" for what the form is for, and "danger" where something is lost.
func Button(text string, attributes ...g.Node) g.Node {
	return h.Button(g.Group(attributes), g.Text(text))
}

// Crumbs are the links that lead back from a page.
func Crumbs(to, text, vhost string) g.Node {
	return h.P(h.Class("crumbs"), Link(to, g.Text(text)), g.Text(" · virtual host "), Name(vhost))
}

// OrFaint is a number, drawn faint if it is 0.
func OrFaint[T int | int64](n T) g.Node {
	if n == 0 {
		return Faint("0")
	}
	return g.Text(Number(n))
}

// Rate is how many there are in a second.
func Rate(r operate.Rate) g.Node {
	switch {
	case !r.Known:
		return Faint("–")
	case r.PerSecond == 0:
		return Faint("0")
	}
	return g.Text(PerSecond(r.PerSecond))
}

// NameOr is a name, or the node "otherwise" if there is none.
func NameOr(text string, otherwise g.Node) g.Node {
	if text == "" {
		return otherwise
	}
	return Name(text)
}

// Choice is a link to another view; URL is empty for the current one.
type Choice struct {
	Name, URL string
}

// Views are the choices of a page whose query names one in a field. Each value is followed by its text, and chosen is the current one. A change drops another
// field, such as the number of the page; "": none.
func Views(path string, q url.Values, drop, field, chosen string, options ...string) (list []Choice) {
	for i := 0; i < len(options); i += 2 {
		c := Choice{Name: options[i+1]}
		if options[i] != chosen {
			c.URL = With(path, q, field, options[i], drop, "")
		}
		list = append(list, c)
	}
	return list
}

// Choices are links to views; the current one is not a link.
func Choices(label string, list []Choice, more ...g.Node) g.Node {
	return h.Nav(h.Class("choices"), h.Aria("label", label), Spaced(append(g.Map(list, Choice.Draw), more...)...))
}

func (c Choice) Draw() g.Node {
	if c.URL == "" {
		return h.B(h.Aria("current", "true"), g.Text(c.Name))
	}
	return Link(c.URL, g.Text(c.Name))
}

// Lists are the links between the lists that are near to one another, of which here is the current one; nil if it is another page.
func Lists(s *Info, here string) g.Node {
	for _, near := range [][]Choice{
		{{Name: "Policies", URL: "/policies"}, {Name: "Virtual hosts", URL: "/vhosts"}, {Name: "Users", URL: "/users"}},
		{{Name: "Connections", URL: "/connections"}, {Name: "Consumers", URL: "/consumers"}},
		{{Name: "Exchanges", URL: "/exchanges"}, {Name: "Scheduled by you", URL: "/scheduled"}},
	} {
		near = slices.DeleteFunc(near, func(c Choice) bool { return c.URL == "/users" && !s.User.Admin })
		if i := slices.IndexFunc(near, func(c Choice) bool { return c.URL == here }); i >= 0 {
			near[i].URL = ""
			return Choices("Lists", near)
		}
	}
	return nil
}

// Pairs are entries of a description list, with the same after each value.
func Pairs(list []Pair, more ...g.Node) g.Group {
	return g.Map(list, func(p Pair) g.Node { return h.Div(h.Dt(Name(p.Name)), h.Dd(Name(p.Value), g.Group(more))) })
}

// Ago shows how long ago t was; the zero time is unknown.
func Ago(t time.Time) g.Node {
	if t.IsZero() {
		return Faint("–")
	}
	return h.Time(h.Title(Instant(t)), g.Text(Span(time.Since(t))+" ago"))
}

// Due shows a deadline, or "none".
func Due(at, now int64) g.Node {
	if at == 0 {
		return Faint("none")
	}
	return g.Group{Bold(UTC(at)), g.Text(" "), Faint(Until(at, now))}
}

// Severity is the level of an incident.
func Severity(of string) g.Node {
	if of == "critical" {
		return Class("tag bad", g.Text(of))
	}
	return Class("tag warn", g.Text(of))
}

// Outcome is what became of a message that expired.
func Outcome(of string) g.Node {
	switch of {
	case "dead_lettered":
		return Class("tag", g.Text("dead-lettered"))
	case "parked":
		return Class("tag warn", g.Text("parked"))
	}
	return Class("tag faint", Name(of))
}

// QueueCrumbs are the links above a page about a queue.
func QueueCrumbs(vhost, name string) g.Node {
	return h.P(h.Class("crumbs"), Link("/queues", g.Text("Queues")), g.Text(" / "), Link(QueueURL(vhost, name), Name(name)), g.Text(" · virtual host "), Name(vhost))
}

// AsTable is a folded Table of what a chart shows, below a note.
func AsTable(note g.Node, headings []string, rows g.Group) g.Node {
	return h.Details(h.Class("as-table"), h.Summary(g.Text("As a table")), note, Table(headings, rows))
}

// Labelled are rows whose cells name their columns: on a phone, where each row is a card, the style sheet shows the names in the cells. Names and
// texts are escaped in what the rows render, so that each "<td" there is a cell.
func Labelled(headings []string, rows g.Node) g.Node {
	return g.NodeFunc(func(w io.Writer) error {
		var text strings.Builder
		if err := rows.Render(&text); err != nil {
			return err
		}
		parts := strings.Split(text.String(), "<td")
		column := 0
		for i, part := range parts[:len(parts)-1] {
			if column++; strings.Contains(part, "<tr") {
				column = 0
			}
			label := strings.TrimPrefix(headings[min(column, len(headings)-1)], "#")
			if label != "" {
				label = ` data-label="` + html.EscapeString(label) + `"`
			}
			parts[i+1] = "<td" + label + parts[i+1]
		}
		_, err := io.WriteString(w, strings.Join(parts, ""))
		return err
	})
}
