package node

import (
	"context"
	"net/netip"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/cmd/internal/settings"
)

// oneUser is the only user there is, an administrator: beside RabbitMQ there are no others. It is safe for concurrent use.
type oneUser struct {
	user  access.User
	guard broker.LoginGuard
}

// newOneUser is the user of CURFEW_USER.
func newOneUser(c *settings.Settings) *oneUser {
	return &oneUser{guard: broker.LoginGuard{GuestFromAnywhere: !c.GuestLoopbackOnly}, user: access.User{
		Name: c.User, PasswordHash: access.Hash(c.Password), Algorithm: access.SHA256, Tags: []string{access.Administrator}}}
}

// Authenticate implements dashboard.Users.
func (o *oneUser) Authenticate(ctx context.Context, name, password string, from netip.Addr) (access.User, error) {
	return o.guard.Authenticate(ctx, o.User, name, password, from)
}

// User implements dashboard.Users.
func (o *oneUser) User(name string) (access.User, bool) { return o.user, name == o.user.Name }
