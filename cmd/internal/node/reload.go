package node

import (
	"os"
	"os/signal"
	"syscall"
)

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
