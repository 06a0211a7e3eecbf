package definitions

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"curfew/broker/policy"
)

// Difference is one thing in which two documents differ.
type Difference struct {
	Mark Mark   `json:"mark"`
	What string `json:"what"` // as in: queue 'orders' in vhost '/'
}

// Mark says how.
type Mark string

const (
	Added   Mark = "+" // an import would add it
	Changed Mark = "~" // an import would change it
	Stays   Mark = "!" // it is declared otherwise, and an import would leave it so
	Missing Mark = "-" // the document does not have it; an import would leave it alone
)

// Diff says what importing want would change where have was exported: what is
// added, changed or left, by name.
func Diff(have, want *Document) (list []Difference) {
	old, wanted := have.things(), want.things()
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
			list = append(list, Difference{Stays, name})
		default:
			list = append(list, Difference{Changed, name})
		}
	}
	return list
}

// things are the document's things by name, each as text that is the same if the
// thing is.
func (d *Document) things() map[string]string {
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
		note(d.VHosts[i].about(), "vhost '%s'", d.VHosts[i].Name)
	}
	for _, p := range d.Permissions {
		note(p, "permissions of '%s' in vhost '%s'", p.User, p.VHost)
	}
	for _, p := range d.TopicPermissions {
		note(p, "topic permissions of '%s' on exchange '%s' in vhost '%s'", p.User, p.Exchange, p.VHost)
	}
	for _, p := range d.Parameters {
		note(withoutPairs(policy.Whole(p.Value)), "parameter '%s' of %s in vhost '%s'", p.Name, p.Component, p.VHost)
	}
	for _, p := range d.GlobalParameters {
		note(p.Value, "global parameter '%s'", p.Name)
	}
	d.placedThings(note)
	return all
}

// placedThings are those of things that stand in a virtual host and are declared.
func (d *Document) placedThings(note func(thing any, format string, args ...any)) {
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
