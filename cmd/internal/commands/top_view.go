package commands

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"curfew/cmd/internal/cli"
	"curfew/monitor/printable"
)

const (
	bold    = "\x1b[1m"
	inverse = "\x1b[7m"
	red     = "\x1b[31m"
	reset   = "\x1b[0m"
)

// View implements tea.Model: the verdict, the place, and the keys.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.height > 0 {
		p := m.here()
		head := append(m.pinned(), "", bold+p.title+reset+m.filter())
		if p.about != "" {
			head = append(head, cli.Lines(printable.Text(p.about, ""), m.width)...)
			head = append(head, "")
		}
		body := p.body(max(1, m.height-len(head)-1))
		lines := append(append(head, body...), m.keys())
		for i := range lines {
			lines[i] = ansi.Truncate(lines[i], m.width, "…")
		}
		v.Content = strings.Join(lines, "\n")
	}
	return v
}

// pinned is the verdict, and why the last look failed. The incidents are the first list.
func (m *model) pinned() (lines []string) {
	if len(m.verdict) > 0 {
		lines = append(lines, m.verdict[0].Text)
	}
	if m.problem != "" {
		lines = append(lines, red+printable.Text(m.problem, "")+reset)
	}
	return lines
}

func (m *model) filter() string {
	switch only := m.here().only; {
	case m.typing:
		return "   /" + only + "_"
	case only != "":
		return "   with " + only
	}
	return ""
}

// body are the lines of the place that fit, those around the cursor, always as many as there is room for. Above the rows at the top stand the
// headings of their table.
func (p *place) body(room int) []string {
	chosen, at, heading := p.chosen(), 0, ""
	var lines, headings []string // and of each line the headings of its table
	for i := range p.lines {
		if !p.shown(&p.lines[i]) {
			continue
		}
		text := p.lines[i].Text
		if i == chosen {
			at, text = len(lines), inverse+ansi.Strip(text)+reset
		}
		if p.lines[i].Head {
			heading = text
		} else if p.lines[i].Row == nil {
			heading = ""
		}
		lines, headings = append(lines, text), append(headings, heading)
		if rows, shown := p.rowsBelow(i); p.lines[i].Head && rows > 0 && shown == 0 {
			lines, headings = append(lines, fmt.Sprintf("none of %d matches", rows)), append(headings, "")
		}
	}
	from := max(0, min(at-room/2, len(lines)-room))
	lines = lines[from:min(len(lines), from+room)]
	if from < at && headings[from] != "" {
		lines[0] = headings[from]
	}
	for len(lines) < room {
		lines = append(lines, "")
	}
	return lines
}

// rowsBelow is how many rows the table has whose headings are in line i, and how many of them are shown.
func (p *place) rowsBelow(i int) (rows, shown int) {
	for i++; i < len(p.lines) && p.lines[i].Row != nil; i++ {
		rows++
		if p.shown(&p.lines[i]) {
			shown++
		}
	}
	return rows, shown
}

// keys are those that do something here.
func (m *model) keys() string {
	p := m.here()
	if m.typing {
		return "Enter keep   Esc all lines"
	}
	if m.acks != "" {
		return bold + "a again acknowledges incident " + m.acks + ": nobody is told of it until it is over" + reset + "   any other key: no"
	}
	text := "↑↓ move  Enter more  / find"
	if p.toAcknowledge() != "" {
		text += "  a ack"
	}
	if len(m.places) == 1 {
		text += "  t " + map[bool]string{false: "traffic", true: "risk"}[p.traffic]
	}
	if len(m.places) > 1 || p.only != "" {
		text = "Esc back  " + text
	}
	if _, queue := p.subject(); p.position != "" {
		text = bold + "y replay these now" + reset + "  " + text
	} else if queue != "" {
		text += "  d dead letters  r replay"
	}
	return text + "  q quit"
}

// aboutIn is what curfew queue show says of the queue's incident; "": there is none. told: its output is among the lines.
func aboutIn(lines []cli.Line) (about string, told bool) {
	for i := range lines {
		switch row := lines[i].Row; row["WHAT"] {
		case "incident", "what to do":
			about = strings.TrimPrefix(about+". "+row["VALUE"], ". ")
		case "purpose":
			told = true
		}
	}
	return about, told
}

// positionIn finds the position that a dry run has told.
func positionIn(lines []cli.Line) string {
	for i := range lines {
		if _, position, told := strings.Cut(lines[i].Text, "--position "); told {
			return strings.TrimSpace(position)
		}
	}
	return ""
}
