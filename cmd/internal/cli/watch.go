package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/deadline"
	"curfew/monitor/printable"
)

// watchEvery is how often a command with --watch repeats.
const watchEvery = 2 * time.Second

// Watched adds the flag --watch to a command. With it the command runs again and again until it is
// interrupted, even if the server is away in between. On a terminal it clears the screen before each run.
func Watched(c *cobra.Command) *cobra.Command {
	var again bool
	c.Flags().BoolVarP(&again, "watch", "w", false, "show it every two seconds until interrupted")
	show := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		for first := true; ; first = false {
			if again && OnTerminal(cmd.OutOrStdout()) {
				fmt.Fprint(cmd.OutOrStdout(), "\x1b[H\x1b[2J")
			}
			err := show(cmd, args)
			if !again || first && err != nil {
				return err
			}
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "curfew:", printable.Text(err.Error(), "\n\t"))
			}
			if !deadline.Sleep(cmd.Context(), watchEvery) {
				return nil
			}
		}
	}
	return c
}
