package broker

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

// saved are the definitions that the store has found. The tags are those of the one
// document in which versions before kept them all.
type saved struct {
	found     bool                 // there were any
	old       bool                 // in one document
	Version   int                  `json:"version"`
	VHosts    []vhostDefinition    `json:"vhosts"`
	Accounts  accountDefinitions   `json:"accounts"`
	Exchanges []exchangeDefinition `json:"exchanges"`
	Queues    []queueDefinition    `json:"queues"`
	Bindings  []bindingDefinition  `json:"bindings"`
	Policies  []policyDefinition   `json:"policies"`
	Global    policy.Definition    `json:"global_parameters"`
	deleted   map[uint64]bool      // incarnations of queues
}

type accountDefinitions struct {
	Configured       *access.User             `json:"configured"` // name and hash of the configured user
	Users            []access.User            `json:"users"`
	Permissions      []access.Permission      `json:"permissions"`
	TopicPermissions []access.TopicPermission `json:"topic_permissions"`
}

// documentVersion is that of the one document.
const documentVersion = 1

func readSaved(list []store.Definition) (*saved, error) {
	d := &saved{found: len(list) > 0}
	for _, x := range list {
		if err := d.read(x); err != nil {
			return nil, fmt.Errorf("definition %s: %w", x.Key, err)
		}
	}
	return d, nil
}

func (d *saved) read(x store.Definition) error {
	kind, name, _ := strings.Cut(x.Key, " ")
	switch kind {
	case "":
		return d.readDocument(x.Value)
	case vhostKind:
		return add(&d.VHosts, x.Value)
	case exchangeKind:
		return add(&d.Exchanges, x.Value)
	case queueKind, delayedKind:
		return add(&d.Queues, x.Value)
	case bindingKind:
		return add(&d.Bindings, x.Value)
	case policyKind:
		err := add(&d.Policies, x.Value)
		d.Policies[len(d.Policies)-1].NotInForce = "" // a start finds out
		return err
	case globalKind:
		var one policy.Definition
		err := json.Unmarshal(x.Value, &one)
		if d.Global == nil {
			d.Global = policy.Definition{}
		}
		maps.Copy(d.Global, one)
		return err
	case userKind:
		return add(&d.Accounts.Users, x.Value)
	case configuredKind:
		return json.Unmarshal(x.Value, &d.Accounts.Configured)
	case permissionKind:
		return add(&d.Accounts.Permissions, x.Value)
	case topicsKind:
		var list []access.TopicPermission
		err := json.Unmarshal(x.Value, &list)
		d.Accounts.TopicPermissions = append(d.Accounts.TopicPermissions, list...)
		return err
	case deletedKind:
		return d.readDeleted(name)
	}
	return fmt.Errorf("this program knows no %q; use the version of Curfew that wrote it", kind)
}

func (d *saved) readDeleted(name string) error {
	text, err := strconv.Unquote(name)
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(text, 10, 64)
	if d.deleted == nil {
		d.deleted = map[uint64]bool{}
	}
	d.deleted[id] = true
	return err
}

func add[T any](list *[]T, text []byte) error {
	var x T
	err := json.Unmarshal(text, &x)
	*list = append(*list, x)
	return err
}

func (d *saved) readDocument(text []byte) error {
	if err := json.Unmarshal(text, d); err != nil {
		return err
	}
	if d.Version != documentVersion {
		return fmt.Errorf("it has version %d, this program knows %d; use the version of Curfew that wrote it", d.Version, documentVersion)
	}
	d.old = true
	return nil
}

// apart is what the one document said, as definitions that take its place.
func (d *saved) apart() []store.Definition {
	list := []store.Definition{{Key: ""}}
	for i := range d.VHosts {
		list = append(list, definitionOf(keyOf(vhostKind, d.VHosts[i].Name), &d.VHosts[i]))
	}
	for i := range d.Exchanges {
		list = append(list, definitionOf(d.Exchanges[i].key(), &d.Exchanges[i]))
	}
	for i := range d.Queues {
		list = append(list, definitionOf(d.Queues[i].key(), &d.Queues[i]))
	}
	for i := range d.Bindings {
		list = append(list, definitionOf(d.Bindings[i].key(), &d.Bindings[i]))
	}
	for i := range d.Policies {
		list = append(list, definitionOf(d.Policies[i].key(), &d.Policies[i]))
	}
	for name, value := range d.Global {
		list = append(list, definitionOf(keyOf(globalKind, name), map[string]any{name: value}))
	}
	return append(list, d.Accounts.apart()...)
}

func (d *accountDefinitions) apart() (list []store.Definition) {
	if d.Configured != nil {
		list = append(list, definitionOf(keyOf(configuredKind), d.Configured))
	}
	for i := range d.Users {
		list = append(list, definitionOf(keyOf(userKind, d.Users[i].Name), &d.Users[i]))
	}
	for k, p := range d.permissions() {
		list = append(list, p.definitions(k)...)
	}
	return list
}

// permissions gathers those of each user in each virtual host.
func (d *accountDefinitions) permissions() map[inVHost]permissions {
	all := map[inVHost]permissions{}
	for _, x := range d.Permissions {
		k := inVHost{x.User, x.VHost}
		p := all[k]
		p.granted = &x
		all[k] = p
	}
	for _, x := range d.TopicPermissions {
		k := inVHost{x.User, x.VHost}
		p := all[k]
		if p.topics == nil {
			p.topics = map[string]access.TopicPermission{}
		}
		p.topics[x.Exchange] = x
		all[k] = p
	}
	return all
}
