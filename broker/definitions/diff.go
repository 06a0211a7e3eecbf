package definitions

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"curfew/broker/policy"
)

// Difference is one object in which two documents differ.
type Difference struct {
	Mark Mark   `json:"mark"`
	What string `json:"what"` // for example: queue 'orders' in vhost '/'
}

// Mark is the kind of a difference.
type Mark string

const (
	Added   Mark = "+" // an import would add it
	Changed Mark = "~" // an import would change it
	Differs Mark = "!" // its properties differ, and an import would not change them
	Missing Mark = "-" // it is not in the document; an import would not change it
)

// Diff returns what importing want would change in a broker that exported have: what would
// be added, changed or left as it is, ordered by name.
func Diff(have, want *Document) (list []Difference) {
	old, wanted := have.describe(), want.describe()
	names := slices.Concat(slices.Collect(maps.Keys(old)), slices.Collect(maps.Keys(wanted)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, there := old[name]
		after, asked := wanted[name]
		switch {
		case !there:
			list = append(list, Difference{Added, name})
		case !asked:
			list = append(list, Difference{Missing, name})
		case before == after:
		case strings.HasPrefix(name, "queue ") || strings.HasPrefix(name, "exchange "):
			list = append(list, Difference{Differs, name})
		default:
			list = append(list, Difference{Changed, name})
		}
	}
	return list
}

// describe returns the document's objects by name. Each has a text that is equal if the
// objects are.
func (d *Document) describe() map[string]string {
	all := map[string]string{}
	note := func(thing any, format string, args ...any) {
		text, err := json.Marshal(thing)
		if err != nil {
			text = fmt.Appendf(nil, "%v", thing)
		}
		all[fmt.Sprintf(format, args...)] = string(text)
	}
	for i := range d.Users {
		u := d.Users[i]
		if len(u.Limits) == 0 {
			u.Limits = nil
		}
		note(&u, "user '%s'", u.Name)
	}
	for i := range d.VHosts {
		note(d.VHosts[i].metadata(), "vhost '%s'", d.VHosts[i].Name)
	}
	for _, p := range d.Permissions {
		note(p, "permissions of '%s' in vhost '%s'", p.User, p.VHost)
	}
	for _, p := range d.TopicPermissions {
		note(p, "topic permissions of '%s' on exchange '%s' in vhost '%s'", p.User, p.Exchange, p.VHost)
	}
	for _, p := range d.Parameters {
		if list, is := p.Value.([]any); is && len(list) == 0 { // limits that were cleared
			continue
		}
		note(withoutPairs(policy.Whole(p.Value)), "parameter '%s' of %s in vhost '%s'", p.Name, p.Component, p.VHost)
	}
	for _, p := range d.GlobalParameters {
		if !strings.HasPrefix(p.Name, "internal") { // no export of Curfew has those
			note(p.Value, "global parameter '%s'", p.Name)
		}
	}
	d.describeTopology(note)
	return all
}

// describeTopology adds the policies, exchanges, queues and bindings.
func (d *Document) describeTopology(note func(thing any, format string, args ...any)) {
	for _, p := range d.Policies {
		if decoded, err := policy.Decode(policy.User, p.Name, p.fields); err == nil {
			p = makePolicy(p.VHost, &decoded)
		}
		note(p, "policy '%s' in vhost '%s'", p.Name, p.VHost)
	}
	for _, x := range d.Exchanges {
		if !predeclared(x.Name) {
			note(x, "exchange '%s' in vhost '%s'", x.Name, x.VHost)
		}
	}
	for _, q := range d.Queues {
		note(q, "queue '%s' in vhost '%s'", q.Name, q.VHost)
	}
	for _, x := range d.Bindings {
		args, _ := json.Marshal(x.Arguments)
		note(nil, "binding of %s '%s' to '%s' in vhost '%s' by key '%s' and arguments %s", x.DestinationType, x.Destination, x.Source, x.VHost, x.RoutingKey, args)
	}
}
