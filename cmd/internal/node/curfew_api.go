package node

import (
	"encoding/json"
	"net/http"

	"curfew/broker/management"
	"curfew/monitor"
	"curfew/monitor/dashboard"
)

// curfewParts are the paths of curfewAPI. All others below /api/curfew are broker/management's.
var curfewParts = []string{"/api/curfew/alerts", "/api/curfew/silences", "/api/curfew/forecasts", "/api/curfew/audit", "/api/curfew/status", "/api/curfew/history"}

// pages handles all requests on the sockets of API and dashboard.
func (n *Node) pages(api *management.API, ui *dashboard.Dashboard, o *opsEndpoints) *web {
	pages := newWeb()
	pages.mount("/api", api.Handler())
	for _, part := range curfewParts {
		pages.mount(part, api.Guard(n.curfewAPI(o)))
	}
	pages.mount("/", ui.Handler())
	return pages
}

// curfewAPI is the part of Curfew's own API for alerts, forecasts, the audit, the history and the status, and for a RabbitMQ. It is to
// be guarded: it takes a user with the tag administrator; the tag monitoring is enough to read.
func (n *Node) curfewAPI(o *opsEndpoints) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, n.status(o)) })
	if n.alerts != nil {
		mux.Handle("/", n.alerts.Handler())
	}
	if n.monitor != nil {
		mux.HandleFunc("GET /forecasts", n.forecasts)
	}
	mux.Handle("GET /history", n.history.Handler())
	if n.audit != nil {
		mux.Handle("/audit", n.audit.Handler())
	}
	if n.rabbitmq != nil {
		a := rabbitmqAPI{n.rabbitmq}
		mux.HandleFunc("GET /rabbitmq", a.status)
		mux.HandleFunc("POST /rabbitmq/allow", a.allow)
	}
	return http.StripPrefix("/api/curfew", mux)
}

// forecasts answers with the forecast of each queue that has deadlines, the one with the most
// expected misses first.
func (n *Node) forecasts(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	all := n.monitor.Forecasts()
	if all == nil {
		all = []monitor.Forecast{}
	}
	_ = json.NewEncoder(w).Encode(all) // it fails only if the client is gone
}
