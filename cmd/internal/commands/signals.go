package commands

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"go.uber.org/zap"
)

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
