package commands

import (
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
)

// clockTime is what the API says of the clock.
type clockTime struct {
	Manual bool  `json:"manual"`
	Now    int64 `json:"now"`
	Next   int64 `json:"next"`
}

func clockCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "clock",
		Short: "Show or move the clock of a Curfew that was started with --clock manual, for tests",
		Args:  cli.NoArguments,
	}
	c.Long = `With --clock manual the clock of deadlines stands until it is moved. What is due until then (deadlines, delays, locks, idle
queues, retries) happens in order of time, and has happened when the command returns. Only administrators may move it.`
	c.Example = `  curfew clock
  curfew clock advance 1h
  curfew clock next`
	a := cli.WithAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return callClock(cmd, a, http.MethodGet, nil) }
	c.AddCommand(&cobra.Command{
		Use:     "advance <duration>",
		Short:   "Move it forward, such as by 90s or 1h30m; 0s waits for what is due now",
		Example: "  curfew clock advance 1h",
		Args:    cli.Exactly(1, "a duration such as 90s, 1h30m or 0s"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d, err := time.ParseDuration(args[0]); err != nil || d < 0 {
				return cli.Usagef("clock advance: %q is invalid: want a duration such as 90s, 1h30m or 0s", args[0])
			}
			return callClock(cmd, a, http.MethodPost, map[string]any{"advance": args[0]})
		},
	}, &cobra.Command{
		Use:     "next",
		Short:   "Move it to the next instant at which something happens",
		Example: "  curfew clock next",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return callClock(cmd, a, http.MethodPost, map[string]any{"next": true})
		},
	})
	return c
}

func callClock(cmd *cobra.Command, a *cli.API, method string, send any) error {
	var t clockTime
	if err := a.Call(cmd.Context(), method, cli.Path("curfew", "clock"), send, &t); err != nil {
		return err
	}
	now, next := time.UnixMilli(t.Now).UTC(), "-"
	if t.Next != 0 {
		next = cli.From(now, time.UnixMilli(t.Next))
	}
	kind := "system"
	if t.Manual {
		kind = "manual"
	}
	return a.Print(cmd.OutOrStdout(), t, []string{"CLOCK", "NOW", "NEXT"}, [][]string{{kind, now.Format("2006-01-02T15:04:05.000Z"), next}})
}
