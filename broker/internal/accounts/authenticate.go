package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/access"
	"curfew/broker/internal/catalog"
)

// ErrLogin is wrapped by every refusal of a login. Its text says why: it is for
// the log, the client is told nothing.
var ErrLogin = errors.New("login refused")

// Authenticate says who logs in by name and password from an address; the zero
// address is a client on this machine. It takes as long for a user who does not
// exist. Where passwords are guessed, it waits before it looks at one, and before it
// says that one was wrong (access.Throttle); a wait ends with ctx. A right password is
// never refused for what others guessed. Errors: ErrLogin, or ctx's.
func (a *Accounts) Authenticate(ctx context.Context, name, password string, from netip.Addr) (access.User, error) {
	g := &a.guesses
	attempt := g.begin(from)
	if err := pause(ctx, attempt.Wait); err != nil {
		g.end(attempt, false)
		return access.User{}, err
	}
	u, known := a.User(name)
	asked := &u
	if !known {
		asked = nil
	}
	valid := access.Verify(asked, password)
	late := g.end(attempt, !valid)
	if valid {
		return u, a.checkLoopback(&u, from)
	}
	if err := pause(ctx, late); err != nil {
		return access.User{}, err
	}
	return access.User{}, fmt.Errorf("%w: user '%s': invalid credentials", ErrLogin, name)
}

// guesses is the throttle of all logins. Its lock is a leaf, and held for nothing else.
type guesses struct {
	mu       sync.Mutex
	throttle access.Throttle
}

func (g *guesses) begin(from netip.Addr) access.Attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.throttle.Begin(from, time.Now())
}

func (g *guesses) end(a access.Attempt, wrong bool) (late time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.throttle.End(a, time.Now(), wrong)
}

// Identify says who logs in where another has vouched for the name, as TLS does
// for a client certificate (SASL EXTERNAL). Error: ErrLogin.
func (a *Accounts) Identify(name string, from netip.Addr) (access.User, error) {
	u, ok := a.User(name)
	if !ok {
		return access.User{}, fmt.Errorf("%w: user '%s': not known", ErrLogin, name)
	}
	return u, a.checkLoopback(&u, from)
}

func pause(ctx context.Context, d time.Duration) error {
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

// Guest is the user whose password everybody knows.
const Guest = "guest"

// checkLoopback keeps guest to clients on this machine (RabbitMQ: Access Control,
// loopback_users).
func (a *Accounts) checkLoopback(u *access.User, from netip.Addr) error {
	if u.Name != Guest || a.opts.GuestFromAnywhere || !from.IsValid() || from.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: user '%s' can only connect via localhost", ErrLogin, u.Name)
}

// Seed applies the configured user where the configuration is new: at the first
// start, and when name or password are others than were applied last. What was
// changed by other means since stays otherwise. The user is an administrator with
// all permissions in the virtual hosts there are, which are named.
func Seed(a *Accounts, name, password string, vhosts []string) error {
	if last := a.configured; last != nil && last.Name == name && access.Verify(last, password) {
		return nil
	}
	if last := a.configured; last != nil && last.Name != name && a.users[last.Name] != nil {
		a.opts.Log.Warn("the user configured before is still there; delete it if it is not needed", zap.String("user", last.Name))
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
		k := catalog.UserIn{User: name, VHost: vh}
		p := a.permissionsOf(k)
		if p.Granted != nil {
			continue
		}
		p.Granted = everything(k)
		g, err := compile(k, &p)
		if err != nil {
			return err
		}
		a.set(k, &p, g)
		a.opts.Catalog.Tell(p.Definitions(k)...)
	}
	a.opts.Catalog.Define(catalog.Key(catalog.UserKind, name), &u)
	a.opts.Catalog.Define(catalog.Key(catalog.ConfiguredKind), a.configured)
	return nil
}
