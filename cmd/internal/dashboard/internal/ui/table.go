package ui

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// asTable is a folded table of what a chart shows. A heading that begins with "#" makes a column of numbers.
func asTable(headings []string, rows g.Group) g.Node {
	return h.Details(h.Class("as-table"), h.Summary(g.Text("As a table")),
		h.Div(h.Class("scroll"), h.Table(
			h.THead(h.Tr(g.Map(headings, func(text string) g.Node {
				text, isNumber := strings.CutPrefix(text, "#")
				return h.Th(h.Scope("col"), g.If(isNumber, h.Class("number")), g.Text(text))
			}))),
			h.TBody(rows))))
}

func number(n int64) g.Node {
	if n == 0 {
		return h.Td(h.Class("number"), h.Span(h.Class("faint"), g.Text("0")))
	}
	return h.Td(h.Class("number"), g.Text(Number(n)))
}
