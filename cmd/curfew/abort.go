package main

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"go.uber.org/zap"
)

// maxStacks bounds what is written of the stacks, in bytes.
const maxStacks = 16 << 20

// onAbort has SIGABRT, which systemd's watchdog sends, and SIGQUIT write the stacks of all goroutines to
// stderr and end the process with exitAborted, until stop is called. Without it Go's runtime writes them
// and ends with 2, as a wrong command line does.
func onAbort(log *zap.Logger) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGABRT, syscall.SIGQUIT)
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		stacks := make([]byte, maxStacks)
		_, _ = os.Stderr.Write(stacks[:runtime.Stack(stacks, true)]) // nowhere to say that it failed
		log.Error("aborted, the stacks of all goroutines are above", zap.Stringer("signal", s))
		os.Exit(exitAborted)
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
