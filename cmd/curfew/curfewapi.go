package main

import (
	"encoding/json"
	"net/http"

	"curfew/broker/management"
	"curfew/monitor"
)

// curfewParts are the paths of curfewAPI; what else is below /api/curfew is broker/management's.
var curfewParts = []string{"/api/curfew/alerts", "/api/curfew/silences", "/api/curfew/forecasts", "/api/curfew/audit"}

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
