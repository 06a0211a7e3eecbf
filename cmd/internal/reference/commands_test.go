package reference

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/commands"
	"curfew/cmd/internal/node"
)

// exitCodes is what `curfew help` says about them, as a table.
func exitCodes(t *testing.T) string {
	_, list, found := strings.Cut(commands.Tree(node.Build{}).Long, "Exit codes: ")
	require.True(t, found)
	out := newTable("Code", "Meaning")
	for one := range strings.SplitSeq(strings.TrimSuffix(strings.ReplaceAll(list, "\n", " "), "."), "; ") {
		number, meaning, _ := strings.Cut(one, " ")
		require.Regexp(t, `^\d$`, number)
		out.row(number, meaning)
	}
	return out.String()
}

// precedence is what the help of commands says.
func precedence(*testing.T) string { return prose(cli.Precedence) }

// callFlags are those of all commands that call a running Curfew.
const callFlags = "url user password-file output color"

// commandPages has a section for each command.
func commandPages(t *testing.T) string {
	var out strings.Builder
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" {
			return
		}
		describeCommand(t, &out, c)
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	root := commands.Tree(node.Build{})
	sample, _, err := root.Find([]string{"queue", "list"})
	require.NoError(t, err)
	out.WriteString("### Flags of commands that call a running Curfew\n\n")
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	for name := range strings.FieldsSeq(callFlags) {
		shared.AddFlag(sample.InheritedFlags().Lookup(name))
	}
	out.WriteString(flagTable(shared) + "\n")
	for _, sub := range root.Commands() {
		visit(sub)
	}
	return out.String()
}

func describeCommand(t *testing.T, out *strings.Builder, c *cobra.Command) {
	level := "###"
	if c.Parent().HasParent() {
		level = "####"
	}
	fmt.Fprintf(out, "%s %s\n\n%s.\n\n", level, c.CommandPath(), strings.TrimSuffix(upper(c.Short), "."))
	if c.Long != "" && c.Long != c.Short {
		out.WriteString(prose(c.Long) + "\n\n")
	}
	if c.HasSubCommands() {
		var names []string
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				names = append(names, fmt.Sprintf("[`%s`](#%s)", sub.Name(), anchor(sub.CommandPath())))
			}
		}
		fmt.Fprintf(out, "Commands: %s\n\n", strings.Join(names, ", "))
	}
	if !c.HasSubCommands() || len(c.LocalNonPersistentFlags().FlagUsages()) > 0 {
		fmt.Fprintf(out, "Usage: `%s`\n\n", c.UseLine())
	}
	own, calls := pflag.NewFlagSet("", pflag.ContinueOnError), c.Flags().Lookup("password-file") != nil
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		isCall := strings.Contains(" "+callFlags+" ", " "+f.Name+" ")
		calls = calls || isCall && f.Name == "url" && c.LocalFlags().Lookup("password-file") != nil
		if f.Name != "help" && !f.Hidden && !(isCall && c.LocalFlags().Lookup("password-file") != nil) {
			own.AddFlag(f)
		}
	})
	if own.HasFlags() {
		out.WriteString(flagTable(own) + "\n")
	}
	if !c.HasSubCommands() && calls || c.InheritedFlags().Lookup("password-file") != nil {
		out.WriteString("It takes the [flags of commands that call a running Curfew](#flags-of-commands-that-call-a-running-curfew)")
		for parent := c.Parent(); c.InheritedFlags().Lookup("vhost") != nil && parent != nil; parent = parent.Parent() {
			if parent.PersistentFlags().Lookup("vhost") != nil {
				fmt.Fprintf(out, ", and `--vhost` of [`%s`](#%s)", parent.CommandPath(), anchor(parent.CommandPath()))
				break
			}
		}
		out.WriteString(".\n\n")
	}
	if c.Example != "" {
		require.NotContains(t, c.Example, "```")
		fmt.Fprintf(out, "```text\n%s\n```\n\n", unindent(c.Example))
	}
}

func flagTable(flags *pflag.FlagSet) string {
	out := newTable("Flag", "Default", "Meaning")
	flags.VisitAll(func(f *pflag.Flag) {
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		initial := f.DefValue
		if initial == "[]" || initial == "false" {
			initial = ""
		}
		out.row(code(name), code(initial), usage)
	})
	return out.String()
}

// anchor is GitHub's name of a heading.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

func upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// prose is the help of a command in Markdown: paragraphs as they are, and what is indented or stands in columns as a block of text.
func prose(help string) string {
	var out []string
	for _, paragraph := range strings.Split(strings.TrimSpace(help), "\n\n") {
		if regexp.MustCompile(`(?m)^  |\S {2,}\S`).MatchString(paragraph) {
			paragraph = "```text\n" + unindent(paragraph) + "\n```"
		}
		out = append(out, paragraph)
	}
	return strings.ReplaceAll(strings.Join(out, "\n\n"), "\n```\n\n```text\n", "\n\n")
}

// unindent takes away the indent that all lines have.
func unindent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	least := -1
	for _, line := range lines {
		if indent := len(line) - len(strings.TrimLeft(line, " ")); strings.TrimSpace(line) != "" && (least < 0 || indent < least) {
			least = indent
		}
	}
	for i, line := range lines {
		lines[i] = line[min(max(least, 0), len(line)):]
	}
	return strings.Join(lines, "\n")
}
