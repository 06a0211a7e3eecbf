package commands

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"curfew/broker/store"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/settings"
)

func storeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Inspect or verify a message store that no Curfew is using",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("unknown command %q; curfew store inspect or curfew store verify", args[0])
			}
			return cmd.Help()
		},
	}
	c.AddCommand(
		storeReader("inspect", "List segments and queues with their contents", store.Inspect),
		storeReader("verify", "Read everything as a start would, and report damage", store.Verify),
	)
	return c
}

// storeReader makes a command that reads the store in a folder, by default in CURFEW_DATA_DIR.
func storeReader(name, short string, read func(dir string, w io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " [folder]",
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("store %s: want one folder, got %q", name, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := storeFolder(args)
			if err != nil {
				return err
			}
			if err := read(dir, cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			return nil
		},
	}
}

func storeFolder(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	s, err := settings.Load()
	if err == nil && s.DataDir == "" {
		err = cli.Usagef("CURFEW_DATA_DIR is empty: name the folder of the store")
	}
	return s.DataDir, err
}
