package ui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// TestCellsNameTheirColumns: each cell of each row has the heading of its column, except where there is none, whatever is in the cells.
func TestCellsNameTheirColumns(t *testing.T) {
	row := func(name string) g.Node {
		return h.Tr(h.Td(h.Class("name"), Link("/<td", Name(name))), Amount(g.Text("7")), h.Td(Button("End")))
	}
	var page strings.Builder
	require.NoError(t, Table([]string{`"What" & why`, "#Lost", ""}, g.Group{row("a"), row("<td><tr>"), h.Tr(h.Td(h.ColSpan("3")))}).Render(&page))
	require.Contains(t, page.String(), `<tbody><tr><td data-label="&#34;What&#34; &amp; why" class="name"><a href="/&lt;td">a</a></td><td data-label="Lost" class="number">7</td><td><button>End</button></td></tr>`+
		`<tr><td data-label="&#34;What&#34; &amp; why" class="name"><a href="/&lt;td">&lt;td&gt;&lt;tr&gt;</a></td><td data-label="Lost" class="number">7</td>`)
	require.Contains(t, page.String(), `<tr><td data-label="&#34;What&#34; &amp; why" colspan="3"></td></tr></tbody>`)
}
