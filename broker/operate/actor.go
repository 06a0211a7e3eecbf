package operate

import (
	"context"
	"net/netip"
	"slices"

	"curfew/broker/access"
)

// Face is the interface that a request came by.
type Face string

// The faces.
const (
	API       Face = "api" // also used by the command line
	Dashboard Face = "dashboard"
)

// Actor is the user who sends a request. The face has authenticated the user.
type Actor struct {
	Name string
	Tags []string
	Face Face
}

// AddressOf returns the address of a request's client. One that cannot be read does not count as this machine's.
func AddressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return at.Addr().Unmap()
}

// Role is what an operation requires of a user's tags (RabbitMQ: Management Plugin, Permissions).
type Role uint8

// The roles. The tag of each role also gives Management; the tag administrator gives all.
const (
	Management    Role = iota + 1
	Policymaker        // or administrator
	Monitor            // the tag monitoring, or administrator
	Administrator      // the tag alone
)

var roleTags = map[Role][]string{
	Management:    {access.Administrator, access.Monitoring, access.Policymaker, access.Management},
	Policymaker:   {access.Administrator, access.Policymaker},
	Monitor:       {access.Administrator, access.Monitoring},
	Administrator: {access.Administrator},
}

// Has reports whether the actor's tags give a role.
func (a *Actor) Has(r Role) bool {
	return slices.ContainsFunc(a.Tags, func(tag string) bool { return slices.Contains(roleTags[r], tag) })
}

// Require returns *MissingRole if the actor's tags do not give a role.
func (a *Actor) Require(r Role) error {
	for _, needed := range []Role{Management, r} {
		if !a.Has(needed) {
			return &MissingRole{needed}
		}
	}
	return nil
}

type actorKey struct{}

// WithActor returns a context with the actor of a request, for handlers that are behind another package's guard.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorFrom returns the actor of a request's context. Without one it is the zero Actor, who may do nothing.
func ActorFrom(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}
