package main

import (
	"encoding/json"
	"net/http"
	"net/netip"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/monitor"
)

// curfewParts are the paths of curfewAPI; what else is below /api/curfew is broker/management's.
var curfewParts = []string{"/api/curfew/alerts", "/api/curfew/silences", "/api/curfew/forecasts", "/api/curfew/audit"}

// curfewAPI is what Curfew's own API says of alerts, forecasts and what expired. It takes a user with
// the tag administrator, or to look only monitoring.
func (n *node) curfewAPI() http.Handler {
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
	return http.NewCrossOriginProtection().Handler(guarded(n.broker, http.StripPrefix("/api/curfew", mux)))
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

// guarded asks for credentials and the tag that a request takes, with RabbitMQ's answers.
func guarded(b *broker.Broker, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, given := r.BasicAuth()
		if !given {
			w.Header().Set("WWW-Authenticate", `Basic realm="RabbitMQ Management"`)
			forbid(w, "Not_Authorized")
			return
		}
		user, err := b.Authenticate(r.Context(), name, password, peerOf(r))
		if err != nil {
			forbid(w, "Not_Authorized")
			return
		}
		looks := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case user.Has(access.Administrator), looks && user.Has(access.Monitoring):
			next.ServeHTTP(w, r)
		case looks:
			forbid(w, "Not monitor user")
		default:
			forbid(w, "Not administrator user")
		}
	})
}

// peerOf is the client's address.
func peerOf(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.IPv4Unspecified() // not this machine
	}
	return addr.Addr().Unmap()
}

func forbid(w http.ResponseWriter, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "not_authorized", "reason": reason}) // a peer that is gone needs no answer
}
