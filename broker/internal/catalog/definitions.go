package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/access"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// Definitions are the definitions of a broker or of one virtual host: those found in the store, or
// those made in a copy of the broker.
type Definitions struct {
	Found     bool // the store had some
	VHosts    []VHost
	Accounts  SavedAccounts
	Exchanges []Exchange
	Queues    []Queue
	Bindings  []Binding
	Policies  []Policy
	Global    policy.Definition
	Deleted   map[uint64]bool // incarnations of queues
	// Left are changes to be saved: they remove what is left of virtual hosts that were deleted.
	Left []store.Definition
}

// SavedAccounts are the definitions of users and their permissions.
type SavedAccounts struct {
	Configured       *access.User // name and password hash of the configured user
	Users            []access.User
	Permissions      []access.Permission
	TopicPermissions []access.TopicPermission
}

// Read collects definitions that were found in the store.
func Read(list []store.Definition) (*Definitions, error) {
	d := &Definitions{Found: len(list) > 0}
	for _, x := range list {
		if err := d.read(x); err != nil {
			return nil, fmt.Errorf("definition %s: %w", x.Key, err)
		}
	}
	d.leaveOutEnded()
	return d, nil
}

// leaveOutEnded moves what is left of virtual hosts that were deleted to Left and Deleted.
func (d *Definitions) leaveOutEnded() {
	ended := map[string]bool{}
	for i := range d.VHosts {
		ended[d.VHosts[i].Name] = d.VHosts[i].Ended
	}
	d.drop(func(vhost string, x keyed) bool {
		if !ended[vhost] {
			return false
		}
		d.Left = append(d.Left, store.Definition{Key: x.Key()})
		if q, is := x.(*Queue); is {
			d.markDeleted(q.ID)
			d.Left = append(d.Left, Definition(Key(DeletedKind, strconv.FormatUint(q.ID, 10)), true))
		}
		return true
	})
}

// keyed is a definition with a key.
type keyed interface{ Key() string }

// drop leaves out those virtual hosts, and definitions in virtual hosts, for which gone returns true. A virtual host itself comes last.
func (d *Definitions) drop(gone func(vhost string, x keyed) bool) {
	d.Exchanges = slices.DeleteFunc(d.Exchanges, func(x Exchange) bool { return gone(x.VHost, &x) })
	d.Queues = slices.DeleteFunc(d.Queues, func(x Queue) bool { return gone(x.VHost, &x) })
	d.Bindings = slices.DeleteFunc(d.Bindings, func(x Binding) bool { return gone(x.VHost, &x) })
	d.Policies = slices.DeleteFunc(d.Policies, func(x Policy) bool { return gone(x.VHost, &x) })
	d.VHosts = slices.DeleteFunc(d.VHosts, func(x VHost) bool { return gone(x.Name, &x) })
}

func (d *Definitions) markDeleted(queue uint64) {
	if d.Deleted == nil {
		d.Deleted = map[uint64]bool{}
	}
	d.Deleted[queue] = true
}

func (d *Definitions) read(x store.Definition) error {
	kind, name, _ := strings.Cut(x.Key, " ")
	switch kind {
	case VHostKind:
		return add(&d.VHosts, x.Value)
	case ExchangeKind:
		return add(&d.Exchanges, x.Value)
	case queueKind, delayedKind:
		return add(&d.Queues, x.Value)
	case bindingKind:
		return add(&d.Bindings, x.Value)
	case PolicyKind:
		return add(&d.Policies, x.Value)
	case GlobalKind:
		var one policy.Definition
		err := json.Unmarshal(x.Value, &one)
		if d.Global == nil {
			d.Global = policy.Definition{}
		}
		maps.Copy(d.Global, one)
		return err
	case UserKind:
		return add(&d.Accounts.Users, x.Value)
	case ConfiguredKind:
		return json.Unmarshal(x.Value, &d.Accounts.Configured)
	case PermissionKind:
		return add(&d.Accounts.Permissions, x.Value)
	case TopicsKind:
		var list []access.TopicPermission
		err := json.Unmarshal(x.Value, &list)
		d.Accounts.TopicPermissions = append(d.Accounts.TopicPermissions, list...)
		return err
	case DeletedKind:
		return d.readDeleted(name)
	}
	return fmt.Errorf("this version of Curfew does not know the kind %q; use the version that wrote it", kind)
}

