package broker

import (
	"maps"
	"slices"
	"strings"

	"curfew/broker/exchange"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// Change has fn make and change definitions in a copy of the broker, without messages and
// connections, and takes over what came of it: all or, with an error, nothing, also if
// the process dies on the way. What fn deletes is not deleted. vhost names the virtual
// host that it is about, with nothing beside; "" all, with users, permissions and global
// parameters. Clients who would make something there wait meanwhile, and so would fn if
// it did in b. Errors: fn's, ErrNoVHost, ErrNotSaved.
func (b *Broker) Change(vhost string, fn func(*Broker) error) error {
	b.admin.Lock()
	defer b.admin.Unlock()
	vhosts := b.VHosts()
	if vhost != "" {
		vhosts = slices.DeleteFunc(vhosts, func(vh *VHost) bool { return vh.name != vhost })
		if len(vhosts) == 0 {
			return ErrNoVHost
		}
	}
	for _, vh := range vhosts { // by name; nobody else holds two
		vh.importing.Lock()
		defer vh.importing.Unlock()
	}
	before := b.listing(vhosts, vhost == "")
	c, err := b.copyOf(before)
	if err != nil {
		return err
	}
	defer c.discard()
	if err := fn(c); err != nil {
		return err
	}
	after := c.listing(c.VHosts(), vhost == "")
	was := map[string]store.Definition{}
	for _, x := range before.apart() {
		was[x.Key] = x
	}
	news := after.besides(was)
	if err := b.saveNews(news, was); err != nil {
		return err
	}
	b.takeOver(news)
	return nil
}

// listing is all that the virtual hosts hold, what is not saved too, and all besides.
func (b *Broker) listing(vhosts []*VHost, all bool) *saved {
	d := &saved{found: true}
	for _, vh := range vhosts {
		vh.list(d)
	}
	if !all {
		return d
	}
	d.Accounts.Users, d.Accounts.Permissions, d.Accounts.TopicPermissions = b.Users(), b.Permissions(), b.TopicPermissions()
	d.Global = b.GlobalParameters()
	return d
}

func (vh *VHost) list(d *saved) {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	d.VHosts = append(d.VHosts, *vh.definition())
	for _, x := range vh.exchanges {
		if _, every := predeclared[x.name]; !every {
			d.Exchanges = append(d.Exchanges, *vh.exchangeDefinition(x))
		}
		x.router.Each(func(b exchange.Binding[destination]) bool {
			d.Bindings = append(d.Bindings, *vh.bindingDefinition(x, b))
			return true
		})
	}
	for _, q := range vh.queues {
		d.Queues = append(d.Queues, *q.definition())
	}
	for k := range vh.policies {
		for _, p := range vh.policies[k] {
			x := vh.policyDefinition(policy.Kind(k), *p)
			x.NotInForce = p.NotInForce // nor is it in a copy
			d.Policies = append(d.Policies, *x)
		}
	}
}

// copyOf makes a broker of these definitions and under the same limits, in memory, that
// does nothing by itself.
func (b *Broker) copyOf(d *saved) (*Broker, error) {
	c := newBroker(Options{
		Clock: b.clock, IdleMinimum: b.opts.IdleMinimum, TTLPrecedence: b.opts.TTLPrecedence, Unroutable: b.opts.Unroutable, Ceilings: b.opts.Ceilings, MaxMessageBytes: b.opts.MaxMessageBytes,
	}, b.aheadOfWall)
	s, _, err := store.Open(store.Options{})
	if err != nil {
		return nil, err
	}
	c.store = s
	c.restoreAccounts(&d.Accounts)
	if err = c.restoreVHosts(d); err == nil {
		err = c.restoreTopology(d, nil)
	}
	if err != nil {
		c.discard()
		return nil, err
	}
	c.global = maps.Clone(d.Global)
	c.declared.like(&b.declared)
	c.recovered.Store(true)
	return c, nil
}

func (b *Broker) discard() {
	b.stop()
	b.store.Close()
}

// besides is what is not among those, or otherwise.
func (d *saved) besides(those map[string]store.Definition) *saved {
	news := &saved{Global: policy.Definition{}}
	news.VHosts = others(d.VHosts, those, func(x *vhostDefinition) string { return keyOf(vhostKind, x.Name) })
	news.Exchanges = others(d.Exchanges, those, (*exchangeDefinition).key)
	news.Queues = others(d.Queues, those, (*queueDefinition).key)
	news.Bindings = others(d.Bindings, those, (*bindingDefinition).key)
	news.Policies = others(d.Policies, those, (*policyDefinition).key)
	for name, value := range d.Global {
		if x := globalDefinition(name, value); string(those[x.Key].Value) != string(x.Value) {
			news.Global[name] = value
		}
	}
	news.Accounts = d.Accounts.besides(those)
	return news
}

func (d *accountDefinitions) besides(those map[string]store.Definition) (news accountDefinitions) {
	for i := range d.Users {
		if x := definitionOf(keyOf(userKind, d.Users[i].Name), &d.Users[i]); string(those[x.Key].Value) != string(x.Value) {
			news.Users = append(news.Users, d.Users[i])
		}
	}
	for k, p := range d.permissions() {
		for _, x := range p.definitions(k) {
			if string(those[x.Key].Value) != string(x.Value) {
				news.add(k, &p)
				break
			}
		}
	}
	return news
}

func (d *accountDefinitions) add(k inVHost, p *permissions) {
	if p.granted != nil {
		d.Permissions = append(d.Permissions, *p.granted)
	}
	d.TopicPermissions = append(d.TopicPermissions, p.list()...)
}

func others[T any](list []T, those map[string]store.Definition, key func(*T) string) (news []T) {
	for i := range list {
		if x := definitionOf(key(&list[i]), &list[i]); string(those[x.Key].Value) != string(x.Value) {
			news = append(news, list[i])
		}
	}
	return news
}

// saveNews has what is durable of the news on disk, all of it or nothing.
func (b *Broker) saveNews(news *saved, was map[string]store.Definition) error {
	durable := *news
	durable.Exchanges = slices.DeleteFunc(slices.Clone(news.Exchanges), func(x exchangeDefinition) bool { return x.Transient })
	durable.Queues = slices.DeleteFunc(slices.Clone(news.Queues), func(x queueDefinition) bool { return x.Transient })
	durable.Bindings = slices.DeleteFunc(slices.Clone(news.Bindings), func(x bindingDefinition) bool { return x.Transient })
	now := durable.apart()
	were := make([]store.Definition, len(now))
	for i := range now {
		were[i] = store.Definition{Key: now[i].Key, Value: was[now[i].Key].Value}
	}
	return b.saveFirst(now, were)
}

// takeOver has the news hold, which are saved. Nothing in them can be refused: they were
// made in a copy, and nobody made anything since. What was there may have gone, and a
// binding goes with it.
func (b *Broker) takeOver(news *saved) {
	for i := range news.VHosts {
		b.takeVHost(&news.VHosts[i])
	}
	b.takeAccounts(&news.Accounts)
	b.mu.Lock()
	if b.global == nil {
		b.global = map[string]any{}
	}
	maps.Copy(b.global, news.Global)
	b.mu.Unlock()
	sets := b.setsWith(news.Policies)
	for i := range news.Exchanges {
		b.takeExchange(&news.Exchanges[i], sets)
	}
	for i := range news.Queues {
		b.takeQueue(&news.Queues[i], sets)
	}
	for i := range news.Bindings {
		b.takeBinding(&news.Bindings[i])
	}
	for vh, set := range sets {
		vh.takePolicies(set)
	}
}

func (b *Broker) takeVHost(x *vhostDefinition) {
	vh, there := b.VHost(x.Name)
	if !there {
		vh = newVHost(b, x.Name)
		defer b.addVHost(vh)
	}
	vh.mu.Lock()
	defer vh.mu.Unlock()
	vh.about, vh.limits = x.Metadata, x.Limits
}

func (b *Broker) takeAccounts(d *accountDefinitions) {
	all := d.permissions()
	for k, p := range all {
		if err := p.compile(k); err != nil {
			panic("broker: permissions that were compiled are not valid: " + err.Error())
		}
		all[k] = p
	}
	b.accounts.change(func() {
		a := &b.accounts
		for _, u := range d.Users {
			a.users[u.Name] = &u
		}
		for k, p := range all {
			a.set(k, &p)
		}
	})
}

// setsWith are the policies of the virtual hosts for which there are news, with these.
func (b *Broker) setsWith(news []policyDefinition) map[*VHost][2]policy.Set {
	sets := map[*VHost][2]policy.Set{}
	for i := range news {
		x := &news[i]
		vh, _ := b.VHost(x.VHost)
		set, begun := sets[vh]
		if !begun {
			set = vh.policies // nobody else changes them
		}
		set[x.kind()] = set[x.kind()].With(x.Policy)
		sets[vh] = set
	}
	return sets
}

// takePolicies puts policies into force for what is there, that which was taken over
// before, and was governed by them from the first, included.
func (vh *VHost) takePolicies(set [2]policy.Set) {
	changed, err := vh.changeGoverned(policy.Unbounded, func(sets *[2]policy.Set) *revision {
		*sets = set
		return &revision{}
	})
	if err != nil {
		panic("broker: policies that were tried cannot be matched: " + err.Error())
	}
	obey(changed)
}

// ruling is what policies say of what is taken over: those of the news already, so that
// nothing is there before they govern it.
func (vh *VHost) ruling(t policy.Thing, news map[*VHost][2]policy.Set) applied {
	set, changed := news[vh]
	if !changed {
		set = vh.policies
	}
	things := []policy.Thing{t}
	if err := policy.Rule(set, things, new([2]int), policy.Unbounded); err != nil {
		panic("broker: policies that were tried cannot be matched: " + err.Error())
	}
	return appliedOf(&things[0].Ruling)
}

func (b *Broker) takeExchange(x *exchangeDefinition, news map[*VHost][2]policy.Set) {
	vh, _ := b.VHost(x.VHost)
	args, _ := x.Args.table() // they were made of one
	d := ExchangeDeclare{Kind: x.Type, Durable: !x.Transient, AutoDelete: x.AutoDelete, Internal: x.Internal, Args: args}
	kind, _ := checkExchange(x.Name, d)
	made := vh.newExchange(x.Name, kind, d)
	a := vh.ruling(made.governed().Thing, news)
	vh.mu.Lock()
	defer vh.mu.Unlock()
	vh.charge(&applied{}, &a)
	_ = vh.declare(made.footprint(), "", true)
	vh.placeExchange(made, a)
}

func (b *Broker) takeQueue(x *queueDefinition, news map[*VHost][2]policy.Set) {
	vh, _ := b.VHost(x.VHost)
	args, _ := x.Args.table()
	d := x.declared(args)
	set, _ := vh.settingsOf(x.Name, d)
	q := vh.newQueue(x.ID, nil, x.Name, d, set)
	a := vh.ruling(q.governed().Thing, news)
	vh.mu.Lock()
	defer vh.unlock()
	if there := vh.queues[x.Name]; there != nil { // UndeliverableQueue: a dead letter was faster
		vh.define(x.key(), there.definition())
		return
	}
	if x.Exclusive { // a policy gives it to a queue that is there, and it is the same connection's
		of := vh.queues[strings.TrimSuffix(x.Name, subqueueSuffix)]
		if of == nil || of.owner == nil { // which has closed meanwhile
			return
		}
		q.owner = of.owner
	}
	vh.charge(&applied{}, &a)
	_ = vh.declare(q.footprint(), "", true)
	vh.placeQueue(q, a)
	q.Touch()
}

func (b *Broker) takeBinding(x *bindingDefinition) {
	vh, _ := b.VHost(x.VHost)
	args, _ := x.Args.table()
	vh.mu.Lock()
	defer vh.unlock()
	from, to, err := vh.bothEnds(nil, x.binding(args))
	if err != nil {
		vh.undefine(x.key())
		return
	}
	if from.router.Bind(to, x.RoutingKey, args) {
		_ = vh.declare(bindingFootprint(x.RoutingKey, args), "", true)
		vh.changed()
		vh.bound(from, exchange.Binding[destination]{Destination: to, Key: x.RoutingKey, Args: args})
	}
}
