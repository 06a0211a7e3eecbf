package node

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// notifySystemd notifies systemd, if it started this process with Type=notify: once that it is ready,
// twice in each WatchdogSec that it is alive, and when ctx ends that it is stopping. stop waits for the
// last notification.
func notifySystemd(ctx context.Context, alive func() bool, log *zap.Logger) (stop func()) {
	supervised, err := daemon.SdNotify(false, daemon.SdNotifyReady)
	if err != nil {
		log.Warn("could not tell systemd that Curfew is ready", zap.Error(err))
	}
	if !supervised {
		return func() {}
	}
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog cannot be notified", zap.Error(err))
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		feedWatchdog(ctx, within, alive)
		_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) // if it fails, systemd sees that the process ends
	}()
	return func() {
		cancel()
		<-ended
	}
}

// feedWatchdog notifies systemd twice in the given time that the process is alive; 0: never. It returns
// when ctx ends.
func feedWatchdog(ctx context.Context, within time.Duration, alive func() bool) {
	if within == 0 {
		<-ctx.Done()
		return
	}
	for deadline.Sleep(ctx, within/2) {
		if alive() {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog) // if it fails, systemd restarts the process, as it should
		}
	}
}

// onHangup calls reload for every SIGHUP (systemctl reload) until stop is called. stop waits for a call
// that is running.
func onHangup(reload func()) (stop func()) {
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for range signals {
			reload()
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-ended
	}
}
