package main

import (
	"encoding/json"
	"net/http"

	"curfew/broker/management"
	"curfew/monitor"
	"curfew/monitor/dashboard"
)

// curfewParts are the paths of curfewAPI; what else is below /api/curfew is broker/management's.
var curfewParts = []string{"/api/curfew/alerts", "/api/curfew/silences", "/api/curfew/forecasts", "/api/curfew/audit"}

// pages are all that is answered on the web's sockets.
func (n *node) pages(api *management.API, shown *dashboard.Dashboard) *web {
	pages := newWeb()
	pages.mount("/api", api.Handler())
	for _, part := range curfewParts {
		pages.mount(part, n.curfewAPI(api))
	}
	pages.mount("/", shown.Handler())
	return pages
}

// curfewAPI is what Curfew's own API says of alerts, forecasts and what expired. It takes a user with
// the tag administrator, or to look only monitoring.
func (n *node) curfewAPI(api *management.API) http.Handler {
	mux := http.NewServeMux()
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
