package dashboard

import (
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (l *letterList) draw(s *shown) drawing {
	return drawing{top: h.H1(g.Text("Dead letters")), live: g.Group{g.If(len(l.Replays) > 0, l.replays(s)), l.holders()}}
}

func (l *letterList) replays(s *shown) g.Node {
	return card("replays", "Replays", nil,
		table([]string{"Queue", "State", "Progress", "#Replayed", "Stayed", "By", "Began (UTC)", ""}, g.Map(l.Replays, s.replayed)))
}

// replayed is a row of the replays.
func (s *shown) replayed(r Replay) g.Node {
	share := strconv.Itoa(r.Share())
	cancel := s.change("/dead-letters/cancel", hidden("id", r.ID), button("Cancel"))
	return h.Tr(
		h.Td(link(lettersURL(r.VHost, r.Queue), name(r.Queue))),
		h.Td(replayState(r.State), g.If(r.Error != "", g.Group{g.Text(" "), class("bad", name(r.Error))})),
		h.Td(h.Progress(h.Max("100"), h.Value(share), h.Aria("label", share+" of 100"), g.Text(share+" %"))),
		amount(g.Text(number(r.Replayed)+" of "+number(r.Matched))), h.Td(r.stayed()),
		h.Td(g.If(r.User != "", name(r.User))), h.Td(h.Time(g.Text(instant(r.Started)))),
		h.Td(g.If(r.State == "running", cancel)))
}

func replayState(state string) g.Node {
	switch state {
	case "running":
		return class("tag warn", g.Text(state))
	case "done":
		return class("tag good", g.Text(state))
	}
	return class("tag bad", g.Text(state))
}

// stayed says how many messages stayed, and why.
func (r *Replay) stayed() g.Node {
	if len(r.Left) == 0 {
		return faint("none")
	}
	reasons := make([]string, len(r.Left))
	for i, p := range r.Left {
		reasons[i] = visible(p.Value) + " " + leftWords(p.Name)
	}
	return g.Text(strings.Join(reasons, ", "))
}

func (l *letterList) holders() g.Node {
	if len(l.Holders) == 0 {
		return card("holders", "Queues with dead letters", nil, empty(
			g.Text("No queue has dead letters, and none sends any. Give a queue a dead-letter exchange (a policy with "), code("dead-letter-exchange"),
			g.Text(", or "), code("x-dead-letter-queue"), g.Text("), and what expires or is rejected there can be looked at, searched and replayed here.")))
	}
	return card("holders", "Queues with dead letters", g.If(l.Total > 0, faint(plural(l.Total, "message"))),
		table([]string{"Queue", "#Messages", "#Size", "From"}, g.Map(l.Holders, Holder.draw)))
}

func (q Holder) draw() g.Node {
	const most = 8
	from := q.From
	if len(from) > most {
		from = append(from[:most:most], "…")
	}
	return h.Tr(
		h.Td(queueLink(lettersURL(q.VHost, q.Queue), q.VHost, q.Queue), g.If(q.Parked, g.Group{g.Text(" "), class("tag warn", g.Text("no queue was bound"))})),
		amount(g.Text(number(q.Ready)), g.If(q.Unacked > 0, g.Group{g.Text(" "), faint("+ " + number(q.Unacked) + " unacked")})),
		amount(g.Text(byteCount(q.Bytes))),
		h.Td(names(from, faint("not by a dead-letter exchange there is now"))))
}
