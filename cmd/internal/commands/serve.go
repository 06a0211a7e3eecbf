package commands

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

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

// newLogger returns a logger to stderr, with one JSON object per line, or columns on a terminal. It does
// not sample. level and format are values of LOG_LEVEL and LOG_FORMAT.
func newLogger(level, format string) (*zap.Logger, error) {
	least, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	c := zap.NewProductionConfig()
	if format == "console" || format == "auto" && cli.OnTerminal(os.Stderr) {
		c = zap.NewDevelopmentConfig()
		c.Development = false
	}
	c.Level = zap.NewAtomicLevelAt(least)
	c.Sampling = nil
	c.DisableCaller, c.DisableStacktrace = true, true
	c.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	c.EncoderConfig.EncodeDuration = zapcore.StringDurationEncoder
	return c.Build()
}

// stopLimit is how long a graceful stop may take.
const stopLimit = 10 * time.Second

// runUntilSignal runs fn until it returns. The first SIGTERM or SIGINT ends its context; it then has
// stopLimit to return. A second signal ends the process at once.
func runUntilSignal(ctx context.Context, log *zap.Logger, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ended := make(chan error, 1)
	go func() { ended <- fn(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-signals:
	case <-ctx.Done():
	}
	signal.Stop(signals) // before fn can announce that it is stopping: from then on a second signal has its default effect
	cancel()
	log.Info("stopping")
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case err := <-ended:
		if err == nil {
			log.Info("stopped")
		}
		return err
	case <-limit.C:
		return fmt.Errorf("stopping took longer than %s", stopLimit)
	}
}

// maxStacks bounds how much of the stacks is written, in bytes.
const maxStacks = 16 << 20

// onAbort makes SIGABRT, which systemd's watchdog sends, and SIGQUIT write the stacks of all goroutines to
// stderr and end the process with exitAborted, until stop is called. Without it, Go's runtime would write them
// and end the process with 2, the code of a wrong command line.
func onAbort(log *zap.Logger) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGABRT, syscall.SIGQUIT)
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		stacks := make([]byte, maxStacks)
		_, _ = os.Stderr.Write(stacks[:runtime.Stack(stacks, true)]) // a failure cannot be reported anywhere
		log.Error("aborted; the stacks of all goroutines are above", zap.Stringer("signal", s))
		os.Exit(exitAborted)
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
