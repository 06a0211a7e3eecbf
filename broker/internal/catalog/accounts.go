package catalog

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"curfew/broker/access"
	"curfew/broker/store"
)

// The errors of operations on users, permissions and virtual hosts, besides
// access.ErrInvalid.
var (
	ErrNoUser  = errors.New("broker: no such user")
	ErrNoVHost = errors.New("broker: no such virtual host")
	// ErrProtected is the error of a deletion that the virtual host's protection forbids.
	ErrProtected = errors.New("broker: the virtual host is protected from deletion")
)

// AccountsOptions are the catalog that accounts are kept in, and what they need from others.
type AccountsOptions struct {
	Catalog           *Catalog
	Admin             sync.Locker            // held over each change until it is saved
	HasVHost          func(name string) bool // permissions in other virtual hosts are refused
	Deleted           func(user string)      // is called after a user is deleted, with no lock held
	GuestFromAnywhere bool                   // the user guest may log in from other machines too
	Log               *zap.Logger
}

// Accounts are the users and what they may do. Its lock is a leaf. What is granted takes effect
// when it is saved, what is revoked at once. All changes are made with the admin lock held. Safe
// for concurrent use.
type Accounts struct {
	opts  AccountsOptions
	guard Guard

	// version is raised by each change, so that a cached answer knows when it is
	// stale.
	version atomic.Uint64

	mu         sync.RWMutex
	users      map[string]*access.User // replaced, never changed
	granted    map[UserIn]access.Permission
	topics     map[UserIn]map[string]access.TopicPermission // by exchange
	compiled   map[UserIn]*access.Grant
	configured *access.User // the configured user, as last applied
}

// NewAccounts makes accounts without users. LoadAccounts adds those of the last run.
func NewAccounts(o AccountsOptions) *Accounts {
	a := &Accounts{opts: o, guard: Guard{GuestFromAnywhere: o.GuestFromAnywhere}}
	a.users, a.granted = map[string]*access.User{}, map[UserIn]access.Permission{}
	a.topics, a.compiled = map[UserIn]map[string]access.TopicPermission{}, map[UserIn]*access.Grant{}
	return a
}

// change calls fn with mu held, and raises the version.
func (a *Accounts) change(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fn()
	a.version.Add(1)
}

// Users lists the users by name.
func (a *Accounts) Users() []access.User {
	a.mu.RLock()
	defer a.mu.RUnlock()
	list := make([]access.User, 0, len(a.users))
	for _, name := range slices.Sorted(maps.Keys(a.users)) {
		list = append(list, *a.users[name])
	}
	return list
}

// User returns the user of that name.
func (a *Accounts) User(name string) (access.User, bool) {
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
func (a *Accounts) PutUser(u access.User) error {
	if err := u.Check(); err != nil {
		return err
	}
	a.opts.Admin.Lock()
	defer a.opts.Admin.Unlock()
	return a.putUserLocked(&u)
}

// putUserLocked saves the user and then makes or replaces it. Called with the admin lock held.
func (a *Accounts) putUserLocked(u *access.User) error {
	key := Key(UserKind, u.Name)
	was := store.Definition{Key: key}
	if old, exists := a.User(u.Name); exists {
		was = Definition(key, &old)
	}
	err := a.opts.Catalog.SaveFirst([]store.Definition{Definition(key, u)}, []store.Definition{was})
	if err == nil {
		a.change(func() { a.users[u.Name] = u })
	}
	return err
}

// DeleteUser removes a user with all permissions, and closes the connections of that user (320).
// Errors: ErrNoUser; or catalog.ErrNotSaved, and a restart would restore the user.
func (a *Accounts) DeleteUser(name string) error {
	err := a.dropUser(name)
	if errors.Is(err, ErrNoUser) {
		return err
	}
	a.opts.Deleted(name)
	return err
}

func (a *Accounts) dropUser(name string) error {
	a.opts.Admin.Lock()
	defer a.opts.Admin.Unlock()
	if _, exists := a.User(name); !exists {
		return ErrNoUser
	}
	a.change(func() {
		delete(a.users, name)
		dropped := a.dropPermissionsLocked(func(k UserIn) bool { return k.User == name })
		a.opts.Catalog.ChangeLocked(Removals(append(dropped, Key(UserKind, name))...)...)
	})
	return a.opts.Catalog.Sync()
}

// SetUserLimits replaces a user's limits. Errors: ErrNoUser, access.ErrInvalid.
func (a *Accounts) SetUserLimits(name string, limits access.Limits) error {
	a.opts.Admin.Lock()
	defer a.opts.Admin.Unlock()
	u, exists := a.User(name)
	if !exists {
		return ErrNoUser
	}
	u.Limits = limits
	if err := u.Check(); err != nil {
		return err
	}
	return a.putUserLocked(&u)
}

// LoadAccounts puts saved users and permissions into force: those of the last run, or those that were checked in a copy.
func LoadAccounts(a *Accounts, d *SavedAccounts) {
	all, grants := d.PerUser(), map[UserIn]*access.Grant{}
	for k, p := range all {
		var err error
		if grants[k], err = compile(k, &p); err != nil { // another version accepted them
			a.opts.Log.Warn("saved permissions are not valid, and what is not valid grants nothing; correct what the error names and set them again",
				zap.String("user", k.User), zap.String("vhost", k.VHost), zap.Error(err))
		}
	}
	a.change(func() {
		if d.Configured != nil {
			a.configured = d.Configured
		}
		for _, u := range d.Users {
			a.users[u.Name] = &u
		}
		for k, p := range all {
			a.setPermissionsLocked(k, &p, grants[k])
		}
	})
}
