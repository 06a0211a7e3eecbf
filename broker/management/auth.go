package management

import (
	"net/http"
	"net/netip"
	"slices"

	"curfew/broker"
	"curfew/broker/access"
)

// role is what a route takes (RabbitMQ: Management Plugin, Permissions).
type role uint8

const (
	anybody       role = iota // no credentials
	management                // any management tag
	policymaker               // or administrator
	monitor                   // monitoring or administrator
	administrator             //
)

// refusals say why a role was not enough, in RabbitMQ's words.
var refusals = map[role]string{
	management:    "Not management user",
	policymaker:   "User not authorised to access object",
	monitor:       "Not monitor user",
	administrator: "Not administrator user",
}

// roleTags are the tags that suffice for a role.
var roleTags = map[role][]string{
	management:    {access.Administrator, access.Monitoring, access.Policymaker, access.Management},
	policymaker:   {access.Administrator, access.Policymaker},
	monitor:       {access.Administrator, access.Monitoring},
	administrator: {access.Administrator},
}

// caller is the user of a request.
type caller struct{ access.User }

func (c *caller) is(r role) bool {
	return r == anybody || slices.ContainsFunc(roleTags[r], c.Has)
}

// authenticate finds out whose request it is. Without credentials the answer
// invites to give some, since .NET's clients give none unless asked; with wrong ones
// it does not, or browsers would ask their user (RabbitMQ 4).
func (q *request) authenticate() error {
	user, password, given := q.BasicAuth()
	if !given {
		q.w.Header().Set("WWW-Authenticate", `Basic realm="RabbitMQ Management"`)
		return &problem{http.StatusUnauthorized, "not_authorized", "Not_Authorized"}
	}
	u, err := q.api.b.Authenticate(q.Context(), user, password, q.peer())
	if err != nil {
		return &problem{http.StatusUnauthorized, "not_authorized", "Not_Authorized"}
	}
	q.user = caller{u}
	return nil
}

// peer is the client's address; one that cannot be read is not of this machine.
func (q *request) peer() netip.Addr {
	addr, err := netip.ParseAddrPort(q.RemoteAddr)
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return addr.Addr().Unmap()
}

// Guard puts a handler of others behind what the API's own are behind: credentials,
// headers, bounds, nothing on behalf of another site. To look takes the tag
// monitoring, anything else administrator.
func (a *API) Guard(next http.Handler) http.Handler {
	handle := func(q *request) error {
		next.ServeHTTP(q.w, q.Request)
		return nil
	}
	return secured(http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := route{need: administrator, handle: handle}
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			one.need = monitor
		}
		a.carryOut(&one, w, r)
	})))
}

// permit asks for the route's role, and where the path names a virtual host for
// access to it.
func (q *request) permit(one *route) error {
	if !q.user.is(management) {
		return unauthorised(refusals[management])
	}
	if !q.user.is(one.need) {
		return unauthorised(refusals[one.need])
	}
	if name := q.param("vhost"); name != "" && one.need != administrator {
		return q.permitVHost(name, one.method)
	}
	return nil
}

// permitVHost lets users into the virtual hosts they have permissions in, and
// those who monitor look into all.
func (q *request) permitVHost(name, method string) error {
	if _, ok := q.api.b.VHost(name); !ok {
		if method == http.MethodPut {
			return errNoVHost
		}
		return errNotFound
	}
	if method == http.MethodGet && q.user.is(monitor) || q.entitled(name) {
		return nil
	}
	return unauthorised("User not authorised to access virtual host")
}

// entitled says whether the user has permissions in a virtual host.
func (q *request) entitled(vhost string) bool {
	return slices.ContainsFunc(q.api.b.Permissions(), func(p access.Permission) bool {
		return p.User == q.user.Name && p.VHost == vhost
	})
}

// vhost is the one the path names; permit has found it.
func (q *request) vhost() (*broker.VHost, error) {
	vh, ok := q.api.b.VHost(q.param("vhost"))
	if !ok { // deleted meanwhile
		return nil, errNotFound
	}
	return vh, nil
}

// vhosts are those the request is about: the one in the path, or all the user may
// see.
func (q *request) vhosts() []*broker.VHost {
	if q.param("vhost") != "" {
		vh, err := q.vhost()
		if err != nil {
			return nil
		}
		return []*broker.VHost{vh}
	}
	return slices.DeleteFunc(q.api.b.VHosts(), func(vh *broker.VHost) bool {
		return !q.user.is(monitor) && !q.entitled(vh.Name())
	})
}

// rights are what the user may do in a virtual host.
func (q *request) rights(vh *broker.VHost) *broker.Rights {
	return q.api.b.RightsOf(q.user.Name, vh.Name())
}
