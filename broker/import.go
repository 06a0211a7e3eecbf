package broker

import (
	"errors"
	"fmt"
	"slices"

	"curfew/broker/internal/catalog"
	"curfew/broker/store"
)

// Change lets fn make and change definitions in a copy of the broker, which has no messages
// and no connections. Then it applies the result: all of it or, with an error, nothing, even
// if the process dies on the way. What fn deletes is not deleted. vhost names the only
// virtual host that fn changes; "" means all of them, with users, permissions and global
// parameters. Until Change returns, clients that declare something in these virtual hosts
// wait, and so would fn if it declared something in b. Errors: fn's, ErrNoVHost, ErrNotSaved.
func (b *Broker) Change(vhost string, fn func(*Broker) error) error {
	lockAdmin(b, vhost)
	defer b.admin.Unlock()
	vhosts := b.VHosts()
	if vhost != "" {
		vhosts = slices.DeleteFunc(vhosts, func(vh *VHost) bool { return vh.Name() != vhost })
		if len(vhosts) == 0 {
			return ErrNoVHost
		}
	}
	for _, vh := range vhosts { // by name; nobody else holds two
		defer vh.BeginImport()()
	}
	im := importer{b}
	before := im.listing(vhosts, vhost == "")
	c, err := im.copyOf(before)
	if err != nil {
		return err
	}
	defer c.discard()
	if err := fn(c); err != nil {
		return err
	}
	was := map[string]store.Definition{}
	for _, x := range before.Split() {
		was[x.Key] = x
	}
	changed := importer{c}.listing(c.VHosts(), vhost == "")
	changed.OnlyChanged(was)
	if err := im.save(changed, was); err != nil {
		return err
	}
	return im.apply(changed)
}

// ChangePolicies calls fn, in a copy of the broker. The policies that fn changes are applied
// together when it returns, so that an import looks through all names once.
func (b *Broker) ChangePolicies(fn func() error) error {
	for _, vh := range b.VHosts() {
		defer vh.Policies.Defer()()
	}
	return fn()
}

// importer makes definitions in a copy of the broker, and applies them.
type importer struct{ b *Broker }

// listing returns all definitions of the virtual hosts, including those that are not saved;
// with all, also users, permissions and global parameters.
func (im importer) listing(vhosts []*VHost, all bool) *catalog.Definitions {
	d := &catalog.Definitions{Found: true}
	for _, vh := range vhosts {
		vh.List(d)
	}
	if !all {
		return d
	}
	d.Accounts.Users, d.Accounts.Permissions, d.Accounts.TopicPermissions = im.b.Accounts.Users(), im.b.Accounts.Permissions(), im.b.Accounts.TopicPermissions()
	d.Global = im.b.GlobalParameters()
	return d
}

// copyOf makes a broker in memory with these definitions and the same limits. It does
// nothing by itself.
func (im importer) copyOf(d *catalog.Definitions) (*Broker, error) {
	c := newBroker(Options{
		IdleMinimum: im.b.opts.IdleMinimum, TTLPrecedence: im.b.opts.TTLPrecedence, Unroutable: im.b.opts.Unroutable, Ceilings: im.b.opts.Ceilings, MaxMessageBytes: im.b.opts.MaxMessageBytes,
	}, im.b.env.Clock)
	s, _, err := store.Open(store.Options{})
	if err != nil {
		return nil, err
	}
	c.env.Store = s
	c.catalog.Store = s
	catalog.LoadAccounts(c.Accounts, &d.Accounts)
	if err = c.recovery.restoreVHosts(d); err == nil {
		err = c.recovery.restoreTopology(d, nil)
	}
	if err != nil {
		c.discard()
		return nil, err
	}
	c.registry.Memory.Continue(&im.b.registry.Memory)
	c.registry.Ready.Store(true)
	return c, nil
}

func (b *Broker) discard() {
	b.stop()
	b.env.Store.Close()
}

// save saves the durable changes, all of them or none. was has the old definitions by key.
func (im importer) save(changed *catalog.Definitions, was map[string]store.Definition) error {
	durable := *changed
	durable.Exchanges = slices.DeleteFunc(slices.Clone(changed.Exchanges), func(x catalog.Exchange) bool { return x.Transient })
	durable.Queues = slices.DeleteFunc(slices.Clone(changed.Queues), func(x catalog.Queue) bool { return x.Transient })
	durable.Bindings = slices.DeleteFunc(slices.Clone(changed.Bindings), func(x catalog.Binding) bool { return x.Transient })
	now := durable.Split()
	were := make([]store.Definition, len(now))
	for i := range now {
		were[i] = store.Definition{Key: now[i].Key, Value: was[now[i].Key].Value}
	}
	return im.b.catalog.SaveFirst(now, were)
}

// apply applies the changes once they are saved. None of them should be refused: they were made
// in a copy, and nobody has declared anything since. An error leaves out the rest of a virtual host until the next start.
func (im importer) apply(changed *catalog.Definitions) (err error) {
	for i := range changed.VHosts {
		im.applyVHost(&changed.VHosts[i])
	}
	catalog.LoadAccounts(im.b.Accounts, &changed.Accounts)
	im.b.globalParameters.add(changed.Global)
	for name, own := range changed.PerVHost() {
		vh, _ := im.b.VHost(name)
		if failed := vh.Load(own); failed != nil {
			err = errors.Join(err, fmt.Errorf("virtual host %q: its definitions are saved, and come into force at the next start: %w", name, failed))
		}
	}
	return err
}

func (im importer) applyVHost(x *catalog.VHost) {
	vh, exists := im.b.VHost(x.Name)
	if !exists {
		vh = newVHost(im.b, x.Name)
		defer im.b.vhostTable.add(vh)
	}
	vh.Restore(x)
}
