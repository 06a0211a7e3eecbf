package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"curfew/monitor/printable"
)

// watchEvery is how often a command with --watch repeats.
const watchEvery = 2 * time.Second

// watched adds the flag --watch to a command. With it the command runs again and again until it is
// interrupted, even if the server is away in between. On a terminal it clears the screen before each run.
func watched(c *cobra.Command) *cobra.Command {
	var again bool
	c.Flags().BoolVarP(&again, "watch", "w", false, "show it every two seconds until interrupted")
	show := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		for first := true; ; first = false {
			if again && onTerminal(cmd.OutOrStdout()) {
				fmt.Fprint(cmd.OutOrStdout(), "\x1b[H\x1b[2J")
			}
			err := show(cmd, args)
			if !again || first && err != nil {
				return err
			}
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "curfew:", printable.Text(err.Error(), "\n\t"))
			}
			if !pause(cmd.Context(), watchEvery) {
				return nil
			}
		}
	}
	return c
}

// pause waits for d. It returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// onTerminal reports whether w is a terminal.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}
