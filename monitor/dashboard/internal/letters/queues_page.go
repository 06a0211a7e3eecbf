package letters

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/ui"
)

func (l *queuesPage) Draw(s *ui.Info) ui.Drawing {
	top := g.Group{h.H1(g.Text("Dead letters"))}
	if l.All > ui.PageRows || l.Find != "" {
		top = append(top, ui.Search("/dead-letters", ui.NewForm(nil, "q", l.Find).Field("Queue contains", "q", "", h.Type("search")), ui.Button("Search")))
	}
	top = append(top, ui.Search("/audit", ui.NewForm(nil).Field("Find what became of a message", "message_id", "", h.Type("search"), h.Placeholder("message id"), h.Required(), h.MaxLength("255")), ui.Button("Find")))
	return ui.Drawing{Top: top, Live: g.Group{g.If(len(l.Replays) > 0, l.replays(s)), l.queues()}}
}

func (l *queuesPage) replays(s *ui.Info) g.Node {
	return ui.Card("replays", "Replays", nil,
		ui.Table([]string{"Queue", "State", "Progress", "#Replayed", "Skipped", "By", "Started (UTC)", ""}, g.Map(l.Replays, func(r deadletters.Replay) g.Node { return replayed(s, r) })))
}

// replayed is a row of the replays.
func replayed(s *ui.Info, r deadletters.Replay) g.Node {
	share := strconv.Itoa(share(&r))
	cancel := s.Change("/dead-letters/cancel", "", ui.Hidden("id", r.ID), ui.Button("Cancel"))
	return h.Tr(
		h.Td(ui.Link(URL(r.VHost, r.Queue), ui.Name(r.Queue))),
		h.Td(replayState(r.State), g.If(r.Error != "", g.Group{g.Text(" "), ui.Class("bad", ui.Name(r.Error))})),
		h.Td(h.Progress(h.Max("100"), h.Value(share), h.Aria("label", share+" of 100"), g.Text(share+" %"))),
		ui.Amount(g.Text(format.Number(r.Replayed)+" of "+format.Number(r.Matched))), h.Td(stayed(r.Skipped)),
		h.Td(g.If(r.User != "", ui.Name(r.User))), h.Td(h.Time(g.Text(format.Instant(r.Started)))),
		h.Td(g.If(r.State == deadletters.Running, cancel)))
}

func replayState(s deadletters.State) g.Node {
	state := string(s)
	switch state {
	case string(deadletters.Running):
		return ui.Class("tag warn", g.Text(state))
	case string(deadletters.Done):
		return ui.Class("tag good", g.Text(state))
	}
	return ui.Class("tag bad", g.Text(state))
}

// stayed shows how many messages were skipped, and why.
func stayed(skipped map[deadletters.SkipReason]int) g.Node {
	if len(skipped) == 0 {
		return ui.Faint("none")
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		reasons = append(reasons, strconv.Itoa(skipped[why])+" "+skippedWords(string(why)))
	}
	return g.Text(strings.Join(reasons, ", "))
}

func (l *queuesPage) queues() g.Node {
	const title = "Queues with dead letters"
	switch {
	case l.All == 0:
		return ui.Card("holders", title, nil, ui.Empty(
			g.Text("No queue has dead letters, and none sends any. Give a queue a dead-letter exchange (a policy with "), ui.Code("dead-letter-exchange"),
			g.Text(", or "), ui.Code("x-dead-letter-queue"), g.Text("). Messages that expire or are rejected in it can then be viewed, searched and replayed here.")))
	case len(l.Queues) == 0:
		return ui.Card("holders", title, nil, ui.Empty(g.Text("None of them matches. "), ui.Link("/dead-letters", g.Text("Show all")), g.Text(".")))
	}
	return ui.Card("holders", title, g.If(l.Total > 0, ui.Faint(format.Plural(l.Total, "message")+" in all")),
		ui.Table([]string{"Queue", "#Messages", "#Size", "From"}, g.Map(l.Queues, letterQueue)), l.Cut.DrawIfCut("queue"))
}

func letterQueue(q *deadletters.Queue) g.Node {
	const most = 8
	from := q.From
	if len(from) > most {
		from = append(from[:most:most], "…")
	}
	return h.Tr(
		h.Td(ui.QueueLink(URL(q.VHost, q.Queue), q.VHost, q.Queue), g.If(q.Parked, g.Group{g.Text(" "), ui.Class("tag warn", g.Text("parked: no route"))})),
		ui.Amount(g.Text(format.Number(q.Ready)), g.If(q.Unacked > 0, g.Group{g.Text(" "), ui.Faint("+ " + format.Number(q.Unacked) + " unacked")})),
		ui.Amount(g.Text(format.Bytes(q.Bytes))),
		h.Td(ui.Names(from, ui.Faint("no dead-letter exchange leads here now"))))
}
