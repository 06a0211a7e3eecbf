package commands

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/node"
)

func versionCommand(b node.Build) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the Go version and the revision it was built from",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "curfew %s %s %s\n", b.Version, runtime.Version(), b.Revision)
			return err
		},
	}
}
