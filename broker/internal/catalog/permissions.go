package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

// Permissions lists the permissions by virtual host and user.
func (a *Accounts) Permissions() []access.Permission {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.SortedFunc(maps.Values(a.granted), func(x, y access.Permission) int {
		return cmp.Or(strings.Compare(x.VHost, y.VHost), strings.Compare(x.User, y.User))
	})
}

// SetPermission gives a user access to a virtual host, or changes it; channels
// that are open see it at their next method. Errors: ErrNoUser, ErrNoVHost,
// access.ErrInvalid.
func (a *Accounts) SetPermission(p access.Permission) error {
	return a.changePermission(UserIn{User: p.User, VHost: p.VHost}, func(now *Permissions) { now.Granted = &p })
}

// ClearPermission revokes a user's access to a virtual host. Errors: ErrNoUser,
// ErrNoVHost; or catalog.ErrNotSaved, and a restart would restore the access.
func (a *Accounts) ClearPermission(user, vhost string) error {
	a.opts.Admin.Lock()
	defer a.opts.Admin.Unlock()
	k := UserIn{User: user, VHost: vhost}
	if err := a.checkAccount(k); err != nil {
		return err
	}
	a.change(func() {
		delete(a.granted, k)
		delete(a.compiled, k)
		a.opts.Catalog.ChangeLocked(Removals(Key(PermissionKind, user, vhost))...)
	})
	return a.opts.Catalog.Sync()
}

// TopicPermissions lists the topic permissions by virtual host, user and exchange.
func (a *Accounts) TopicPermissions() (list []access.TopicPermission) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, exchanges := range a.topics {
		list = slices.AppendSeq(list, maps.Values(exchanges))
	}
	slices.SortFunc(list, func(x, y access.TopicPermission) int {
		return cmp.Or(strings.Compare(x.VHost, y.VHost), strings.Compare(x.User, y.User), strings.Compare(x.Exchange, y.Exchange))
	})
	return list
}

// SetTopicPermission restricts a user's routing keys on a topic exchange, which
// need not exist. Errors: ErrNoUser, ErrNoVHost, access.ErrInvalid.
func (a *Accounts) SetTopicPermission(p access.TopicPermission) error {
	return a.changePermission(UserIn{User: p.User, VHost: p.VHost}, func(now *Permissions) { now.Topics[p.Exchange] = p })
}

// ClearTopicPermissions lifts the restrictions of a user's routing keys on the
// exchange, or with "" on all exchanges of the virtual host. Errors: ErrNoUser, ErrNoVHost.
func (a *Accounts) ClearTopicPermissions(user, vhost, exchange string) error {
	return a.changePermission(UserIn{User: user, VHost: vhost}, func(now *Permissions) {
		maps.DeleteFunc(now.Topics, func(name string, _ access.TopicPermission) bool { return exchange == "" || name == exchange })
	})
}

// changePermission makes a change and keeps the compiled form of the result. If the result
// cannot be compiled or saved, nothing has changed. It compiles without the accounts' lock,
// since every login and every new channel waits for that lock.
func (a *Accounts) changePermission(k UserIn, change func(*Permissions)) error {
	a.opts.Admin.Lock()
	defer a.opts.Admin.Unlock()
	if err := a.checkAccount(k); err != nil {
		return err
	}
	was := a.permissionsOf(k)
	now := Permissions{Granted: was.Granted, Topics: maps.Clone(was.Topics)}
	change(&now)
	g, err := compile(k, &now)
	if err == nil {
		err = a.opts.Catalog.SaveFirst(now.Definitions(k), was.Definitions(k))
	}
	if err == nil {
		a.change(func() { a.setPermissionsLocked(k, &now, g) })
	}
	return err
}

func (a *Accounts) checkAccount(k UserIn) error {
	if _, ok := a.User(k.User); !ok {
		return ErrNoUser
	}
	if !a.opts.HasVHost(k.VHost) {
		return ErrNoVHost
	}
	return nil
}

func (a *Accounts) permissionsOf(k UserIn) Permissions {
	a.mu.RLock()
	defer a.mu.RUnlock()
	p := Permissions{Topics: maps.Clone(a.topics[k])}
	if granted, ok := a.granted[k]; ok {
		p.Granted = &granted
	}
	if p.Topics == nil {
		p.Topics = map[string]access.TopicPermission{}
	}
	return p
}

