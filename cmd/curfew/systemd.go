package main

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// tellSystemd says to systemd, if it started this process and wants to know (Type=notify), that it is
// ready, every half of WatchdogSec that it is alive, and when ctx ends that it is stopping. stop waits
// until nothing more is said.
func tellSystemd(ctx context.Context, alive func() bool, log *zap.Logger) (stop func()) {
	supervised, err := daemon.SdNotify(false, daemon.SdNotifyReady)
	if err != nil {
		log.Warn("systemd was not told that Curfew is ready", zap.Error(err))
	}
	if !supervised {
		return func() {}
	}
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog is not served", zap.Error(err))
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		feedWatchdog(ctx, within, alive)
		_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) // systemd knows, or will see that the process ends
	}()
	return func() {
		cancel()
		<-ended
	}
}

// feedWatchdog says that the process is alive twice in the time systemd waits for it; 0: never. It
// returns when ctx ends.
func feedWatchdog(ctx context.Context, within time.Duration, alive func() bool) {
	if within == 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(within / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if alive() {
				_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog) // else systemd acts, as it should
			}
		case <-ctx.Done():
			return
		}
	}
}
