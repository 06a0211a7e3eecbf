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
	"curfew/broker/store"
)

// What the calls on users, permissions and virtual hosts may say besides
// access.ErrInvalid.
var (
	ErrNoUser  = errors.New("broker: no such user")
	ErrNoVHost = errors.New("broker: no such virtual host")
	// ErrProtected says that a virtual host is not to be deleted.
	ErrProtected = errors.New("broker: the virtual host is protected from deletion")
)

// accounts are the users and what they may do. Its lock is a leaf. What is given holds when
// it is saved, what is taken away at once: both are changed with Broker.admin held.
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

// change makes a change with the lock held.
func (a *accounts) change(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fn()
	a.version.Add(1)
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
	b.admin.Lock()
	defer b.admin.Unlock()
	return b.putUser(&u)
}

// putUser is called with admin held.
func (b *Broker) putUser(u *access.User) error {
	key := keyOf(userKind, u.Name)
	was := store.Definition{Key: key}
	if old, there := b.User(u.Name); there {
		was = definitionOf(key, &old)
	}
	err := b.saveFirst([]store.Definition{definitionOf(key, u)}, []store.Definition{was})
	if err == nil {
		b.accounts.change(func() { b.accounts.users[u.Name] = u })
	}
	return err
}

// DeleteUser removes a user with his permissions and closes his connections (320).
// Error: ErrNoUser; or that it is not saved, and a restart would bring the user back.
func (b *Broker) DeleteUser(name string) error {
	err := b.dropUser(name)
	if errors.Is(err, ErrNoUser) {
		return err
	}
	b.sessions.end(func(s *Session) bool { return s.user == name }, fmt.Sprintf("user '%s' is deleted", name))
	return err
}

func (b *Broker) dropUser(name string) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	if _, there := b.User(name); !there {
		return ErrNoUser
	}
	a := &b.accounts
	a.change(func() {
		delete(a.users, name)
		dropped := a.drop(func(k inVHost) bool { return k.user == name })
		b.undefine(append(dropped, keyOf(userKind, name))...)
	})
	return b.saveDefinitions()
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
	b.admin.Lock()
	defer b.admin.Unlock()
	u, there := b.User(name)
	if !there {
		return ErrNoUser
	}
	u.Limits = limits
	if err := u.Check(); err != nil {
		return err
	}
	return b.putUser(&u)
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
	return b.changePermission(inVHost{p.User, p.VHost}, func(now *permissions) { now.granted = &p })
}

// ClearPermission takes a user's access to a virtual host away. Errors: ErrNoUser,
// ErrNoVHost; or that it is not saved, and a restart would give it back.
func (b *Broker) ClearPermission(user, vhost string) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	k, a := inVHost{user, vhost}, &b.accounts
	if err := b.checkAccount(k); err != nil {
		return err
	}
	a.change(func() {
		delete(a.granted, k)
		delete(a.compiled, k)
		b.undefine(keyOf(permissionKind, user, vhost))
	})
	return b.saveDefinitions()
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
	return b.changePermission(inVHost{p.User, p.VHost}, func(now *permissions) { now.topics[p.Exchange] = p })
}

// ClearTopicPermissions lifts what restricts a user's routing keys on the
// exchange, "" for all of the virtual host. Errors: ErrNoUser, ErrNoVHost.
func (b *Broker) ClearTopicPermissions(user, vhost, exchange string) error {
	return b.changePermission(inVHost{user, vhost}, func(now *permissions) {
		maps.DeleteFunc(now.topics, func(name string, _ access.TopicPermission) bool { return exchange == "" || name == exchange })
	})
}

// permissions are those of a user in a virtual host, copied out, and their compiled
// form.
type permissions struct {
	granted *access.Permission // nil: none
	topics  map[string]access.TopicPermission
	grant   *access.Grant // nil where granted is
}

// changePermission makes a change and keeps the compiled form of what comes of it; if
// that cannot be, or cannot be saved, nothing has changed. It compiles with the accounts'
// lock not held: every login and every new channel waits for that.
func (b *Broker) changePermission(k inVHost, change func(*permissions)) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	if err := b.checkAccount(k); err != nil {
		return err
	}
	was := b.accounts.permissionsOf(k)
	now := permissions{granted: was.granted, topics: maps.Clone(was.topics)}
	change(&now)
	err := now.compile(k)
	if err == nil {
		err = b.saveFirst(now.definitions(k), was.definitions(k))
	}
	if err == nil {
		b.accounts.change(func() { b.accounts.set(k, &now) })
	}
	return err
}

func (b *Broker) checkAccount(k inVHost) error {
	if _, ok := b.User(k.user); !ok {
		return ErrNoUser
	}
	if _, ok := b.VHost(k.vhost); !ok {
		return ErrNoVHost
	}
	return nil
}

func (a *accounts) permissionsOf(k inVHost) permissions {
	a.mu.RLock()
	defer a.mu.RUnlock()
	p := permissions{topics: maps.Clone(a.topics[k])}
	if granted, ok := a.granted[k]; ok {
		p.granted = &granted
	}
	if p.topics == nil {
		p.topics = map[string]access.TopicPermission{}
	}
	return p
}

// compile makes the grant. Without a permission there is none, whatever the topic
// permissions say; they are checked all the same.
func (p *permissions) compile(k inVHost) error {
	granted := access.Permission{User: k.user, VHost: k.vhost}
	if p.granted != nil {
		granted = *p.granted
	}
	g, err := access.Compile(granted, p.list())
	if err != nil {
		return err
	}
	if p.grant = nil; p.granted != nil {
		p.grant = g
	}
	return nil
}

// set makes p the permissions of a user in a virtual host; called with mu held.
func (a *accounts) set(k inVHost, p *permissions) {
	delete(a.granted, k)
	delete(a.topics, k)
	delete(a.compiled, k)
	if p.granted != nil {
		a.granted[k] = *p.granted
	}
	if len(p.topics) > 0 {
		a.topics[k] = p.topics
	}
	if p.grant != nil {
		a.compiled[k] = p.grant
	}
}

// definitions are those of the permissions, with what there is none of.
func (p *permissions) definitions(k inVHost) []store.Definition {
	granted, topics := store.Definition{Key: keyOf(permissionKind, k.user, k.vhost)}, store.Definition{Key: keyOf(topicsKind, k.user, k.vhost)}
	if p.granted != nil {
		granted = definitionOf(granted.Key, p.granted)
	}
	if len(p.topics) > 0 {
		topics = definitionOf(topics.Key, p.list())
	}
	return []store.Definition{granted, topics}
}

// list are the topic permissions by exchange.
func (p *permissions) list() []access.TopicPermission {
	return slices.SortedFunc(maps.Values(p.topics), func(x, y access.TopicPermission) int { return strings.Compare(x.Exchange, y.Exchange) })
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
