package main

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/management"
	"curfew/monitor"
	"curfew/monitor/dashboard"
)

// curfewParts are the paths of curfewAPI; what else is below /api/curfew is broker/management's.
var curfewParts = []string{"/api/curfew/alerts", "/api/curfew/silences", "/api/curfew/forecasts", "/api/curfew/audit", "/api/curfew/status"}

// pages are all that is answered on the web's sockets.
func (n *node) pages(api *management.API, shown *dashboard.Dashboard, o *ops, metrics prometheus.Gatherer) *web {
	pages := newWeb()
	pages.mount("/api", api.Handler())
	for _, part := range curfewParts {
		pages.mount(part, n.curfewAPI(api, o, metrics))
	}
	pages.mount("/", shown.Handler())
	return pages
}

// curfewAPI is what Curfew's own API says of alerts, forecasts, what expired and how it is. It takes a user with
// the tag administrator, or to look only monitoring.
func (n *node) curfewAPI(api *management.API, o *ops, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, n.status(o, metrics)) })
	if n.alerts != nil {
		mux.Handle("/", n.alerts.Handler())
	}
	if n.monitor != nil {
		mux.HandleFunc("GET /forecasts", n.forecasts)
	}
	if n.audit != nil {
		mux.Handle("/audit", n.audit.Handler())
	}
	return api.Guard(http.StripPrefix("/api/curfew", mux))
}

// forecasts answers with what is expected of each queue in which deadlines wait, those with most to
// miss first.
func (n *node) forecasts(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	all := n.monitor.Forecasts()
	if all == nil {
		all = []monitor.Forecast{}
	}
	_ = json.NewEncoder(w).Encode(all) // a peer that is gone needs no answer
}
