package commands

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/store"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/settings"
)

func storeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Inspect, verify or repair a message store that no Curfew is using",
		RunE:  cli.Group,
	}
	c.AddCommand(
		storeReader("inspect", "List segments and queues with their contents", store.Inspect),
		storeReader("verify", "Read everything as a start would, and report damage", store.Verify),
		storeRepair(),
	)
	return c
}

func storeRepair() *cobra.Command {
	var yes bool
	c := storeReader("repair", "Put right what can be put right without a loss", nil)
	c.Long = `Reads everything as a start would. If a start would refuse the store, and that can be put right without losing anything that
is in the folder, repair says what is wrong and what it is going to do, and does it once you agree. It changes nothing otherwise.`
	c.Example = `  curfew store repair /var/lib/curfew
  curfew store repair --yes /var/lib/curfew`
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return readStore(cmd, args, func(dir string, w io.Writer) error {
			return store.Repair(dir, w, func() bool { return yes || agrees(cmd) })
		})
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// agrees asks on the command's output and reads a line.
func agrees(cmd *cobra.Command) bool {
	fmt.Fprint(cmd.OutOrStdout(), "Repair it? [y/N] ")
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil {
		fmt.Fprintln(cmd.OutOrStdout())
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// storeReader makes a command that reads the store in a folder, by default in CURFEW_DATA_DIR.
func storeReader(name, short string, read func(dir string, w io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " [folder]",
		Short: short,
		Args:  cli.Between(0, 1, "one folder"),
		RunE:  func(cmd *cobra.Command, args []string) error { return readStore(cmd, args, read) },
	}
}

func readStore(cmd *cobra.Command, args []string, read func(dir string, w io.Writer) error) error {
	dir := strings.Join(args, "") // one at most
	if len(args) == 0 {
		s, err := settings.Load()
		if err == nil && s.DataDir == "" {
			err = cli.Usagef("CURFEW_DATA_DIR is empty: name the folder of the store")
		}
		if err != nil {
			return err
		}
		dir = s.DataDir
	}
	if err := read(dir, cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
