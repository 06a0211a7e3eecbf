package dashboard

import (
	"maps"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func (p *plan) Draw(s *ui.Info) ui.Drawing {
	title, back := "Nothing would be replayed", "Back"
	if p.Run.Replayed > 0 {
		title, back = "Replay "+format.Plural(p.Run.Replayed, "message")+"?", "Cancel"
	}
	o := &p.Order
	return ui.Drawing{Live: g.Group{
		h.P(h.Class("crumbs"), ui.Link("/dead-letters", g.Text("Dead letters")), g.Text(" / "), ui.Link(lettersURL(o.VHost, o.Queue), ui.Name(o.Queue))),
		h.H1(g.Text(title)),
		h.Section(h.Class("card"), p.facts()),
		s.Change("/dead-letters/replay", h.Class("filter"), ui.Hidden("confirmed", "1"), p.fields(),
			g.If(p.Run.Replayed > 0, h.Button(h.Class("primary"), h.AutoFocus(), g.Text("Replay "+format.Plural(p.Run.Replayed, "message")))),
			ui.Link(lettersURL(o.VHost, o.Queue), g.Text(back))),
	}}
}

func (p *plan) facts() g.Node {
	to, lives := "where each was published to", "the same as when published, from now"
	if p.Order.To == "queue" {
		to = "the queue each died in"
	}
	switch p.Order.TTL {
	case "remaining":
		lives = "what is left of it"
	case "none":
		lives = "only that of its queue"
	}
	return ui.Facts(
		ui.Fact("Examined", g.Text(format.Number(p.Run.Scanned))),
		ui.Fact("Match", g.Text(format.Number(p.Run.Matched))),
		ui.Fact("Would go back", ui.Bold(format.Number(p.Run.Replayed))),
		g.Map(slices.Sorted(maps.Keys(p.Run.Skipped)), func(why deadletters.SkipReason) g.Node {
			return ui.Fact("Would stay", g.Text(format.Number(p.Run.Skipped[why])), g.Text(" "), ui.Faint(leftWords(string(why))))
		}),
		ui.Fact("To", g.Text(to)),
		ui.Fact("Time to live", g.Text(lives)))
}

// fields are the hidden fields of the confirmed request.
func (p *plan) fields() g.Node {
	o := &p.Order
	limit, rate, keep := "", "", ""
	if o.Limit > 0 {
		limit = strconv.Itoa(o.Limit)
	}
	if o.Rate > 0 {
		rate = strconv.FormatFloat(o.Rate, 'g', -1, 64)
	}
	if o.KeepDeaths {
		keep = "1"
	}
	return g.Group{
		ui.Hidden("vhost", o.VHost), ui.Hidden("name", o.Queue), p.Filter.fields(), ui.Hidden("to", o.To), ui.Hidden("ttl", o.TTL),
		ui.Hidden("position", p.Run.Position.String()),
		ui.HiddenIf("limit", limit), ui.HiddenIf("rate", rate), ui.HiddenIf("keep_deaths", keep),
	}
}

// leftReasons are, in words, why a replay leaves a message where it is.
var leftReasons = map[string]string{
	"replayed_too_often": "were replayed too often before", "no_origin": "never died, so their origin is not known",
	"no_time_left": "have no time left: choose a new time to live", "unroutable": "would reach no queue", "target_full": "found their queue full",
	"leads_back": "would come back here", "gone": "were taken or expired meanwhile", "refused": "were refused",
}

func leftWords(reason string) string {
	if words, ok := leftReasons[reason]; ok {
		return words
	}
	return format.Visible(reason)
}
