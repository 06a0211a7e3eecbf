package broker

import (
	"maps"
	"slices"

	"curfew/broker/internal/accounts"
	"curfew/broker/internal/catalog"
	"curfew/broker/store"
)

// Change has fn make and change definitions in a copy of the broker, without messages and
// connections, and takes over the result: all of it or, with an error, nothing, even if the
// process dies on the way. What fn deletes is not deleted. vhost names the only virtual host
// that fn is about; "" is all of them, with users, permissions and global parameters.
// Clients who would declare something there wait meanwhile, and so would fn if it did so in
// b. Errors: fn's, ErrNoVHost, ErrNotSaved.
func (b *Broker) Change(vhost string, fn func(*Broker) error) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	vhosts := b.VHosts()
	if vhost != "" {
		vhosts = slices.DeleteFunc(vhosts, func(vh *VHost) bool { return vh.Name() != vhost })
		if len(vhosts) == 0 {
			return ErrNoVHost
		}
	}
	for _, vh := range vhosts { // by name; nobody else holds two
		vh.BeginImport()
		defer vh.EndImport()
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
	after := importer{c}.listing(c.VHosts(), vhost == "")
	was := map[string]store.Definition{}
	for _, x := range before.Split() {
		was[x.Key] = x
	}
	news := after.ChangedFrom(was)
	if err := im.saveNews(news, was); err != nil {
		return err
	}
	im.takeOver(news)
	return nil
}

// importer has definitions made in a copy of the broker.
type importer struct{ b *Broker }

// listing is all that the virtual hosts hold, what is not saved too, and all besides.
func (im importer) listing(vhosts []*VHost, all bool) *catalog.Definitions {
	d := &catalog.Definitions{Found: true}
	for _, vh := range vhosts {
		vh.List(d)
	}
	if !all {
		return d
	}
	d.Accounts.Users, d.Accounts.Permissions, d.Accounts.TopicPermissions = im.b.Users(), im.b.Permissions(), im.b.TopicPermissions()
	d.Global = im.b.GlobalParameters()
	return d
}

// copyOf makes a broker of these definitions and under the same limits, in memory, that
// does nothing by itself.
func (im importer) copyOf(d *catalog.Definitions) (*Broker, error) {
	c := newBroker(Options{
		IdleMinimum: im.b.opts.IdleMinimum, TTLPrecedence: im.b.opts.TTLPrecedence, Unroutable: im.b.opts.Unroutable, Ceilings: im.b.opts.Ceilings, MaxMessageBytes: im.b.opts.MaxMessageBytes,
	}, im.b.env.Clock)
	s, _, err := store.Open(store.Options{})
	if err != nil {
		return nil, err
	}
	c.env.Store = s
	c.catalog.Open(s)
	accounts.Restore(c.Accounts, &d.Accounts)
	if err = c.recovery.restoreVHosts(d); err == nil {
		err = c.recovery.restoreTopology(d, nil)
	}
	if err != nil {
		c.discard()
		return nil, err
	}
	c.globalParameters.values = maps.Clone(d.Global)
	c.registry.Memory.Continue(&im.b.registry.Memory)
	c.registry.Ready.Store(true)
	return c, nil
}

func (b *Broker) discard() {
	b.stop()
	b.env.Store.Close()
}

// saveNews has what is durable of the news on disk, all of it or nothing.
func (im importer) saveNews(news *catalog.Definitions, was map[string]store.Definition) error {
	durable := *news
	durable.Exchanges = slices.DeleteFunc(slices.Clone(news.Exchanges), func(x catalog.Exchange) bool { return x.Transient })
	durable.Queues = slices.DeleteFunc(slices.Clone(news.Queues), func(x catalog.Queue) bool { return x.Transient })
	durable.Bindings = slices.DeleteFunc(slices.Clone(news.Bindings), func(x catalog.Binding) bool { return x.Transient })
	now := durable.Split()
	were := make([]store.Definition, len(now))
	for i := range now {
		were[i] = store.Definition{Key: now[i].Key, Value: was[now[i].Key].Value}
	}
	return im.b.catalog.SaveFirst(now, were)
}

// takeOver has the news hold, which are saved. Nothing in them can be refused: they were
// made in a copy, and nobody made anything since.
func (im importer) takeOver(news *catalog.Definitions) {
	for i := range news.VHosts {
		im.takeVHost(&news.VHosts[i])
	}
	accounts.ApplyImport(im.b.Accounts, &news.Accounts)
	im.b.globalParameters.take(news.Global)
	for name, own := range news.PerVHost() {
		vh, _ := im.b.VHost(name)
		vh.ApplyImport(own)
	}
}

func (im importer) takeVHost(x *catalog.VHost) {
	vh, there := im.b.VHost(x.Name)
	if !there {
		vh = newVHost(im.b, x.Name)
		defer im.b.vhostTable.add(vh)
	}
	vh.Restore(x)
}
