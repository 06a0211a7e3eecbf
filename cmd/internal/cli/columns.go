package cli

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/mattn/go-runewidth"

	"curfew/monitor/printable"
)

const (
	gap   = "  "
	reset = "\x1b[0m"

	red   = "\x1b[31m"
	amber = "\x1b[33m"
	green = "\x1b[32m"
)

// colors are the colors of states, by their words, in columns of verdicts.
var colors = map[string]string{
	"ok": green, "running": green, "resolved": green, "done": green, "keeping": green, "expired": amber,
	"degraded": amber, "warning": amber, "pending": amber, "blocked": amber, "blocking": amber, "flow": amber, "held": amber, "at risk": amber, "overdue": amber, "interrupted": amber,
	"!": red, "dead": red, "critical": red, "firing": red, "failed": red, "trouble": red, "parked": red, "dropped": red, "past deadline": red,
}

func colorOf(text string) string {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 {
		return red
	}
	return colors[text]
}

// column is a column with its heading as the first cell.
type column struct {
	cells                    []string
	width                    int // of the widest cell, or less if cells are to be cut
	optional, verdict, whole bool
}

// marks are what headings end in, see Printer.Print.
const marks = "?!=~"

// newColumn makes the column at place i.
func newColumn(heading string, i int, rows [][]string) column {
	name := strings.TrimRight(heading, marks)
	has := heading[len(name):]
	c := column{optional: strings.Contains(has, "?"), verdict: strings.Contains(has, "!"), whole: strings.Contains(has, "="), cells: []string{printable.Text(name, "")}}
	for _, row := range rows {
		c.cells = append(c.cells, printable.Text(row[i], ""))
	}
	for _, text := range c.cells {
		c.width = max(c.width, runewidth.StringWidth(text))
	}
	return c
}

// legible is the width down to which columns are cut before others are left out, enough for most names of queues, and least the width after that.
// narrow is the least width for which lines are wrapped, and wide the least at which they stand on the right of the other columns.
const legible, least, narrow, wide = 36, 6, 20, 60

// fit makes columns narrow enough for a terminal: it cuts the widest to what is legible, leaves out the optional ones, the last
// first, cuts further, and in the end leaves out the last columns. A column that must be whole stays; the last one is wrapped, and the others leave it
// at least what is narrow. A width of 0 means no limit.
func fit(columns []column, width int) []column {
	if width <= 0 {
		return columns
	}
	for !cut(columns, width, legible) {
		at := lastOptional(columns)
		if at < 0 {
			break
		}
		columns = slices.Delete(columns, at, at+1)
	}
	if slices.ContainsFunc(columns, func(c column) bool { return c.whole }) {
		if last := &columns[len(columns)-1]; last.whole {
			last.width = min(last.width, narrow)
		}
		cut(columns, width, least)
		return columns
	}
	for !cut(columns, width, least) && len(columns) > 1 {
		columns = columns[:len(columns)-1]
	}
	return columns
}

// wrap breaks the lines of the last column if it must be whole and a terminal has no room for it. Where little is left by the other columns, they begin
// below these.
func wrap(columns []column, width int) {
	last := &columns[len(columns)-1]
	start := 0
	for _, c := range columns[:len(columns)-1] {
		start += c.width + len(gap)
	}
	if !last.whole || width < narrow {
		return
	}
	for i, text := range last.cells {
		above, from := "", start
		if width-start < wide && runewidth.StringWidth(text) > width-start {
			above, from = "\n"+gap, len(gap)
		}
		last.cells[i] = above + strings.ReplaceAll(fold(text, width-from), "\n", "\n"+strings.Repeat(" ", from))
	}
}

// commands are those in a text, in backquotes; quoted are the words of a shell that may hold spaces.
var commands, quoted = regexp.MustCompile("`[^`]*`"), regexp.MustCompile(`'[^']*'`)

// fold breaks a text into lines. A command can still be copied: a line that ends within it ends in a backslash, and its words stay whole, even
// those that are wider than a line.
func fold(text string, width int) string {
	const hyphen, space = "\ue000", "\ue001" // they stand for those at which no line ends
	if !strings.Contains(text, "`") {
		lines := ansi.Wrap(text, width, ",")
		if slices.ContainsFunc(strings.Split(lines, "\n"), func(l string) bool { return runewidth.StringWidth(l) > width }) { // by a comma
			lines = ansi.Wrap(text, width-1, ",")
		}
		return lines
	}
	text = commands.ReplaceAllStringFunc(text, func(c string) string {
		return strings.ReplaceAll(quoted.ReplaceAllStringFunc(c, func(word string) string { return strings.ReplaceAll(word, " ", space) }), "-", hyphen)
	})
	text = commands.ReplaceAllStringFunc(ansi.Wordwrap(text, width-2, ""), func(c string) string { return strings.ReplaceAll(c, "\n", " \\\n") })
	return strings.NewReplacer(hyphen, "-", space, " ").Replace(text)
}

// Lines breaks a text into lines. A command in it stands on lines of its own, without its backquotes, so that it can be copied.
func Lines(text string, width int) (lines []string) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			part = strings.ReplaceAll(fold("`"+part+"`", width), "`", "")
		} else if part = strings.Trim(part, " ."); part != "" { // what is left of a sentence
			part = fold(part+map[bool]string{true: ".", false: ""}[!strings.HasSuffix(part, ":")], width)
		} else {
			continue
		}
		lines = append(lines, strings.Split(part, "\n")...)
	}
	return lines
}

func lastOptional(columns []column) int {
	for i := len(columns) - 1; i >= 0; i-- {
		if columns[i].optional {
			return i
		}
	}
	return -1
}

// cut takes from the widest columns until all fit into width, and reports whether they do. No column gets narrower than
// floor. If they cannot fit, it changes nothing.
func cut(columns []column, width, floor int) bool {
	excess, give := -width-len(gap), 0
	for i := range columns {
		excess += columns[i].width + len(gap)
		if !columns[i].whole {
			give += max(0, columns[i].width-floor)
		}
	}
	if give < excess {
		return false
	}
	for ; excess > 0; excess-- {
		widest := -1
		for i := range columns {
			if !columns[i].whole && (widest < 0 || columns[i].width > columns[widest].width) {
				widest = i
			}
		}
		columns[widest].width--
	}
	return true
}
