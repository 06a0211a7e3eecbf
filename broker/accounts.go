package broker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"curfew/broker/access"
	"curfew/broker/amqp"
)

// What the calls on users, permissions and virtual hosts may say besides
// access.ErrInvalid.
var (
	ErrNoUser  = errors.New("broker: no such user")
	ErrNoVHost = errors.New("broker: no such virtual host")
)

// accounts are the users and what they may do. Its lock is a leaf.
type accounts struct {
	// version is raised by each change, so that a cached answer knows when it is
	// stale.
	version atomic.Uint64

	mu         sync.RWMutex
	users      map[string]*access.User // replaced, never changed
	granted    map[inVHost]access.Permission
	topics     map[inVHost]map[string]access.TopicPermission // by exchange
	compiled   map[inVHost]*access.Grant
	configured *access.User // the configured user as it was applied last
}

// inVHost is a user in a virtual host.
type inVHost struct{ user, vhost string }

func (a *accounts) init() {
	a.users, a.granted = map[string]*access.User{}, map[inVHost]access.Permission{}
	a.topics, a.compiled = map[inVHost]map[string]access.TopicPermission{}, map[inVHost]*access.Grant{}
}

// changeAccounts runs fn, which tells the store what it does, with the accounts' lock
// held and returns when that is on disk.
func (b *Broker) changeAccounts(fn func(*accounts) error) error {
	err := func() error {
		b.accounts.mu.Lock()
		defer b.accounts.mu.Unlock()
		if err := fn(&b.accounts); err != nil {
			return err
		}
		b.accounts.version.Add(1)
		return nil
	}()
	if err != nil {
		return err
	}
	return b.saveDefinitions()
}

// Users lists the users by name.
func (b *Broker) Users() []access.User {
	a := &b.accounts
	a.mu.RLock()
	defer a.mu.RUnlock()
	list := make([]access.User, 0, len(a.users))
	for _, name := range slices.Sorted(maps.Keys(a.users)) {
		list = append(list, *a.users[name])
	}
	return list
}

// User returns the user of that name.
func (b *Broker) User(name string) (access.User, bool) {
	a := &b.accounts
	a.mu.RLock()
	defer a.mu.RUnlock()
	if u, ok := a.users[name]; ok {
		return *u, true
	}
	return access.User{}, false
}

// PutUser makes the user, or replaces the one of that name. The connections of a
// user whose password changes stay, as in RabbitMQ. The broker keeps the user's
// slices and map. Error: access.ErrInvalid.
func (b *Broker) PutUser(u access.User) error {
	if err := u.Check(); err != nil {
		return err
	}
	return b.changeAccounts(func(a *accounts) error {
		a.users[u.Name] = &u
		b.define(keyOf(userKind, u.Name), &u)
		return nil
	})
}

// DeleteUser removes a user with his permissions and closes his connections (320).
// Error: ErrNoUser.
func (b *Broker) DeleteUser(name string) error {
	err := b.changeAccounts(func(a *accounts) error {
		if a.users[name] == nil {
			return ErrNoUser
		}
		delete(a.users, name)
		dropped := a.drop(func(k inVHost) bool { return k.user == name })
		b.undefine(append(dropped, keyOf(userKind, name))...)
		return nil
	})
	if errors.Is(err, ErrNoUser) {
		return err
	}
	b.sessions.end(func(s *Session) bool { return s.user == name }, fmt.Sprintf("user '%s' is deleted", name))
	return err
}

// drop removes permissions and returns the keys of their definitions; called with mu
// held.
func (a *accounts) drop(gone func(inVHost) bool) (keys []string) {
	for k := range a.granted {
		if gone(k) {
			delete(a.granted, k)
			keys = append(keys, keyOf(permissionKind, k.user, k.vhost))
		}
	}
	for k := range a.topics {
		if gone(k) {
			delete(a.topics, k)
			keys = append(keys, keyOf(topicsKind, k.user, k.vhost))
		}
	}
	maps.DeleteFunc(a.compiled, func(k inVHost, _ *access.Grant) bool { return gone(k) })
	return keys
}

// SetUserLimits replaces a user's limits. Errors: ErrNoUser, access.ErrInvalid.
func (b *Broker) SetUserLimits(name string, limits access.Limits) error {
	return b.changeAccounts(func(a *accounts) error {
		u := a.users[name]
		if u == nil {
			return ErrNoUser
		}
		changed := *u
		changed.Limits = limits
		if err := changed.Check(); err != nil {
			return err
		}
		a.users[name] = &changed
		b.define(keyOf(userKind, name), &changed)
		return nil
	})
}

// Permissions lists the permissions by virtual host and user.
func (b *Broker) Permissions() []access.Permission {
	a := &b.accounts
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.SortedFunc(maps.Values(a.granted), func(x, y access.Permission) int {
		return cmp.Or(strings.Compare(x.VHost, y.VHost), strings.Compare(x.User, y.User))
	})
}

// SetPermission gives a user access to a virtual host, or changes it; channels
// that are open see it at their next method. Errors: ErrNoUser, ErrNoVHost,
// access.ErrInvalid.
func (b *Broker) SetPermission(p access.Permission) error {
	return b.changePermission(inVHost{p.User, p.VHost}, func(m *permissions) { m.granted = &p })
}