func (d *Definitions) readDeleted(name string) error {
	text, err := strconv.Unquote(name)
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(text, 10, 64)
	d.markDeleted(id)
	return err
}

func add[T any](list *[]T, text []byte) error {
	var x T
	err := json.Unmarshal(text, &x)
	*list = append(*list, x)
	return err
}

// Split returns the definitions one by one, to save them.
func (d *Definitions) Split() (list []store.Definition) {
	d.drop(func(_ string, x keyed) bool {
		list = append(list, Definition(x.Key(), x))
		return false
	})
	for name, value := range d.Global {
		list = append(list, Definition(Key(GlobalKind, name), map[string]any{name: value}))
	}
	return append(list, d.Accounts.definitions()...)
}

func (d *SavedAccounts) definitions() (list []store.Definition) {
	if d.Configured != nil {
		list = append(list, Definition(Key(ConfiguredKind), d.Configured))
	}
	for i := range d.Users {
		list = append(list, Definition(Key(UserKind, d.Users[i].Name), &d.Users[i]))
	}
	for k, p := range d.PerUser() {
		list = append(list, p.Definitions(k)...)
	}
	return list
}

// PerUser groups the permissions by user and virtual host.
func (d *SavedAccounts) PerUser() map[UserIn]Permissions {
	all := map[UserIn]Permissions{}
	for _, x := range d.Permissions {
		k := UserIn{x.User, x.VHost}
		p := all[k]
		p.Granted = &x
		all[k] = p
	}
	for _, x := range d.TopicPermissions {
		k := UserIn{x.User, x.VHost}
		p := all[k]
		if p.Topics == nil {
			p.Topics = map[string]access.TopicPermission{}
		}
		p.Topics[x.Exchange] = x
		all[k] = p
	}
	return all
}

// PerVHost groups exchanges, queues, bindings and policies by virtual host.
func (d *Definitions) PerVHost() map[string]*Definitions {
	all := map[string]*Definitions{}
	of := func(vhost string) *Definitions {
		if all[vhost] == nil {
			all[vhost] = &Definitions{}
		}
		return all[vhost]
	}
	for _, x := range d.Exchanges {
		of(x.VHost).Exchanges = append(of(x.VHost).Exchanges, x)
	}
	for _, x := range d.Queues {
		of(x.VHost).Queues = append(of(x.VHost).Queues, x)
	}
	for _, x := range d.Bindings {
		of(x.VHost).Bindings = append(of(x.VHost).Bindings, x)
	}
	for _, x := range d.Policies {
		of(x.VHost).Policies = append(of(x.VHost).Policies, x)
	}
	return all
}

// OnlyChanged leaves in d the definitions that are new or different from those in was, which is by key. Of the permissions that
// a user has in a virtual host all are left if one is.
func (d *Definitions) OnlyChanged(was map[string]store.Definition) {
	same := func(x store.Definition) bool { return string(was[x.Key].Value) == string(x.Value) }
	d.drop(func(_ string, x keyed) bool { return same(Definition(x.Key(), x)) })
	maps.DeleteFunc(d.Global, func(name string, value any) bool { return same(GlobalDefinition(name, value)) })
	d.Accounts.Users = slices.DeleteFunc(d.Accounts.Users, func(x access.User) bool { return same(Definition(Key(UserKind, x.Name), &x)) })
	unchanged := map[UserIn]bool{}
	for k, p := range d.Accounts.PerUser() {
		unchanged[k] = !slices.ContainsFunc(p.Definitions(k), func(x store.Definition) bool { return !same(x) })
	}
	d.Accounts.Permissions = slices.DeleteFunc(d.Accounts.Permissions, func(x access.Permission) bool { return unchanged[UserIn{x.User, x.VHost}] })
	d.Accounts.TopicPermissions = slices.DeleteFunc(d.Accounts.TopicPermissions, func(x access.TopicPermission) bool { return unchanged[UserIn{x.User, x.VHost}] })
}

// GlobalDefinition is the definition of a global parameter.
func GlobalDefinition(name string, value any) store.Definition {
	return Definition(Key(GlobalKind, name), map[string]any{name: value})
}
