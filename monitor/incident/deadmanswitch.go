package incident

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// deadManSwitch is the address that is requested, and how often. Without a URL there is none.
type deadManSwitch struct {
	url   string
	every time.Duration
}

// defaultEvery is how often the dead man's switch is requested.
const defaultEvery = 30 * time.Second

// heart requests the URL of the dead man's switch again and again while this process is well, so that whoever waits for the requests notices when
// it is not well, or is gone.
type heart struct {
	use         atomic.Pointer[deadManSwitch] // as last read without a mistake
	stalled     func() []string
	poster      *poster
	log         *zap.Logger
	lastTime    *prometheus.GaugeVec // no labels; empty without a URL
	silentSince atomic.Int64         // Unix ns; 0: there is no URL
}

// run requests the URL until ctx ends.
func (h *heart) run(ctx context.Context) {
	var paused, failing bool // the log says that part of this process hangs, or that the URL does not answer
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			h.poster.client.CloseIdleConnections()
			return
		}
		use := h.use.Load()
		if use == nil || use.url == "" {
			h.lastTime.Reset()
			h.silentSince.Store(0)
			timer.Reset(reloadEvery)
			continue
		}
		timer.Reset(use.every)
		h.lastTime.WithLabelValues()
		h.silentSince.CompareAndSwap(0, time.Now().UnixNano())
		if hangs := h.stalled(); len(hangs) > 0 {
			if !paused {
				h.log.Error("the dead man's switch is paused: part of this process hangs", zap.String("stalled", strings.Join(hangs, "; ")))
			}
			paused = true
			continue
		}
		if paused {
			h.log.Info("the dead man's switch is no longer paused")
		}
		h.poster.url, paused = use.url, false
		err := h.poster.do(ctx, http.MethodGet, nil, http.Header{})
		if err == nil {
			h.lastTime.WithLabelValues().SetToCurrentTime()
			h.silentSince.Store(time.Now().UnixNano())
		} else if !failing && ctx.Err() == nil {
			h.log.Warn("the URL of the dead man's switch does not answer", zap.Error(err))
		}
		failing = err != nil
	}
}

// silent is how long the URL has not answered; 0 if there is none.
func (h *heart) silent() time.Duration {
	if since := h.silentSince.Load(); since != 0 {
		return time.Since(time.Unix(0, since))
	}
	return 0
}
