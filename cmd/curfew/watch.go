package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// watchEvery is how often a command with --watch looks again.
const watchEvery = 2 * time.Second

// watched gives a command that shows something the flag --watch: it shows it again and again until it
// is interrupted, also when what it asks was away in between. On a terminal the screen is cleared
// before each.
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
				fmt.Fprintln(cmd.ErrOrStderr(), "curfew:", visible(err.Error(), "\n\t"))
			}
			if !pause(cmd.Context(), watchEvery) {
				return nil
			}
		}
	}
	return c
}

// pause waits; false if ctx ended.
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

// onTerminal says whether somebody looks at what is written to w.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}
