package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"curfew/monitor/printable"
)

// printer prints answers in the format that the flag --output chooses.
type printer struct{ output string }

// check refuses a format that does not exist.
func (p *printer) check() error {
	if p.output != "table" && p.output != "json" {
		return usageError{fmt.Errorf("-o takes table or json, not %q", p.output)}
	}
	return nil
}

// print writes v as JSON, or as a table: its head, then rows.
func (p *printer) print(w io.Writer, v any, head []string, rows [][]string) error {
	if p.output == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(v)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(head, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable.Text(cell, "")
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