// compile makes the grant, also with an error: see access.Compile. Without a permission it is nil, whatever the topic
// permissions are; they are checked nevertheless.
func compile(k UserIn, p *Permissions) (*access.Grant, error) {
	granted := access.Permission{User: k.User, VHost: k.VHost}
	if p.Granted != nil {
		granted = *p.Granted
	}
	g, err := access.Compile(granted, p.List())
	if p.Granted == nil {
		g = nil
	}
	return g, err
}

// setPermissionsLocked makes p the permissions of a user in a virtual host. Called with mu held, or
// before anybody else uses the accounts.
func (a *Accounts) setPermissionsLocked(k UserIn, p *Permissions, g *access.Grant) {
	delete(a.granted, k)
	delete(a.topics, k)
	delete(a.compiled, k)
	if p.Granted != nil {
		a.granted[k] = *p.Granted
	}
	if len(p.Topics) > 0 {
		a.topics[k] = p.Topics
	}
	if g != nil {
		a.compiled[k] = g
	}
}

// grant returns what a user may do in a virtual host, nil for nothing, and
// whether that user may publish with other users' user-id.
func (a *Accounts) grant(k UserIn) (g *access.Grant, impersonator bool, version uint64) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	u := a.users[k.User]
	return a.compiled[k], u != nil && slices.Contains(u.Tags, access.Impersonator), a.version.Load()
}

// HasPermissions reports whether a user has any permission in a virtual host.
func (a *Accounts) HasPermissions(user, vhost string) bool {
	g, _, _ := a.grant(UserIn{User: user, VHost: vhost})
	return g != nil
}

// CheckVHostAccess refuses a user who has no permission in the virtual host.
func CheckVHostAccess(a *Accounts, user, vhost string) error {
	if g, _, _ := a.grant(UserIn{User: user, VHost: vhost}); g == nil {
		return amqp.NewException(amqp.NotAllowed, 0, 0, "access to vhost '%s' refused for user '%s'", vhost, user)
	}
	return nil
}

// GrantAllLocked saves the definitions of a new virtual host, and gives the user who creates it all
// permissions in it; an unknown user gets none. Called with the admin lock held.
func GrantAllLocked(a *Accounts, user, vhost string, now, were []store.Definition) error {
	k := UserIn{User: user, VHost: vhost}
	var p Permissions
	var g *access.Grant
	if _, exists := a.User(user); exists {
		p.Granted = everything(k)
		var err error
		if g, err = compile(k, &p); err != nil {
			return err
		}
		now, were = append(now, p.Definitions(k)...), append(were, new(Permissions).Definitions(k)...)
	}
	if err := a.opts.Catalog.SaveFirst(now, were); err != nil {
		return err
	}
	a.change(func() { a.setPermissionsLocked(k, &p, g) })
	return nil
}

// everything is the permission for all names.
func everything(k UserIn) *access.Permission {
	return &access.Permission{User: k.User, VHost: k.VHost, Configure: ".*", Write: ".*", Read: ".*"}
}

// DropVHost removes all permissions in a virtual host. write is called with the keys of their
// definitions, with the lock held, so that they are removed in one record with others.
func DropVHost(a *Accounts, vhost string, write func(keys []string)) {
	a.change(func() { write(a.dropPermissionsLocked(func(k UserIn) bool { return k.VHost == vhost })) })
}

// dropPermissionsLocked removes permissions and returns the keys of their definitions. Called with
// mu held.
func (a *Accounts) dropPermissionsLocked(gone func(UserIn) bool) (keys []string) {
	for k := range a.granted {
		if gone(k) {
			delete(a.granted, k)
			keys = append(keys, Key(PermissionKind, k.User, k.VHost))
		}
	}
	for k := range a.topics {
		if gone(k) {
			delete(a.topics, k)
			keys = append(keys, Key(TopicsKind, k.User, k.VHost))
		}
	}
	maps.DeleteFunc(a.compiled, func(k UserIn, _ *access.Grant) bool { return gone(k) })
	return keys
}
