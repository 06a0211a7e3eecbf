package main

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
)

var (
	manLinks = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	manBold  = regexp.MustCompile("`([^`]*)`|\\*\\*([^*]*)\\*\\*")
)

// writeMan writes the page of the command line, which is in Markdown, as a man page. It knows what that page uses: headings, paragraphs,
// lists, tables and blocks of code.
func (r *release) writeMan(w io.Writer, page string) error {
	var out strings.Builder
	fmt.Fprintf(&out, ".TH CURFEW 1 %q %q %q\n.SH NAME\ncurfew \\- AMQP 0-9-1 broker whose message deadlines fire on time\n", r.time.UTC().Format("2006-01-02"), "Curfew "+r.number(), "Curfew")
	code, table := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		isRow := strings.HasPrefix(line, "|") && !code
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
			out.WriteString(map[bool]string{true: ".PP\n.nf\n", false: ".fi\n"}[code])
		case code:
			out.WriteString(manText(line, false) + "\n")
		case isRow:
			writeRow(&out, line, !table)
		case strings.HasPrefix(line, "# "), strings.HasPrefix(line, "<!--"):
		case strings.HasPrefix(line, "## "):
			fmt.Fprintf(&out, ".SH %s\n", strings.ToUpper(manText(line[3:], false)))
		case strings.HasPrefix(line, "#"):
			fmt.Fprintf(&out, ".SS %s\n", manText(strings.TrimLeft(line, "# "), false))
		case strings.HasPrefix(line, "- "):
			out.WriteString(".IP \\(bu 2\n" + manText(line[2:], true) + "\n")
		case line == "":
			out.WriteString(".PP\n")
		default:
			out.WriteString(manText(line, true) + "\n")
		}
		table = isRow
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeRow writes a row of a table: its first cell, and the others indented below it. The head and the line below it are left out.
func writeRow(out *strings.Builder, line string, head bool) {
	cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|")
	if head || strings.Trim(cells[0], "-: ") == "" {
		return
	}
	for i := range cells {
		cells[i] = manText(strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|"), true)
	}
	fmt.Fprintf(out, ".TP\n%s\n%s\n", cells[0], strings.Join(cells[1:], " "))
}

// manText is a line without what roff would read as its own.
func manText(line string, marked bool) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(html.UnescapeString(line))
	if marked {
		line = manBold.ReplaceAllString(manLinks.ReplaceAllString(line, "$1"), `\fB$1$2\fR`)
	}
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
