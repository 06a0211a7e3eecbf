package cli

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/deadline"
	"curfew/monitor/printable"
)

// watchEvery is how often a command with --watch repeats.
const watchEvery = 2 * time.Second

// Watched adds the flag --watch to a command. With it the command runs again and again until it is
// interrupted, even if the server is away in between. On a terminal it clears the screen for each run, and shows what fits
// there: the beginning says most. Below that stands what else it says, and an error.
func Watched(c *cobra.Command) *cobra.Command {
	var again bool
	c.Flags().BoolVarP(&again, "watch", "w", false, "show it every two seconds until interrupted")
	show := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		out, besides := cmd.OutOrStdout(), cmd.ErrOrStderr()
		clears := again && OnTerminal(out)
		for first := true; ; first = false {
			shown, notes := &screenful{}, &bytes.Buffer{}
			if clears {
				shown.file = out.(file)
				cmd.SetOut(shown)
				cmd.SetErr(notes)
			}
			err := show(cmd, args)
			if err != nil && again && !first {
				fmt.Fprintln(cmd.ErrOrStderr(), "curfew:", printable.Text(err.Error(), "\n\t"))
			}
			if clears {
				cmd.SetErr(besides)
				_, height := sizeOf(out)
				shown.show(out, besides, notes, height)
			}
			if !again || first && err != nil {
				return err
			}
			if !deadline.Sleep(cmd.Context(), watchEvery) {
				return nil
			}
		}
	}
	return c
}

// screenful is what goes to a terminal.
type screenful struct {
	file
	bytes.Buffer
}

// show clears the screen and prints it, with the notes below it.
func (s *screenful) show(out, besides io.Writer, notes *bytes.Buffer, height int) {
	s.print(out, height-max(bytes.Count(notes.Bytes(), []byte("\n")), 1))
	_, _ = notes.WriteTo(besides)
}

// print clears the screen and prints that many lines, or one less and that there are more. Up to 0: all.
func (s *screenful) print(out io.Writer, lines int) {
	fmt.Fprint(out, "\x1b[H\x1b[2J")
	more := bytes.Count(s.Bytes(), []byte("\n")) - lines
	for range lines {
		line, err := s.ReadBytes('\n')
		if lines--; err == nil && more > 0 && lines == 0 {
			fmt.Fprintf(out, "... and %d more: make the window higher, or leave out --watch\n", more+1)
			return
		}
		_, _ = out.Write(line) // as for all that is printed
	}
	_, _ = out.Write(s.Bytes())
}
