package ui

import (
	"html"
	"io"
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
			h.TBody(Labelled(headings, rows)))))
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
