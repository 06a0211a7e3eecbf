package catalog

import (
	"context"
	"fmt"
	"net/netip"

	"go.uber.org/zap"

	"curfew/broker/access"
)

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
	a.opts.Catalog.DefineLocked(Key(UserKind, name), &u)
	a.opts.Catalog.DefineLocked(Key(ConfiguredKind), a.configured)
	return nil
}
