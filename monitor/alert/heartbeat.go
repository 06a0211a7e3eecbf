package alert

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Heartbeat asks for a URL again and again while this process is well, so that who
// expects that notices when it is not, or is gone: a dead man's switch.
type Heartbeat struct {
	url      string
	client   *http.Client
	every    time.Duration
	stalled  func() []string
	log      *zap.Logger
	lastTime prometheus.Gauge
	silent   bool // what hangs has been logged
	failing  bool // as has that the URL does not answer
}

// HeartbeatOptions of a Heartbeat; all but Allow, Log and Registerer are required.
type HeartbeatOptions struct {
	URL   string // asked for with GET; http or https
	Every time.Duration
	// Stalled says which parts of the process hang; empty: it is well.
	Stalled    func() []string
	Allow      []string // as in Options
	Log        *zap.Logger
	Registerer prometheus.Registerer
}

// NewHeartbeat returns a heartbeat that does not beat yet. Its error says that the URL
// is none, or that the metric is registered already; it does not repeat the URL.
func NewHeartbeat(o HeartbeatOptions) (*Heartbeat, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("alert: the URL of the heartbeat must be http://... or https://")
	}
	within, err := newReach(o.Allow)
	if err != nil {
		return nil, err
	}
	h := &Heartbeat{
		url: u.String(), client: within.client(u), every: o.Every, stalled: o.Stalled, log: orDefault(o.Log, zap.NewNop()).Named("heartbeat"),
		lastTime: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "curfew_heartbeat_last_success_timestamp_seconds",
			Help: "When the URL of the heartbeat last answered.",
		}),
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(h.lastTime); err != nil {
			return nil, fmt.Errorf("alert: register metric: %w", err)
		}
	}
	return h, nil
}

// Run beats until ctx ends, and returns nil then.
func (h *Heartbeat) Run(ctx context.Context) error {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		h.beat(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.client.CloseIdleConnections()
			return nil
		}
	}
}

func (h *Heartbeat) beat(ctx context.Context) {
	if hangs := h.stalled(); len(hangs) > 0 {
		if !h.silent {
			h.log.Error("the heartbeat stops: something hangs", zap.String("stalled", strings.Join(hangs, "; ")))
		}
		h.silent = true
		return
	}
	if h.silent {
		h.log.Info("the heartbeat goes on")
	}
	h.silent = false
	err := h.ask(ctx)
	if err == nil {
		h.lastTime.SetToCurrentTime()
	} else if !h.failing && ctx.Err() == nil {
		h.log.Warn("the URL of the heartbeat does not answer", zap.Error(err))
	}
	h.failing = err != nil
}

func (h *Heartbeat) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url, http.NoBody)
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("User-Agent", "curfew")
	answer, err := h.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %d", answer.StatusCode)
	}
	return nil
}
