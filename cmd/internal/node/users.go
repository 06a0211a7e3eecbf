package node

import (
	"context"
	"net/netip"

	"curfew/broker"
	"curfew/broker/access"
)

// oneUser is the user of CURFEW_USER, the only one there is, and an administrator: beside RabbitMQ there are no others. It is safe for concurrent use.
type oneUser struct {
	user  access.User
	guard broker.LoginGuard
}

// Authenticate implements dashboard.Users.
func (o *oneUser) Authenticate(ctx context.Context, name, password string, from netip.Addr) (access.User, error) {
	return o.guard.Authenticate(ctx, o.User, name, password, from)
}

// User implements dashboard.Users.
func (o *oneUser) User(name string) (access.User, bool) { return o.user, name == o.user.Name }
