package rest

import (
	"errors"
	"net/http"

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
	r.Actor = operate.ActorOf(&u, operate.API)
	return nil
}

// permit checks what the route requires: a role, and access to the virtual host in the path.
func (r *Request) permit(one *Route) error {
	vhost := r.Param("vhost")
	var err error
	if one.Op != "" {
		err = r.server.Operations.Permit(r.Actor, one.Op, vhost)
	} else {
		err = r.server.Operations.Enter(r.Actor, one.Need, vhost, one.Method == http.MethodGet)
	}
	if errors.Is(err, operate.ErrNoVHost) && one.Method == http.MethodPut {
		return ErrNoVHost
	}
	return err
}
