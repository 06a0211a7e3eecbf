package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"curfew/broker/access"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// Saved are the definitions that the store has found. The tags are those of the one
// document in which versions before kept them all.
type Saved struct {
	Found     bool              // there were any
	Old       bool              // in one document
	Version   int               `json:"version"`
	VHosts    []VHost           `json:"vhosts"`
	Accounts  Accounts          `json:"accounts"`
	Exchanges []Exchange        `json:"exchanges"`
	Queues    []Queue           `json:"queues"`
	Bindings  []Binding         `json:"bindings"`
	Policies  []Policy          `json:"policies"`
	Global    policy.Definition `json:"global_parameters"`
	Deleted   map[uint64]bool   // incarnations of queues
}

type Accounts struct {
	Configured       *access.User             `json:"configured"` // name and hash of the configured user
	Users            []access.User            `json:"users"`
	Permissions      []access.Permission      `json:"permissions"`
	TopicPermissions []access.TopicPermission `json:"topic_permissions"`
}

// documentVersion is that of the one document.
const documentVersion = 1

func Read(list []store.Definition) (*Saved, error) {
	d := &Saved{Found: len(list) > 0}
	for _, x := range list {
		if err := d.read(x); err != nil {
			return nil, fmt.Errorf("definition %s: %w", x.Key, err)
		}
	}
	return d, nil
}

func (d *Saved) read(x store.Definition) error {
	kind, name, _ := strings.Cut(x.Key, " ")
	switch kind {
	case "":
		return d.readDocument(x.Value)
	case VhostKind:
		return add(&d.VHosts, x.Value)
	case ExchangeKind:
		return add(&d.Exchanges, x.Value)
	case queueKind, delayedKind:
		return add(&d.Queues, x.Value)
	case bindingKind:
		return add(&d.Bindings, x.Value)
	case PolicyKind:
		err := add(&d.Policies, x.Value)
		d.Policies[len(d.Policies)-1].NotInForce = "" // a start finds out
		return err
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
	return fmt.Errorf("this program knows no %q; use the version of Curfew that wrote it", kind)
}

func (d *Saved) readDeleted(name string) error {
	text, err := strconv.Unquote(name)
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(text, 10, 64)
	if d.Deleted == nil {
		d.Deleted = map[uint64]bool{}
	}
	d.Deleted[id] = true
	return err
}

func add[T any](list *[]T, text []byte) error {
	var x T
	err := json.Unmarshal(text, &x)
	*list = append(*list, x)
	return err
}

func (d *Saved) readDocument(text []byte) error {
	if err := json.Unmarshal(text, d); err != nil {
		return err
	}
	if d.Version != documentVersion {
		return fmt.Errorf("it has version %d, this program knows %d; use the version of Curfew that wrote it", d.Version, documentVersion)
	}
	d.Old = true
	return nil
}

// Split is what the one document said, as the definitions that take its place.
func (d *Saved) Split() []store.Definition {
	list := []store.Definition{{Key: ""}}
	for i := range d.VHosts {
		list = append(list, Definition(Key(VhostKind, d.VHosts[i].Name), &d.VHosts[i]))
	}
	for i := range d.Exchanges {
		list = append(list, Definition(d.Exchanges[i].Key(), &d.Exchanges[i]))
	}
	for i := range d.Queues {
		list = append(list, Definition(d.Queues[i].Key(), &d.Queues[i]))
	}
	for i := range d.Bindings {
		list = append(list, Definition(d.Bindings[i].Key(), &d.Bindings[i]))
	}
	for i := range d.Policies {
		list = append(list, Definition(d.Policies[i].Key(), &d.Policies[i]))
	}
	for name, value := range d.Global {
		list = append(list, Definition(Key(GlobalKind, name), map[string]any{name: value}))
	}
	return append(list, d.Accounts.definitions()...)
}

func (d *Accounts) definitions() (list []store.Definition) {
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

// PerUser gathers those of each user in each virtual host.
func (d *Accounts) PerUser() map[UserIn]Permissions {
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

// PerVHost gathers what is declared in each virtual host, and its policies.
func (d *Saved) PerVHost() map[string]*Saved {
	all := map[string]*Saved{}
	of := func(vhost string) *Saved {
		if all[vhost] == nil {
			all[vhost] = &Saved{}
		}
		return all[vhost]
	}
	for i := range d.Exchanges {
		own := of(d.Exchanges[i].VHost)
		own.Exchanges = append(own.Exchanges, d.Exchanges[i])
	}
	for i := range d.Queues {
		own := of(d.Queues[i].VHost)
		own.Queues = append(own.Queues, d.Queues[i])
	}
	for i := range d.Bindings {
		own := of(d.Bindings[i].VHost)
		own.Bindings = append(own.Bindings, d.Bindings[i])
	}
	for i := range d.Policies {
		own := of(d.Policies[i].VHost)
		own.Policies = append(own.Policies, d.Policies[i])
	}
	return all
}

// Besides is what is not among those, or otherwise.
func (d *Saved) Besides(those map[string]store.Definition) *Saved {
	news := &Saved{Global: policy.Definition{}}
	news.VHosts = others(d.VHosts, those, func(x *VHost) string { return Key(VhostKind, x.Name) })
	news.Exchanges = others(d.Exchanges, those, (*Exchange).Key)
	news.Queues = others(d.Queues, those, (*Queue).Key)
	news.Bindings = others(d.Bindings, those, (*Binding).Key)
	news.Policies = others(d.Policies, those, (*Policy).Key)
	for name, value := range d.Global {
		if x := GlobalDefinition(name, value); string(those[x.Key].Value) != string(x.Value) {
			news.Global[name] = value
		}
	}
	news.Accounts = d.Accounts.besides(those)
	return news
}

func (d *Accounts) besides(those map[string]store.Definition) (news Accounts) {
	for i := range d.Users {
		if x := Definition(Key(UserKind, d.Users[i].Name), &d.Users[i]); string(those[x.Key].Value) != string(x.Value) {
			news.Users = append(news.Users, d.Users[i])
		}
	}
	for k, p := range d.PerUser() {
		for _, x := range p.Definitions(k) {
			if string(those[x.Key].Value) != string(x.Value) {
				news.add(&p)
				break
			}
		}
	}
	return news
}

func (d *Accounts) add(p *Permissions) {
	if p.Granted != nil {
		d.Permissions = append(d.Permissions, *p.Granted)
	}
	d.TopicPermissions = append(d.TopicPermissions, p.List()...)
}

func others[T any](list []T, those map[string]store.Definition, key func(*T) string) (news []T) {
	for i := range list {
		if x := Definition(key(&list[i]), &list[i]); string(those[x.Key].Value) != string(x.Value) {
			news = append(news, list[i])
		}
	}
	return news
}

func GlobalDefinition(name string, value any) store.Definition {
	return Definition(Key(GlobalKind, name), map[string]any{name: value})
}
