package cli

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// NoArguments checks that a command gets none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments, got %q", cmd.Name(), args)
	}
	return nil
}

// noneOrVerb checks that a command gets no arguments. What it got may have been meant for one of its subcommands.
func noneOrVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.HasSubCommands() {
		return Group(cmd, args)
	}
	return NoArguments(cmd, args)
}

// Exactly checks that a command gets n arguments. names describes them.
func Exactly(n int, names string) cobra.PositionalArgs { return Between(n, n, names) }

// Between checks that a command gets at least and at most a number of arguments. names describes them.
func Between(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && least > 0:
			return Usagef("%s takes %s", cmd.CommandPath(), names)
		case len(args) < least || len(args) > most:
			return Usagef("%s takes %s, got %q", cmd.CommandPath(), names, args)
		}
		return nil
	}
}

// Group runs a command that only has subcommands: it prints the help.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var has []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			has = append(has, sub.Name())
		}
	}
	return Usagef("unknown command %q; %s has %s", args[0], cmd.CommandPath(), strings.Join(has, ", "))
}

// ReadFile reads the file with that name; - is standard input.
func ReadFile(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	return os.ReadFile(name)
}

// OrDash is text for a cell of a table.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Create makes a file to write to, with a function that closes it. If name is "", it returns out.
func Create(out io.Writer, name string) (io.Writer, func() error, error) {
	if name == "" {
		return out, func() error { return nil }, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return f, func() error { return errors.Join(f.Sync(), f.Close()) }, nil
}
