package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func configCommand() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every variable with its default, its present value and what it means",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if markdown {
				return printMarkdown(cmd.OutOrStdout())
			}
			c, err := loadConfig()
			if err != nil {
				return err
			}
			return printTable(cmd.OutOrStdout(), &c)
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the tables of the README instead: no present values")
	return cmd
}

func printTable(w io.Writer, c *config) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VARIABLE\tDEFAULT\tVALUE\tMEANING")
	for _, s := range settingsOf(c) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.name, orDash(s.initial), orDash(s.shown()), s.meaning())
	}
	for _, s := range append(otelSettings(), otherOtelSettings(os.Environ())...) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.name, orDash(s.initial), orDash(shownTelemetry(s)), s.meaning())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nA secret of CURFEW_ (%s) may also be read from the file that <variable>_FILE names.\n", strings.Join(secretNames(c), ", "))
	return err
}

func printMarkdown(w io.Writer) error {
	_, err := fmt.Fprintln(w, strings.Join(markdownTables(), "\n"))
	return err
}

// markdownTables are the README's tables of variables, one a group, line by line.
func markdownTables() (lines []string) {
	var group string
	for _, s := range append(settingsOf(new(config)), otelSettings()...) {
		if s.group != group {
			group = s.group
			lines = append(lines, "", "### "+group, "", "| Variable | Default | Meaning |", "|---|---|---|")
		}
		lines = append(lines, s.markdown())
	}
	return lines[1:]
}

// markdown is a line of the table.
func (s setting) markdown() string {
	initial := "empty"
	if s.initial != "" {
		initial = "`" + s.initial + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s |", s.name, initial, s.meaning())
}

// meaning is the description with what the variable takes and where else it is read from.
func (s setting) meaning() string {
	text := s.desc
	if s.allow != "" {
		text += " (" + s.takes() + ")"
	}
	if s.alias != "" {
		text += "; alias " + s.alias
	}
	return text
}

func secretNames(c *config) (names []string) {
	for _, s := range settingsOf(c) {
		if s.secret {
			names = append(names, s.name)
		}
	}
	return names
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
