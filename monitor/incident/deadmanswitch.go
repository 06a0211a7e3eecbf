package incident

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// DeadManSwitch requests a URL again and again while this process is well, so that whoever waits
// for the requests notices when it is not well, or is gone.
type DeadManSwitch struct {
	read        func() (settings, error)
	stalled     func() []string
	poster      *poster
	log         *zap.Logger
	lastTime    *prometheus.GaugeVec // no labels; empty without a URL
	silentSince atomic.Int64         // Unix ns; 0: there is no URL
	now         deadManSwitch        // as last read without a mistake
	paused      bool                 // the log says that part of this process hangs
	failing     bool                 // the log says that the URL does not answer
}

// NewDeadManSwitch returns a switch that has not started. It uses o's File, Stalled, Log and Registerer;
// the first two are required. The file is read before each request, so the switch may be added, changed and
// removed while Run runs. The error says that the metric is registered already.
func NewDeadManSwitch(o Options) (*DeadManSwitch, error) {
	o = o.withDefaults()
	d := &DeadManSwitch{
		read: o.readSettings, stalled: o.Stalled, poster: newPoster(""), log: o.Log.Named("dead-man-switch"),
		lastTime: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "curfew_heartbeat_last_success_timestamp_seconds",
			Help: "When the URL of the dead man's switch last answered.",
		}, nil),
	}
	if err := o.Registerer.Register(d.lastTime); err != nil {
		return nil, fmt.Errorf("incident: register metric: %w", err)
	}
	return d, nil
}

// Run requests the URL until ctx ends, and then returns nil.
func (d *DeadManSwitch) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			d.poster.client.CloseIdleConnections()
			return nil
		}
		if s, err := d.read(); err == nil { // Incidents logs a mistake
			d.now = s.deadManSwitch
		}
		if d.now.url == "" {
			d.lastTime.Reset()
			d.silentSince.Store(0)
			timer.Reset(reloadEvery)
			continue
		}
		timer.Reset(d.now.every)
		d.lastTime.WithLabelValues()
		d.silentSince.CompareAndSwap(0, time.Now().UnixNano())
		d.ask(ctx)
	}
}

// Silent is how long the URL has not answered; 0 if there is none. Safe for concurrent use.
func (d *DeadManSwitch) Silent() time.Duration {
	if since := d.silentSince.Load(); since != 0 {
		return time.Since(time.Unix(0, since))
	}
	return 0
}

// ask requests the URL once, unless part of this process hangs.
func (d *DeadManSwitch) ask(ctx context.Context) {
	if hangs := d.stalled(); len(hangs) > 0 {
		if !d.paused {
			d.log.Error("the dead man's switch is paused: part of this process hangs", zap.String("stalled", strings.Join(hangs, "; ")))
		}
		d.paused = true
		return
	}
	if d.paused {
		d.log.Info("the dead man's switch is no longer paused")
	}
	d.paused = false
	d.poster.url = d.now.url
	err := d.poster.do(ctx, http.MethodGet, nil, http.Header{})
	if err == nil {
		d.lastTime.WithLabelValues().SetToCurrentTime()
		d.silentSince.Store(time.Now().UnixNano())
	} else if !d.failing && ctx.Err() == nil {
		d.log.Warn("the URL of the dead man's switch does not answer", zap.Error(err))
	}
	d.failing = err != nil
}