// ClearPermission takes a user's access to a virtual host away. Errors: ErrNoUser,
// ErrNoVHost.
func (b *Broker) ClearPermission(user, vhost string) error {
	return b.changePermission(inVHost{user, vhost}, func(m *permissions) { m.granted = nil })
}

// TopicPermissions lists the topic permissions by virtual host, user and exchange.
func (b *Broker) TopicPermissions() (list []access.TopicPermission) {
	a := &b.accounts
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
func (b *Broker) SetTopicPermission(p access.TopicPermission) error {
	return b.changePermission(inVHost{p.User, p.VHost}, func(m *permissions) { m.topics[p.Exchange] = p })
}

// ClearTopicPermissions lifts what restricts a user's routing keys on the
// exchange, "" for all of the virtual host. Errors: ErrNoUser, ErrNoVHost.
func (b *Broker) ClearTopicPermissions(user, vhost, exchange string) error {
	return b.changePermission(inVHost{user, vhost}, func(m *permissions) {
		maps.DeleteFunc(m.topics, func(name string, _ access.TopicPermission) bool { return exchange == "" || name == exchange })
	})
}

// permissions are those of a user in a virtual host, copied out, and their compiled
// form.
type permissions struct {
	granted *access.Permission // nil: none
	topics  map[string]access.TopicPermission
	grant   *access.Grant // nil where granted is
}

// errChangedMeanwhile is what changePermission begins anew for.
var errChangedMeanwhile = errors.New("broker: permissions changed")

// changePermission applies change and keeps the compiled form of what comes of
// it; if that cannot be, nothing has changed. It compiles with no lock held: every
// login and every new channel waits for the accounts' lock.
func (b *Broker) changePermission(k inVHost, change func(*permissions)) error {
	for {
		before := b.accounts.permissionsOf(k)
		m := permissions{granted: before.granted, topics: maps.Clone(before.topics)}
		change(&m)
		wrong := m.compile(k)
		err := b.changeAccounts(func(a *accounts) error {
			if a.users[k.user] == nil {
				return ErrNoUser
			}
			if _, ok := b.VHost(k.vhost); !ok {
				return ErrNoVHost
			}
			if wrong != nil {
				return wrong
			}
			if !a.still(k, &before) {
				return errChangedMeanwhile
			}
			a.set(k, &m)
			b.definePermissions(k)
			return nil
		})
		if err != errChangedMeanwhile {
			return err
		}
	}
}

func (a *accounts) permissionsOf(k inVHost) permissions {
	a.mu.RLock()
	defer a.mu.RUnlock()
	m := permissions{topics: maps.Clone(a.topics[k])}
	if p, ok := a.granted[k]; ok {
		m.granted = &p
	}
	if m.topics == nil {
		m.topics = map[string]access.TopicPermission{}
	}
	return m
}

// still says whether the permissions are what they were; called with mu held.
func (a *accounts) still(k inVHost, before *permissions) bool {
	p, granted := a.granted[k]
	if granted != (before.granted != nil) || granted && p != *before.granted {
		return false
	}
	return maps.Equal(a.topics[k], before.topics)
}

// compile makes the grant. Without a permission there is none, whatever the topic
// permissions say; they are checked all the same.
func (m *permissions) compile(k inVHost) error {
	p := access.Permission{}
	if m.granted != nil {
		p = *m.granted
	}
	p.User, p.VHost = k.user, k.vhost
	g, err := access.Compile(p, slices.Collect(maps.Values(m.topics)))
	if err != nil {
		return err
	}
	if m.grant = nil; m.granted != nil {
		m.grant = g
	}
	return nil
}

// set makes m the permissions of a user in a virtual host; called with mu held.
func (a *accounts) set(k inVHost, m *permissions) {
	delete(a.granted, k)
	delete(a.topics, k)
	delete(a.compiled, k)
	if m.granted != nil {
		a.granted[k] = *m.granted
	}
	if len(m.topics) > 0 {
		a.topics[k] = m.topics
	}
	if m.grant != nil {
		a.compiled[k] = m.grant
	}
}

// definePermissions saves the permissions of a user in a virtual host as they are now;
// called with mu held.
func (b *Broker) definePermissions(k inVHost) {
	permission, topics := keyOf(permissionKind, k.user, k.vhost), keyOf(topicsKind, k.user, k.vhost)
	if p, ok := b.accounts.granted[k]; ok {
		b.define(permission, &p)
	} else {
		b.undefine(permission)
	}
	if list := slices.Collect(maps.Values(b.accounts.topics[k])); len(list) > 0 {
		b.define(topics, list)
	} else {
		b.undefine(topics)
	}
}

// grant returns what a user may do in a virtual host, nil for nothing, and
// whether he may speak for others.
func (a *accounts) grant(k inVHost) (g *access.Grant, impersonator bool, version uint64) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	u := a.users[k.user]
	return a.compiled[k], u != nil && u.Has(access.Impersonator), a.version.Load()
}

// checkVHostAccess refuses a user who has no permission in the virtual host.
func (b *Broker) checkVHostAccess(user, vhost string) error {
	if g, _, _ := b.accounts.grant(inVHost{user, vhost}); g == nil {
		return amqp.NewException(amqp.NotAllowed, 0, 0, "access to vhost '%s' refused for user '%s'", vhost, user)
	}
	return nil
}
