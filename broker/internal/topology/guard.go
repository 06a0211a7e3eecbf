package topology

import (
	"sync"

	"curfew/broker/amqp"
	"curfew/broker/internal/catalog"
)

// guard is the lock of a virtual host's registry, and what is in the definitions on disk.
//
// What is not saved is not there: a queue or an exchange is among the others, and a policy
// in force, when its definition is on the disk. For that nobody holds mu. Instead, whoever
// changes what has a key in the definitions claims the key, and others who would change it
// wait: they find it as it came out.
type guard struct {
	name    string // of the virtual host
	catalog *catalog.Catalog

	// importing is held for reading while something is made or changed until it is saved,
	// and for writing by an import, in which nothing else does. Taken before governing.
	importing sync.RWMutex

	mu        sync.RWMutex
	deleted   bool
	changes   catalog.Changes // made since mu was locked
	claims    map[string]bool // keys of definitions that somebody changes
	unclaimed sync.Cond       // on mu: one of them no longer
}

func (g *guard) init(name string, c *catalog.Catalog) {
	g.name, g.catalog, g.claims = name, c, map[string]bool{}
	g.unclaimed.L = &g.mu
}

// NoVHost is the refusal for a virtual host that does not exist.
func NoVHost(name string) error {
	return amqp.NewException(amqp.NotAllowed, 0, 0, "vhost %s not found", name)
}

// Name is the virtual host's name, "/" by default.
func (g *guard) Name() string { return g.name }

// Gone reports whether the virtual host has been deleted.
func (g *guard) Gone() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.deleted
}

// BeginImport keeps all others from making anything until EndImport. Whoever begins several does so in the
// order of their names.
func (g *guard) BeginImport() { g.importing.Lock() }

// EndImport lets them go on.
func (g *guard) EndImport() { g.importing.Unlock() }

// Mutate runs fn with the lock held and returns when what it did, or found done, is on
// disk. It is for what is not undone if it cannot be saved: then the caller is told, and
// the store tries again.
func (g *guard) Mutate(fn func() error) error {
	if err := g.locked(fn); err != nil {
		return err
	}
	return g.catalog.Sync()
}

func (g *guard) locked(fn func() error) error {
	g.mu.Lock()
	defer g.unlock()
	if g.deleted {
		return NoVHost(g.name)
	}
	return fn()
}

// claimed is locked for whoever changes what has the key, and may call saveLocked. It waits while
// definitions are imported.
func (g *guard) claimed(key string, fn func() error) error {
	g.importing.RLock()
	defer g.importing.RUnlock()
	return g.claimedNow(key, fn)
}

// claimedNow is claimed for whoever cannot wait that long.
func (g *guard) claimedNow(key string, fn func() error) error {
	return g.locked(func() error {
		if !g.catalog.Saving() {
			return fn()
		}
		for g.claims[key] {
			g.unclaimed.Wait()
		}
		if g.deleted {
			return NoVHost(g.name)
		}
		g.claims[key] = true
		defer func() {
			delete(g.claims, key)
			g.unclaimed.Broadcast()
		}()
		return fn()
	})
}

// saveLocked makes or replaces the definition of a claimed key, nil for none, and returns when
// it is on the disk; if it cannot be saved, it is again what it was, and the same if the
// virtual host was deleted meanwhile. mu is released for that.
func (g *guard) saveLocked(key string, now, was any) error {
	if !g.catalog.Saving() {
		return nil
	}
	g.noteLocked(key, now)
	g.unlock()
	err := g.catalog.Sync()
	g.mu.Lock()
	if err != nil {
		g.noteLocked(key, was)
	} else if g.deleted {
		err = NoVHost(g.name)
	}
	return err
}

// noteLocked is DefineLocked or, without a value, undefineLocked.
func (g *guard) noteLocked(key string, value any) {
	if value == nil {
		g.undefineLocked(key)
	} else {
		g.DefineLocked(key, value)
	}
}

// DefineLocked and undefineLocked note what the store is to be told when mu is unlocked.
// It is told nothing of a virtual host that is deleted: there may be another of
// its name.
func (g *guard) DefineLocked(key string, value any) {
	if !g.deleted {
		g.changes.Define(g.catalog, key, value)
	}
}

func (g *guard) undefineLocked(key string) {
	if !g.deleted {
		g.changes.Undefine(g.catalog, key)
	}
}

// unlock unlocks mu after changes.
func (g *guard) unlock() {
	g.changes.Tell(g.catalog)
	g.mu.Unlock()
}
