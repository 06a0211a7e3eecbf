package commands

import (
	"github.com/spf13/cobra"

	"curfew/cmd/internal/node"
	"curfew/cmd/internal/settings"
)

func configCommand() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every variable with its default, its present value and what it means; check them and the files that they name",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if markdown {
				return settings.WriteMarkdown(cmd.OutOrStdout())
			}
			s, err := settings.Load()
			if err != nil {
				return err
			}
			if err := node.Check(&s); err != nil {
				return err
			}
			if _, err := configuredIncidents(&s); err != nil {
				return err
			}
			return s.WriteTable(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the tables of docs/reference/configuration.md instead, without the present values")
	return cmd
}
