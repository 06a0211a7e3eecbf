package management

import (
	"errors"
	"net/http"

	"curfew/broker/management/rest"

	"go.uber.org/zap"

	"curfew/broker"
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
// They show what takes operate.LookAround, and change alerts (operate.ChangeAlerts).
func (a *API) Guard(next http.Handler) http.Handler {
	look := rest.Route{Op: operate.LookAround, Handle: func(r *rest.Request) error {
		next.ServeHTTP(r.W, r.Request)
		return nil
	}}
	change := rest.Route{Op: operate.ChangeAlerts, Handle: func(r *rest.Request) error {
		w := &statusWriter{ResponseWriter: r.W}
		next.ServeHTTP(w, r.Request)
		var err error
		if w.status >= http.StatusBadRequest {
			err = errors.New(http.StatusText(w.status))
		}
		a.Operations.Record(r.Actor, operate.ChangeAlerts, operate.QueueName{}, err, zap.String("method", r.Method), zap.String("path", r.URL.Path))
		return nil
	}}
	return a.server.Guard(&look, &change)
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
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
