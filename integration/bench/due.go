package main

import (
	"fmt"
	"strings"
	"time"

	"curfew/integration/bench/load"
)

// dueWork is one way for many messages to come due at the same time.
type dueWork struct {
	text string
	due  load.Due
	want float64 // per second
	peer bool    // compare with RabbitMQ
}

func (b *bench) dueTogether() error {
	const many, million = 50_000, 1_000_000
	works := []dueWork{
		{"50,000 to a DLX, transient", load.Due{Count: many, Lead: 3 * time.Second, DeadLetter: true}, 150_000, true},
		{"50,000 to a DLX, persistent", load.Due{Count: many, Lead: 4 * time.Second, DeadLetter: true, Persist: true}, 150_000, true},
		{"50,000 dropped", load.Due{Count: many, Lead: 3 * time.Second}, 1_000_000, false},
		{"1,000,000 to a DLX, transient", load.Due{Count: million, Lead: 6 * time.Second, DeadLetter: true}, 150_000, false},
		{"1,000,000 to a DLX, persistent", load.Due{Count: million, Lead: 8 * time.Second, DeadLetter: true, Persist: true}, 150_000, false},
		{"1,000,000 dropped", load.Due{Count: million, Lead: 6 * time.Second}, 1_000_000, false},
	}
	c, err := b.curfew()
	if err != nil {
		return err
	}
	peers, err := b.rabbitMQ()
	if err != nil {
		return err
	}
	for _, w := range works {
		if b.quick && w.due.Count == million {
			continue
		}
		sides := []*side{c}
		if w.peer {
			sides = append(sides, peers[:min(2, len(peers))]...) // quorum queues take half a minute to accept the messages
		}
		if err := b.due(w, sides); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) due(w dueWork, sides []*side) error {
	w.due.Size, w.due.MaxWait = 100, 30*time.Second
	rows := make([]*row, len(sides))
	for i, side := range sides {
		rows[i] = b.report.row("P7", w.text, side.name)
	}
	gone, passes := 0, b.passes
	if w.due.Count > 100_000 {
		passes = 1
	}
	defer b.setPasses(passes)()
	err := b.alternate(len(sides), func(i int) error {
		r, err := b.dueOnce(w.due, sides[i], rows[i])
		if i == 0 {
			gone += r.Gone
			return err
		}
		if err != nil {
			rows[i].Note = "failed: " + err.Error()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		fmt.Println(r)
	}
	own := rows[0].Rate.median()
	g := goal{Goal: "P7", What: w.text, Want: ">= " + short(w.want) + "/s", Got: short(own) + "/s", Met: own >= w.want && gone == passes*w.due.Count}
	if len(sides) > 1 {
		_, peer := against(rows, sides, "classic", "classic-v2")
		g.Want += ", >= 8x RabbitMQ"
		g.Ratio = fmt.Sprintf("%.1fx %s", ratio(rows[0], peer), peer.Side)
		g.Met = g.Met && ratio(rows[0], peer) >= 8
	}
	b.report.goal(g)
	return nil
}

// longestLead is how long a slow broker may take to accept the messages.
const longestLead = 30 * time.Second

func (b *bench) dueOnce(d load.Due, s *side, into *row) (load.DueResult, error) {
	d.URL, d.QueueType = s.broker.url, s.queueType
	pid := s.broker.cmd.Process.Pid
	before := treeCPU(pid)
	r, err := inProcess[load.DueResult]("due", d)
	for err != nil && strings.Contains(err.Error(), load.ErrLead.Error()) && d.Lead < longestLead {
		d.Lead = min(3*d.Lead, longestLead)
		before = treeCPU(pid)
		r, err = inProcess[load.DueResult]("due", d)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.name, err)
	}
	into.Rate.add(r.Rate)
	into.CPU.add((treeCPU(pid) - before).Seconds() * 1e6 / float64(r.Count))
	if r.Gone < r.Count {
		into.Note = fmt.Sprintf("only %d of %d within %v", r.Gone, r.Count, d.MaxWait)
	}
	return r, nil
}
