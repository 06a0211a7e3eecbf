package rest

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"curfew/broker/operate"
)

// refusals say why a role was not enough, in RabbitMQ's words.
var refusals = map[operate.Role]string{
	operate.Management:    "Not management user",
	operate.Policymaker:   "User not authorised to access object",
	operate.Monitor:       "Not monitor user",
	operate.Administrator: "Not administrator user",
}

// authenticate finds out whose request it is. Without credentials the answer asks for them, since
// .NET's clients send none before; with wrong ones it does not, or browsers would ask their user
// (RabbitMQ 4).
func (r *Request) authenticate() error {
	user, password, given := r.HTTP.BasicAuth()
	if !given {
		r.W.Header().Set("WWW-Authenticate", `Basic realm="RabbitMQ Management"`)
		return &Problem{http.StatusUnauthorized, "not_authorized", "Not_Authorized"}
	}
	u, err := r.server.Broker.Accounts.Authenticate(r.HTTP.Context(), user, password, operate.AddressOf(r.HTTP.RemoteAddr))
	r.server.Logins.Note(err)
	if err != nil {
		return &Problem{http.StatusUnauthorized, "not_authorized", "Not_Authorized"}
	}
	r.Actor = operate.Actor{Name: u.Name, Tags: u.Tags, Face: operate.API}
	return nil
}

// permit checks what the route requires: a role, and access to the virtual host in the path.
func (r *Request) permit(one *Route) error {
	var err error
	if one.Op != "" {
		names := map[string]string{}
		if at := chi.RouteContext(r.HTTP.Context()); at != nil { // nil: behind Guard
			for _, name := range at.URLParams.Keys {
				names[name] = r.Param(name)
			}
		}
		err = r.Operations.Permit(r.Actor, one.Op, names)
	} else {
		err = r.Operations.Enter(r.Actor, one.Need, r.Param("vhost"), one.Method == http.MethodGet)
	}
	if errors.Is(err, operate.ErrNoVHost) && one.Method == http.MethodPut {
		return ErrNoVHost
	}
	return err
}
