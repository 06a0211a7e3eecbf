package management

import (
	"net/http"

	"curfew/broker"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// The roles of routes that are no operation (RabbitMQ: Management Plugin, Permissions).
const (
	management    = operate.Management
	policymaker   = operate.Policymaker
	monitor       = operate.Monitor
	administrator = operate.Administrator
)

// Guard puts the handlers of others behind what the API's own are behind: credentials, headers, bounds, nothing on behalf of another site.
// To look takes the role of operate.LookAround. A change takes that of operate.ChangeAlerts at least; the handlers, which find the actor in the
// request's context (operate.ActorFrom), make and record it.
func (a *API) Guard(next http.Handler) http.Handler {
	serve := func(r *rest.Request) error {
		next.ServeHTTP(r.W, r.WithContext(operate.WithActor(r.Context(), r.Actor)))
		return nil
	}
	return a.server.Guard(&rest.Route{Op: operate.LookAround, Handle: serve}, &rest.Route{Op: operate.ChangeAlerts, Handle: serve})
}

// vhost is the one the path names; permit has found it.
func (r *request) vhost() (*broker.VHost, error) {
	vh, ok := r.api.b.VHost(r.Param("vhost"))
	if !ok { // deleted meanwhile
		return nil, rest.ErrNotFound
	}
	return vh, nil
}

// vhosts are those the request is about: the one in the path, or all the user may
// see.
func (r *request) vhosts() []*broker.VHost {
	if r.Param("vhost") != "" {
		vh, err := r.vhost()
		if err != nil {
			return nil
		}
		return []*broker.VHost{vh}
	}
	return r.Operations.VHosts(r.Actor)
}
