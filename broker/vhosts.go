package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

// VHostMetadata is what is said about a virtual host, as RabbitMQ's definitions
// have it. A queue declared without x-queue-type has DefaultQueueType if it can
// be of it; "" is none.
type VHostMetadata struct {
	Description      string   `json:"description"`
	Tags             []string `json:"tags"`
	DefaultQueueType string   `json:"default_queue_type,omitempty"`
	Protected        bool     `json:"protected_from_deletion,omitempty"` // DeleteVHost refuses
}

// VHosts lists the virtual hosts by name.
func (b *Broker) VHosts() []*VHost {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.SortedFunc(maps.Values(b.vhosts), func(x, y *VHost) int { return strings.Compare(x.name, y.name) })
}

// PutVHost makes the virtual host, with the exchanges every one has, or changes
// what is said about the one of that name, but lifts no protection. created says which.
// Nobody has permissions in a new one. Error: access.ErrInvalid.
func (b *Broker) PutVHost(name string, about VHostMetadata) (vh *VHost, created bool, err error) {
	return b.PutVHostAs("", name, about)
}

// PutVHostAs is PutVHost by a user, who gets all permissions in a virtual host that it
// makes, as in RabbitMQ. Both are saved in one change. A user who is not there gets none.
func (b *Broker) PutVHostAs(user, name string, about VHostMetadata) (vh *VHost, created bool, err error) {
	if name == "" || len(name) > 255 {
		return nil, false, fmt.Errorf("%w: the name of a virtual host has 1 to 255 octets", access.ErrInvalid)
	}
	switch about.DefaultQueueType {
	case "", Classic.String(), Quorum.String():
	case "undefined": // as RabbitMQ exports none
		about.DefaultQueueType = ""
	default:
		return nil, false, fmt.Errorf("%w: default queue type %q is not known", access.ErrInvalid, about.DefaultQueueType)
	}
	b.admin.Lock()
	defer b.admin.Unlock()
	vh, there := b.VHost(name)
	if there {
		err = vh.redefine(func(d *vhostDefinition) {
			about.Protected = about.Protected || d.Metadata.Protected
			d.Metadata = about
		})
		return vh, false, err
	}
	vh = newVHost(b, name)
	vh.about = about
	return vh, true, b.makeVHost(user, vh)
}

// makeVHost saves and adds a virtual host with the permissions of the user who makes it;
// called with admin held.
func (b *Broker) makeVHost(user string, vh *VHost) error {
	key, owner := keyOf(vhostKind, vh.name), inVHost{user, vh.name}
	now, were := []store.Definition{definitionOf(key, vh.definition())}, []store.Definition{{Key: key}}
	var p permissions
	if _, there := b.User(user); there {
		p.granted = &access.Permission{User: user, VHost: vh.name, Configure: ".*", Write: ".*", Read: ".*"}
		if err := p.compile(owner); err != nil {
			return err
		}
		now, were = append(now, p.definitions(owner)...), append(were, new(permissions).definitions(owner)...)
	}
	if err := b.saveFirst(now, were); err != nil {
		return err
	}
	b.accounts.change(func() { b.accounts.set(owner, &p) })
	b.addVHost(vh)
	return nil
}

// redefine replaces what the virtual host's own definition says.
func (vh *VHost) redefine(change func(*vhostDefinition)) error {
	key := keyOf(vhostKind, vh.name)
	return vh.claimed(key, func() error {
		was := vh.definition()
		now := *was
		change(&now)
		if err := vh.save(key, &now, was); err != nil {
			return err
		}
		vh.about, vh.limits = now.Metadata, now.Limits
		return nil
	})
}

func (b *Broker) addVHost(vh *VHost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.vhosts[vh.name] = vh
}

// DeleteVHost removes a virtual host with all that is in it, messages and
// permissions too, and closes its connections (320). What its queues held is not
// dead-lettered. Errors: ErrNoVHost, ErrProtected.
func (b *Broker) DeleteVHost(name string) error {
	vh, ok := b.VHost(name)
	if !ok {
		return ErrNoVHost
	}
	queues, err := b.endVHost(vh)
	if err != nil {
		return err
	}
	err = b.saveDefinitions()
	b.sessions.end(func(s *Session) bool { return s.vh == vh }, fmt.Sprintf("vhost '%s' is deleted", name))
	var ids []uint64
	for _, q := range queues {
		if vh.drop(q, func() error { return nil }); q.durable() && q.Letters() == 0 { // else the next start forgets it
			ids = append(ids, q.id)
		}
	}
	b.forgetDeleted(ids...)
	return err
}

// endVHost is end while no administrator changes anything.
func (b *Broker) endVHost(vh *VHost) ([]*Queue, error) {
	b.admin.Lock()
	defer b.admin.Unlock()
	return vh.end()
}

// end takes the virtual host out of the broker and the definitions, with what is in it
// and who may do what there. It lets nothing new in and returns the queues to remove.
func (vh *VHost) end() ([]*Queue, error) {
	vh.mu.Lock()
	defer vh.mu.Unlock()
	if vh.deleted {
		return nil, ErrNoVHost
	}
	if vh.about.Protected {
		return nil, ErrProtected
	}
	vh.undeclareAll()
	vh.deleted = true
	keys, a := vh.definitionKeys(), &vh.b.accounts
	a.mu.Lock()
	defer a.mu.Unlock()
	dropped := a.drop(func(k inVHost) bool { return k.vhost == vh.name })
	a.version.Add(1)
	queues := slices.Collect(maps.Values(vh.queues))
	if q := vh.waiting.Swap(nil); q != nil {
		queues = append(queues, q)
	}
	if vh.b.saving() {
		var changes []store.Definition
		for _, key := range append(keys, dropped...) {
			changes = append(changes, store.Definition{Key: key})
		}
		for _, q := range queues {
			if q.durable() {
				changes = append(changes, definitionOf(deletedKey(q.id), true))
			}
		}
		vh.b.store.Define(changes...)
	}
	vh.b.dropVHost(vh)
	return queues, nil
}

// dropVHost makes the name free for another.
func (b *Broker) dropVHost(vh *VHost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.vhosts, vh.name)
}

// Metadata is what is said about the virtual host.
func (vh *VHost) Metadata() VHostMetadata {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	return vh.about
}

// Limits are the virtual host's, not to be changed.
func (vh *VHost) Limits() access.Limits {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	return vh.limits
}

// SetProtected has DeleteVHost refuse the virtual host, or not any more.
func (vh *VHost) SetProtected(protected bool) error {
	return vh.redefine(func(d *vhostDefinition) { d.Metadata.Protected = protected })
}

// SetLimits replaces the limits (max-connections, max-queues); what is beyond
// them already stays. Error: access.ErrInvalid.
func (vh *VHost) SetLimits(l access.Limits) error {
	if err := l.CheckVHost(); err != nil {
		return err
	}
	return vh.redefine(func(d *vhostDefinition) { d.Limits = l })
}

// withDefaultType adds the virtual host's queue type to the arguments of a queue
// that names none and could be of it.
func (vh *VHost) withDefaultType(name string, d QueueDeclare) QueueDeclare {
	kind := vh.Metadata().DefaultQueueType
	if _, named := d.Args["x-queue-type"]; kind == "" || named || name == UndeliverableQueue {
		return d
	}
	if kind == Quorum.String() && (!d.Durable || d.Exclusive || d.AutoDelete) {
		return d
	}
	args := maps.Clone(d.Args)
	if args == nil {
		args = amqp.Table{}
	}
	args["x-queue-type"] = kind
	d.Args = args
	return d
}
