package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"curfew/cmd/internal/cli"
)

const demoHelp = `Without --against: run a broker of its own for some seconds and watch deadlines fire on a queue that nobody consumes.

With --against: fill the virtual host demo of a running Curfew, so that every page of its dashboard and every command has something to
show. It makes deadlines that will be met and others at risk, dead letters with four causes, a consumer that holds messages, and alerts. It
goes on until it is interrupted, at most for --for, and then deletes the virtual host. It touches no other. Records in the audit and
alerts stay.

It does not fill Curfew on another machine, where the alerts may wake somebody, unless --yes is given (exit code 5).`

// maxDemo is the longest time for which the demo fills a running Curfew.
const maxDemo = 24 * time.Hour

func demoCommand() *cobra.Command {
	var against, amqp string
	var yes, clean bool
	life := 30 * time.Minute
	c := &cobra.Command{
		Use:   "demo",
		Short: "Watch deadlines fire on a queue that nobody consumes; with --against, fill a running Curfew with examples",
		Long:  demoHelp,
		Example: `  curfew demo
  curfew demo --against http://127.0.0.1:15672
  curfew demo --against http://127.0.0.1:15672 --clean`,
		Args: cli.NoArguments,
	}
	a := cli.WithAPI(c)
	f := c.Flags()
	f.StringVar(&against, "against", "", "management API of the running Curfew to fill, such as http://127.0.0.1:15672")
	f.StringVar(&amqp, "amqp", "", "where it takes AMQP (default: the address that the API names)")
	f.DurationVar(&life, "for", life, "stop filling after this time")
	f.BoolVar(&yes, "yes", false, "fill it even if it is on another machine")
	f.BoolVar(&clean, "clean", false, "only delete what an earlier demo left")
	for _, name := range []string{"url", "output", "color"} {
		c.PersistentFlags().Lookup(name).Hidden = true // --against is used instead
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if against == "" {
			return runUntilSignal(cmd.Context(), zap.NewNop(), func(ctx context.Context) error {
				return runDemo(ctx, cmd.OutOrStdout(), TTLs)
			})
		}
		if life <= 0 || life > maxDemo {
			return cli.Usagef("--for: %[2]s is invalid: want a duration of at most %[1]s", maxDemo, life)
		}
		if err := c.PersistentFlags().Set("url", against); err != nil {
			return err
		}
		at, err := a.Endpoint()
		if err != nil {
			return err
		}
		filler := &Filler{Client: a.Client, At: at, AMQP: amqp, Out: cmd.OutOrStdout()}
		if clean {
			found, err := filler.Clean(cmd.Context())
			if err == nil && !found {
				fmt.Fprintln(cmd.OutOrStdout(), "there is nothing to delete")
			}
			return err
		}
		if filler.Remote() && !yes {
			return cli.Exitf(cli.ExitUnconfirmed, "%s is on another machine, where the alerts may wake somebody. To fill it anyway add --yes", at.URL)
		}
		return fill(cmd, filler, life)
	}
	return c
}

// fill fills a running Curfew for a time and cleans up.
func fill(cmd *cobra.Command, f *Filler, life time.Duration) error {
	out := cmd.OutOrStdout()
	return runUntilSignal(cmd.Context(), zap.NewNop(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, life)
		defer cancel()
		fmt.Fprintf(out, "Filling the virtual host demo of %s until you press ctrl-C, at most for %s:\n", f.At.URL, life)
		err := f.Fill(ctx)
		if errors.Is(err, ErrNotOurs) {
			return err
		}
		fmt.Fprintln(out, "Deleting the virtual host demo.")
		end, ended := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer ended()
		_, failed := f.Clean(end)
		return errors.Join(err, failed)
	})
}
