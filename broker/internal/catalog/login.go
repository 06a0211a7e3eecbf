package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/access"
	"curfew/broker/deadline"
)

// ErrRefused is wrapped by every refusal of a login. Its text says why. It is for the log only; the
// client does not see it.
var ErrRefused = errors.New("login refused")

// Guest is the user whose password everybody knows.
const Guest = "guest"

// Guard decides who is let in. It is safe for concurrent use. The zero value is ready to use.
type Guard struct {
	GuestFromAnywhere bool // the user guest may log in from other machines, too

	mu       sync.Mutex // a leaf, and held for nothing but throttle
	throttle access.Throttle
}

// Authenticate says who logs in by name and password from an address; the zero address is a
// client on this machine. find returns the user of a name, and false if there is none. It takes
// as long for a user who does not exist. Where passwords are guessed, it waits before it looks
// at one, and before it says that one was wrong (access.Throttle); a wait ends with ctx. A right
// password is never refused for what others guessed. Errors: ErrRefused, or ctx's.
func (g *Guard) Authenticate(ctx context.Context, find func(name string) (access.User, bool), name, password string, from netip.Addr) (access.User, error) {
	attempt := g.begin(from)
	if attempt.Wait > 0 && !deadline.Sleep(ctx, attempt.Wait) {
		g.end(attempt, false)
		return access.User{}, ctx.Err()
	}
	u, known := find(name)
	asked := &u
	if !known {
		asked = nil
	}
	valid := access.Verify(asked, password)
	delay := g.end(attempt, !valid)
	if valid {
		return u, g.CheckAddress(name, from)
	}
	if delay > 0 && !deadline.Sleep(ctx, delay) {
		return access.User{}, ctx.Err()
	}
	return access.User{}, fmt.Errorf("%w: user '%s': invalid credentials", ErrRefused, name)
}

// CheckAddress keeps guest to clients on this machine (RabbitMQ: Access Control,
// loopback_users). Error: ErrRefused.
func (g *Guard) CheckAddress(name string, from netip.Addr) error {
	if name != Guest || g.GuestFromAnywhere || !from.IsValid() || from.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: user '%s' can only connect via localhost", ErrRefused, name)
}

func (g *Guard) begin(from netip.Addr) access.Attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.throttle.Begin(from, time.Now())
}

func (g *Guard) end(a access.Attempt, wrong bool) (delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.throttle.End(a, time.Now(), wrong)
}

// Authenticate returns the user who logs in with a name and password from an address; the
// zero address is a client on this machine. Errors: ErrRefused, or ctx's. See
// Guard.
func (a *Accounts) Authenticate(ctx context.Context, name, password string, from netip.Addr) (access.User, error) {
	return a.guard.Authenticate(ctx, a.User, name, password, from)
}

// Identify returns the user of a name that has already been verified, as TLS does for a
// client certificate (SASL EXTERNAL). Error: ErrRefused.
func (a *Accounts) Identify(name string, from netip.Addr) (access.User, error) {
	u, ok := a.User(name)
	if !ok {
		return access.User{}, fmt.Errorf("%w: user '%s': not known", ErrRefused, name)
	}
	return u, a.guard.CheckAddress(name, from)
}

// SeedAccounts applies the configured user if the configuration is new: at the first start, and
// when the name or the password differs from the one last applied. Otherwise changes made
// since then stay. The user is an administrator with all permissions in vhosts. Called
// before anybody else uses the accounts.
func SeedAccounts(a *Accounts, name, password string, vhosts []string) error {
	if last := a.configured; last != nil && last.Name == name && access.Verify(last, password) {
		return nil
	}
	if last := a.configured; last != nil && last.Name != name && a.users[last.Name] != nil {
		a.opts.Log.Warn("the previously configured user still exists; delete it if it is no longer needed", zap.String("user", last.Name))
	}
	u := access.User{Name: name, Tags: []string{access.Administrator}}
	if old := a.users[name]; old != nil {
		u = *old
	}
	u.SetPassword(password)
	if err := u.Check(); err != nil {
		return err
	}
	a.users[name] = &u
	a.configured = &access.User{Name: name, PasswordHash: u.PasswordHash, Algorithm: u.Algorithm}
	for _, vh := range vhosts {
		k := UserIn{User: name, VHost: vh}
		p := a.permissionsOf(k)
		if p.Granted != nil {
			continue
		}
		p.Granted = everything(k)
		g, err := compile(k, &p)
		if err != nil {
			return err
		}
		a.setPermissionsLocked(k, &p, g)
		a.opts.Catalog.ChangeLocked(p.Definitions(k)...)
	}
	a.opts.Catalog.ChangeLocked(Definition(Key(UserKind, name), &u), Definition(Key(ConfiguredKind), a.configured))
	return nil
}
