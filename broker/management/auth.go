package management

import (
	"net/http"

	"curfew/broker"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// The roles of routes that are not an operation (RabbitMQ: Management Plugin, Permissions).
const (
	management    = operate.Management
	policymaker   = operate.Policymaker
	monitor       = operate.Monitor
	administrator = operate.Administrator
)

// Guard puts another package's handlers behind the same checks as the API's own: credentials, headers, bounds, no requests on behalf of another
// site. Reading requires the role of operate.LookAround. A change requires at least the role of operate.ChangeAlerts; the handlers find the actor in
// the request's context (operate.ActorFrom), and make and record the change.
func (a *API) Guard(next http.Handler) http.Handler {
	serve := func(r *rest.Request) error {
		next.ServeHTTP(r.W, r.WithContext(operate.WithActor(r.Context(), r.Actor)))
		return nil
	}
	return a.server.Guard(&rest.Route{Op: operate.LookAround, Handle: serve}, &rest.Route{Op: operate.ChangeAlerts, Handle: serve})
}

// vhost returns the virtual host in the path, which permit has found.
func (r *request) vhost() (*broker.VHost, error) {
	vh, ok := r.api.b.VHost(r.Param("vhost"))
	if !ok { // deleted since
		return nil, rest.ErrNotFound
	}
	return vh, nil
}

// vhosts returns the virtual hosts of the request: the one in the path, or all that the user may
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
