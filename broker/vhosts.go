package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"curfew/broker/access"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/topology"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// vhostTable holds the virtual hosts by name.
type vhostTable struct {
	mu     sync.RWMutex // leaf
	vhosts map[string]*VHost
	ending map[string]chan struct{} // of names that have no virtual host any more, but definitions; closed when these are removed
}

// VHost returns the virtual host of that name.
func (t *vhostTable) VHost(name string) (*VHost, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	vh, ok := t.vhosts[name]
	return vh, ok
}

// VHosts lists the virtual hosts by name.
func (t *vhostTable) VHosts() []*VHost {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.SortedFunc(maps.Values(t.vhosts), func(x, y *VHost) int { return strings.Compare(x.Name(), y.Name()) })
}

func (t *vhostTable) add(vh *VHost) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.vhosts[vh.Name()] = vh
}

// remove removes a virtual host. Its name is free for another one after free.
func (t *vhostTable) remove(vh *VHost) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.vhosts, vh.Name())
	t.ending[vh.Name()] = make(chan struct{})
}

func (t *vhostTable) free(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.ending[name])
	delete(t.ending, name)
}

// isEnding returns the channel that is closed when the name is free, or one of all names ("") that are not; nil: it is.
func (t *vhostTable) isEnding(name string) chan struct{} {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if name != "" {
		return t.ending[name]
	}
	for _, one := range t.ending {
		return one
	}
	return nil
}

// lockAdmin locks admin for whoever may make a virtual host of that name; "": of any.
func lockAdmin(b *Broker, name string) {
	b.admin.Lock()
	for ended := b.isEnding(name); ended != nil; ended = b.isEnding(name) {
		b.admin.Unlock()
		<-ended
		b.admin.Lock()
	}
}

func (t *vhostTable) names() (names []string) {
	for _, vh := range t.VHosts() {
		names = append(names, vh.Name())
	}
	return names
}

// PutVHost makes a virtual host with its predeclared exchanges, or changes the metadata of the
// one with that name; it does not lift a protection. created reports which of the two. The user who makes one
// gets all permissions in it, as in RabbitMQ; both are saved in one change. A user who does not exist gets none.
// Error: access.ErrInvalid.
func (b *Broker) PutVHost(user, name string, about VHostMetadata) (vh *VHost, created bool, err error) {
	if name == "" || len(name) > 255 || !utf8.ValidString(name) {
		return nil, false, fmt.Errorf("%w: the name of a virtual host has 1 to 255 octets of UTF-8", access.ErrInvalid)
	}
	switch about.DefaultQueueType {
	case "", policy.Classic.String(), policy.Quorum.String():
	case "undefined": // as RabbitMQ exports none
		about.DefaultQueueType = ""
	default:
		return nil, false, fmt.Errorf("%w: default queue type %q is not known", access.ErrInvalid, about.DefaultQueueType)
	}
	lockAdmin(b, name)
	defer b.admin.Unlock()
	vh, exists := b.VHost(name)
	if exists {
		return vh, false, vh.SetMetadata(about)
	}
	vh = newVHost(b, name)
	vh.Restore(&catalog.VHost{Metadata: about})
	return vh, true, b.makeVHostLocked(user, vh)
}

// makeVHostLocked saves and adds a virtual host with the permissions of the user who makes it;
// called with admin held.
func (b *Broker) makeVHostLocked(user string, vh *VHost) error {
	key := catalog.Key(catalog.VHostKind, vh.Name())
	now, were := []store.Definition{catalog.Definition(key, vh.Definition())}, []store.Definition{{Key: key}}
	if err := catalog.GrantAllLocked(b.Accounts, user, vh.Name(), now, were); err != nil {
		return err
	}
	b.vhostTable.add(vh)
	return nil
}

// DeleteVHost removes a virtual host with all that is in it, messages and
// permissions too, and closes its connections (320). What its queues held is not
// dead-lettered. Errors: ErrNoVHost, ErrProtected.
func (b *Broker) DeleteVHost(name string) error {
	vh, ok := b.VHost(name)
	if !ok {
		return ErrNoVHost
	}
	ended, delays, err := b.endVHost(vh)
	if err != nil {
		return err
	}
	_ = b.catalog.Sync() // whether it could be saved is told at the end
	b.sessions.end(func(s *Session) bool { return s.VHost == vh }, fmt.Sprintf("vhost '%s' is deleted", name))
	err = ended.Undefine()
	b.free(name)
	ended.RemoveQueues()
	if delays != nil {
		b.delays.byID.Delete(delays.ID())
		if delays.Delete(); delays.Letters.Count() == 0 {
			b.registry.ForgetDeleted(delays.ID())
		}
	}
	return err
}

// endVHost removes the virtual host from the broker, and the permissions there. For the next start all that is in it is gone, too; here it is
// returned, to be removed step by step.
func (b *Broker) endVHost(vh *VHost) (ended *topology.Ended, delayed *delays, err error) {
	b.admin.Lock()
	defer b.admin.Unlock()
	mayEnd := func(about VHostMetadata) error {
		if about.Protected {
			return ErrProtected
		}
		return nil
	}
	ended, err = vh.End(mayEnd, func(changes []store.Definition) {
		if delayed = vh.delays.Swap(nil); delayed != nil {
			changes = append(changes, store.Definition{Key: delayed.definition().Key()}, catalog.Definition(topology.DeletedKey(delayed.ID()), true))
		}
		catalog.DropVHost(b.Accounts, vh.Name(), func(permissions []string) {
			b.catalog.ChangeLocked(append(changes, catalog.Removals(permissions...)...)...)
		})
		b.vhostTable.remove(vh)
	})
	if err == delivery.ErrGone {
		err = ErrNoVHost
	}
	return ended, delayed, err
}
