package ui

import (
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// PageRows is how many rows of a list one page has.
const PageRows = 50

// Cut is the rows of a list that a page has.
type Cut struct {
	From, To, Of  int    // the first row is 1
	Before, After string // URLs of the pages before and after; "": none
}

// CutOf returns the rows of one page, whose number is in a field of the query. A page beyond the last is the last.
func CutOf[T any](list []T, path string, q url.Values, field string) ([]T, Cut) {
	last := max((len(list)-1)/PageRows, 0)
	n, err := strconv.Atoi(q.Get(field))
	if err != nil {
		n = 1
	}
	at := min(max(n-1, 0), last)
	from, to := at*PageRows, min((at+1)*PageRows, len(list))
	c := Cut{From: from + 1, To: to, Of: len(list)}
	if at == 1 {
		c.Before = With(path, q, field, "")
	} else if at > 1 {
		c.Before = With(path, q, field, strconv.Itoa(at))
	}
	if at < last {
		c.After = With(path, q, field, strconv.Itoa(at+2))
	}
	return list[from:to], c
}

// Draw shows which rows these are, with links to the pages before and after.
func (c Cut) Draw(noun string) g.Node {
	return h.P(h.Class("pager"), Spaced(
		Follow("prev", c.Before, "← Before"),
		h.Span(g.Text(Number(c.From)+"–"+Number(c.To)+" of "+Plural(c.Of, noun))),
		Follow("next", c.After, "After →")))
}

// DrawIfCut is Draw, or nothing if all rows are on the page.
func (c Cut) DrawIfCut(noun string) g.Node {
	if c.Before == "" && c.After == "" {
		return nil
	}
	return c.Draw(noun)
}
