package settings

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// WriteTable writes every variable with its default, its present value and what it means. Secrets are not shown.
func (s *Settings) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(v variable, value string) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", v.name, cmp.Or(v.initial, "-"), cmp.Or(value, "-"), v.meaning())
	}
	fmt.Fprintln(table, "VARIABLE\tDEFAULT\tVALUE\tMEANING")
	var secrets []string
	for _, v := range variablesOf(s) {
		row(v, v.displayValue())
		if v.secret {
			secrets = append(secrets, v.name)
		}
	}
	for _, v := range append(groupedOtelVariables(), otherOtelVariables(os.Environ())...) {
		row(v, displayOtel(v))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nA secret of CURFEW_ (%s) may also be read from the file that <variable>_FILE names.\n", strings.Join(secrets, ", "))
	return err
}

// WriteMarkdown writes the tables of docs/reference/configuration.md: no present values, one table for each group.
func WriteMarkdown(w io.Writer) error {
	var lines []string
	var group string
	for _, v := range append(variablesOf(new(Settings)), groupedOtelVariables()...) {
		if v.group != group {
			group = v.group
			lines = append(lines, "", "### "+group, "", "| Variable | Default | Meaning |", "|---|---|---|")
		}
		initial := "empty"
		if v.initial != "" {
			initial = "`" + v.initial + "`"
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", v.name, initial, v.meaning()))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines[1:], "\n"))
	return err
}

// meaning is the description, with the allowed values and the alias.
func (v variable) meaning() string {
	text := v.desc
	if v.allow != "" {
		text += " (" + v.takes() + ")"
	}
	if v.alias != "" {
		text += "; alias " + v.alias
	}
	return text
}
