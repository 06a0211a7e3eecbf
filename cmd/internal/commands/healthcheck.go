package commands

import (
	"fmt"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/settings"
)

func healthcheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the Curfew on CURFEW_OPS_ADDR whether it is ready: exit code 0 or 1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := settings.Load()
			if err != nil {
				// Not wrapped, so that it is not a settings.Error: Docker reserves all codes but 0 and 1.
				return fmt.Errorf("healthcheck: %s", err)
			}
			if err := cli.Ready(cmd.Context(), settings.Reachable(s.OpsAddr)); err != nil {
				return fmt.Errorf("healthcheck: %w", err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return err
		},
	}
}
