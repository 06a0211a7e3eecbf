package dashboard

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadletters"
	"curfew/monitor/dashboard/internal/format"
)

func (l *deadLettersPage) draw(s *pageInfo) drawing {
	return drawing{top: h.H1(g.Text("Dead letters")), live: g.Group{g.If(len(l.Replays) > 0, l.replays(s)), l.queues()}}
}

func (l *deadLettersPage) replays(s *pageInfo) g.Node {
	return card("replays", "Replays", nil,
		table([]string{"Queue", "State", "Progress", "#Replayed", "Skipped", "By", "Started (UTC)", ""}, g.Map(l.Replays, s.replayed)))
}

// replayed is a row of the replays.
func (s *pageInfo) replayed(r deadletters.Replay) g.Node {
	share := strconv.Itoa(share(&r))
	cancel := s.change("/dead-letters/cancel", hidden("id", r.ID), button("Cancel"))
	return h.Tr(
		h.Td(link(lettersURL(r.VHost, r.Queue), name(r.Queue))),
		h.Td(replayState(r.State), g.If(r.Error != "", g.Group{g.Text(" "), class("bad", name(r.Error))})),
		h.Td(h.Progress(h.Max("100"), h.Value(share), h.Aria("label", share+" of 100"), g.Text(share+" %"))),
		amount(g.Text(format.Number(r.Replayed)+" of "+format.Number(r.Matched))), h.Td(stayed(r.Skipped)),
		h.Td(g.If(r.User != "", name(r.User))), h.Td(h.Time(g.Text(format.Instant(r.Started)))),
		h.Td(g.If(r.State == deadletters.Running, cancel)))
}

func replayState(s deadletters.State) g.Node {
	state := string(s)
	switch state {
	case string(deadletters.Running):
		return class("tag warn", g.Text(state))
	case string(deadletters.Done):
		return class("tag good", g.Text(state))
	}
	return class("tag bad", g.Text(state))
}

// stayed shows how many messages were skipped, and why.
func stayed(skipped map[deadletters.SkipReason]int) g.Node {
	if len(skipped) == 0 {
		return faint("none")
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		reasons = append(reasons, strconv.Itoa(skipped[why])+" "+leftWords(string(why)))
	}
	return g.Text(strings.Join(reasons, ", "))
}

func (l *deadLettersPage) queues() g.Node {
	if len(l.Queues) == 0 {
		return card("holders", "Queues with dead letters", nil, empty(
			g.Text("No queue has dead letters, and none sends any. Give a queue a dead-letter exchange (a policy with "), code("dead-letter-exchange"),
			g.Text(", or "), code("x-dead-letter-queue"), g.Text("). What expires or is rejected there can then be seen, searched and replayed here.")))
	}
	return card("holders", "Queues with dead letters", g.If(l.Total > 0, faint(format.Plural(l.Total, "message"))),
		table([]string{"Queue", "#Messages", "#Size", "From"}, g.Map(l.Queues, letterQueue)))
}

func letterQueue(q deadletters.Queue) g.Node {
	const most = 8
	from := q.From
	if len(from) > most {
		from = append(from[:most:most], "…")
	}
	return h.Tr(
		h.Td(queueLink(lettersURL(q.VHost, q.Queue), q.VHost, q.Queue), g.If(q.Parked, g.Group{g.Text(" "), class("tag warn", g.Text("parked: nowhere to go"))})),
		amount(g.Text(format.Number(q.Ready)), g.If(q.Unacked > 0, g.Group{g.Text(" "), faint("+ " + format.Number(q.Unacked) + " unacked")})),
		amount(g.Text(format.Bytes(q.Bytes))),
		h.Td(names(from, faint("no dead-letter exchange leads here now"))))
}
