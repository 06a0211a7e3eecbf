package commands

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/node"
	"curfew/cmd/internal/settings"
)

func serveCommand(b node.Build) *cobra.Command {
	clock := ""
	c := &cobra.Command{
		Use: "serve",
		Example: `  curfew serve
  curfew serve --clock manual`,
		Short: "Run the broker and its deadline monitor until SIGTERM or SIGINT; SIGHUP reads the alerts file again",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := settings.Load()
			if err != nil {
				return err
			}
			if err := s.UseClock(clock); err != nil {
				return err
			}
			if err := s.CheckServe(); err != nil {
				return err
			}
			log, err := newLogger(s.LogLevel, s.LogFormat)
			if err != nil {
				return err
			}
			defer log.Sync()               //nolint:errcheck // stderr may not be a file
			signal.Ignore(syscall.SIGPIPE) // keep serving when nobody reads the log
			defer onAbort(log)()
			return runUntilSignal(cmd.Context(), log, func(ctx context.Context) error {
				return node.Serve(ctx, node.Options{Settings: &s, Build: b, Log: log}, cmd.OutOrStdout())
			})
		},
	}
	c.Flags().StringVar(&clock, "clock", "", "system, or manual for tests: the clock of deadlines stands until curfew clock moves it (default CURFEW_CLOCK)")
	cli.Offers(c, "clock", "system", "manual")
	return c
}
