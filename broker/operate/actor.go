package operate

import (
	"slices"

	"curfew/broker/access"
)

// Face is the way by which a request came.
type Face string

// The faces.
const (
	API       Face = "api" // the command line as well
	Dashboard Face = "dashboard"
)

// Actor is the user who asks for something. The user was authenticated by the face.
type Actor struct {
	Name string
	Tags []string
	Face Face
}

// ActorOf is a user who came by a face.
func ActorOf(u *access.User, by Face) Actor { return Actor{u.Name, u.Tags, by} }

// Role is what an operation wants a user's tags to give (RabbitMQ: Management Plugin, Permissions).
type Role uint8

// The roles. Each tag gives Management; Administrator gives all.
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
