package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"curfew/monitor/printable"
)

// Printer prints answers in the chosen format. Its zero value prints complete tables without colors.
type Printer struct {
	Output string // table or json; "" is table
	Color  string // auto, always or never; "" is never

	terminal bool
	width    int // of the terminal; 0: no limit
}

// Outputs and Colors are the values that the fields take.
var (
	Outputs = []string{"table", "json"}
	Colors  = []string{"auto", "always", "never"}
)

// Check refuses an unknown format or use of colors.
func (p *Printer) Check() error {
	if p.Output != "" && !slices.Contains(Outputs, p.Output) {
		return fmt.Errorf("-o: %q is invalid: want table or json", p.Output)
	}
	if p.Color != "" && !slices.Contains(Colors, p.Color) {
		return fmt.Errorf("--color: %q is invalid: want auto, always or never", p.Color)
	}
	return nil
}

// Fit adapts tables to w: to its width, if it is a terminal. noColor is the variable NO_COLOR (no-color.org).
func (p *Printer) Fit(w io.Writer, noColor string) {
	if s, is := w.(*Screen); is {
		p.terminal, p.width = true, s.Width
	} else if p.terminal = OnTerminal(w); p.terminal {
		p.width, _ = sizeOf(w)
	}
	if p.Color == "auto" && (!p.terminal || noColor != "") {
		p.Color = "never"
	}
}

// file is a reader or a writer of a file, such as an *os.File.
type file interface{ Fd() uintptr }

// OnTerminal reports whether a reader or writer is a terminal.
func OnTerminal(at any) bool {
	f, ok := at.(file)
	return ok && term.IsTerminal(int(f.Fd()))
}

// sizeOf is that of a terminal; 0: it has none.
func sizeOf(w io.Writer) (width, height int) {
	width, height, _ = term.GetSize(int(w.(file).Fd()))
	return width, height
}

const barWidth = 30

// Bar is a progress bar. A share above 1 counts as 1.
func Bar(share float64) string {
	share = min(share, 1)
	full := int(share * barWidth)
	return fmt.Sprintf("[%s%s] %3.0f%%", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), share*100)
}

// JSON reports whether answers are printed as JSON.
func (p *Printer) JSON() bool { return p.Output == "json" }

// Time is an instant for a cell: an age on a terminal, otherwise exact to the millisecond; "-" if it is zero.
func (p *Printer) Time(t time.Time) string { return p.TimeAt(time.Now(), t) }

// TimeAt is Time for an instant of a clock that shows now.
func (p *Printer) TimeAt(now, t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case p.terminal:
		return age(now.Sub(t))
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Print writes v as JSON, or as a table: its head, then rows, each as long as head.
//
// A column whose heading ends in "?" is left out where the terminal is too narrow, the last one first. In a column whose heading ends in
// "!" words for good and bad states have a color, and numbers that are not 0 are red. A column whose heading ends
// in "=" is never cut; the last one is wrapped on a terminal. One whose heading ends in "~" is only part of the rows of a Screen. No mark is printed.
func (p *Printer) Print(w io.Writer, v any, head []string, rows [][]string) error {
	if p.JSON() {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(v)
	}
	var columns []column
	for i, heading := range head {
		if !strings.HasSuffix(heading, "~") {
			columns = append(columns, newColumn(heading, i, rows))
		}
	}
	columns = fit(columns, p.width)
	screen, _ := w.(*Screen)
	if screen == nil {
		wrap(columns, p.width)
	}
	for n := range len(rows) + 1 {
		var line strings.Builder
		for i := range columns {
			if i > 0 {
				line.WriteString(gap)
			}
			p.cell(&line, &columns[i], n, i == len(columns)-1)
		}
		if _, err := fmt.Fprintln(w, line.String()); err != nil {
			return err
		}
		switch {
		case screen == nil:
		case n == 0:
			screen.Lines[len(screen.Lines)-1].Head = true
		default:
			row := make(map[string]string, len(head))
			for i, heading := range head {
				row[strings.TrimRight(heading, marks)] = printable.Text(rows[n-1][i], "")
			}
			screen.Lines[len(screen.Lines)-1].Row = row
		}
	}
	return nil
}

// cell writes one cell, as wide as its column unless it is the last of its line.
func (p *Printer) cell(line *strings.Builder, c *column, row int, last bool) {
	text := c.cells[row]
	if !c.whole {
		text = runewidth.Truncate(text, c.width, "…")
	}
	padding := strings.Repeat(" ", max(c.width-runewidth.StringWidth(text), 0))
	if color := colorOf(text); c.verdict && color != "" && p.Color != "never" && p.Color != "" {
		text = color + text + reset
	}
	line.WriteString(text)
	if !last {
		line.WriteString(padding)
	}
}
