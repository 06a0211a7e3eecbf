package commands

import (
	"fmt"

	"github.com/spf13/cobra"
)

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown command %q; curfew help lists them", args[0])}
	}
	return nil
}

func noArguments(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.Name(), args)}
	}
	return nil
}

// exactly checks that a command gets n arguments.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && n > 0:
			return usageError{fmt.Errorf("%s takes %s", cmd.CommandPath(), names)}
		case len(args) != n:
			return usageError{fmt.Errorf("%s takes %s, got %q", cmd.CommandPath(), names, args)}
		}
		return nil
	}
}

// group runs a command that only has subcommands: it prints the help.
func group(name, has string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageError{fmt.Errorf("unknown command %q; curfew %s %s", args[0], name, has)}
		}
		return cmd.Help()
	}
}
