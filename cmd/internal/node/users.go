package node

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"curfew/broker/access"
	"curfew/monitor/dashboard"
)

// users are who may log in: those of the broker or, beside RabbitMQ, the one of CURFEW_USER.
func (n *Node) users() dashboard.Users {
	if n.broker != nil {
		return n.broker
	}
	n.onlyUser.Do(func() {
		c := n.settings
		n.user = &oneUser{guestFromAnywhere: !c.GuestLoopbackOnly, user: access.User{
			Name: string(c.User), PasswordHash: access.Hash(string(c.Password)), Algorithm: access.SHA256, Tags: []string{access.Administrator}}}
	})
	return n.user
}

// oneUser is the only user there is, an administrator. It is safe for concurrent use.
type oneUser struct {
	user              access.User
	guestFromAnywhere bool

	mu       sync.Mutex
	throttle access.Throttle
}

// errLogin is for a name and password that are not the user's, or not from there.
var errLogin = errors.New("login failed")

// Authenticate implements dashboard.Users.
func (o *oneUser) Authenticate(ctx context.Context, name, password string, from netip.Addr) (access.User, error) {
	o.mu.Lock()
	attempt := o.throttle.Begin(from, time.Now())
	o.mu.Unlock()
	if err := wait(ctx, attempt.Wait); err != nil {
		o.end(attempt, false)
		return access.User{}, err
	}
	asked := &o.user
	if name != o.user.Name {
		asked = nil
	}
	valid := access.Verify(asked, password)
	if late := o.end(attempt, !valid); !valid {
		if err := wait(ctx, late); err != nil {
			return access.User{}, err
		}
		return access.User{}, errLogin
	}
	if name == guest && !o.guestFromAnywhere && from.IsValid() && !from.Unmap().IsLoopback() {
		return access.User{}, errLogin
	}
	return o.user, nil
}

// guest is the user whose password everybody knows.
const guest = "guest"

func (o *oneUser) end(a access.Attempt, wrong bool) (late time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.throttle.End(a, time.Now(), wrong)
}

// User implements dashboard.Users.
func (o *oneUser) User(name string) (access.User, bool) { return o.user, name == o.user.Name }

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// peer is the address that a request comes from.
func peer(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr()
}
