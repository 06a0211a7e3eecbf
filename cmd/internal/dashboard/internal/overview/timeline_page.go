package overview

import (
	g "maragu.dev/gomponents"

	"curfew/cmd/internal/dashboard/internal/ui"
)

func (t *timeline) draw() g.Node {
	if t == nil {
		return nil
	}
	return ui.Card("ahead", "Deadlines ahead", ui.Choices("Span of the deadlines", t.Choices), t.content())
}

func (t *timeline) content() g.Node {
	switch {
	case t.Inside > 0 || t.Held > 0:
		return t.Draw(t.Link)
	case t.Later > 0:
		return ui.Empty(g.Text("Nothing is due within " + t.Window + ", and " + ui.Plural(t.Later, "deadline") + " later. Choose a longer span."))
	}
	return ui.Empty(g.Text("No deadlines ahead. Publish a message with an "), ui.Code("expiration"), g.Text(", or give a queue an "), ui.Code("x-message-ttl"),
		g.Text(" or a policy with "), ui.Code("message-ttl"), g.Text(", and it shows here."))
}
