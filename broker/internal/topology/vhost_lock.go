package topology

import (
	"runtime"
	"sync"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/store"
)

// guard is the lock of a virtual host, and writes its changes to the definitions on disk.
//
// What is not saved does not exist: a queue or an exchange is in its table, and a policy in
// force, only when its definition is on disk. Nobody holds mu while waiting for the disk.
// Instead, whoever changes a definition claims its key, and others who want to change it wait
// and then see the result.
type guard struct {
	name    string // of the virtual host
	catalog *catalog.Catalog

	// importing is held for reading from a change until it is saved, and for writing by an
	// import, which excludes all other changes. Taken before governing.
	importing sync.RWMutex

	mu        sync.RWMutex // locked by lock and unlock
	lockedAt  deadline.Instant
	env       *delivery.Env
	deleted   bool
	changes   []store.Definition // made since mu was locked: they are written in one call
	claims    map[string]bool    // keys of definitions that are being changed
	unclaimed sync.Cond          // on mu: a claim has ended
}

func (g *guard) init(name string, r *Registry) {
	g.name, g.catalog, g.env, g.claims = name, r.catalog, r.env, map[string]bool{}
	g.unclaimed.L = &g.mu
}

// NoVHost is the error for a virtual host that does not exist.
func NoVHost(name string) error {
	return amqp.NewException(amqp.NotAllowed, 0, 0, "vhost %s not found", name)
}

func (g *guard) locked(fn func() error) error {
	g.lock()
	defer g.unlock()
	if g.deleted {
		return NoVHost(g.name)
	}
	return fn()
}

// claimed is locked for a change of the definition with that key, in which fn may call saveLocked.
// It waits while definitions are imported.
func (g *guard) claimed(key string, fn func() error) error {
	g.importing.RLock()
	defer g.importing.RUnlock()
	return g.claimedNow(key, fn)
}

// claimedNow is claimed without waiting for an import.
func (g *guard) claimedNow(key string, fn func() error) error {
	return g.locked(func() error {
		for g.claims[key] && !g.deleted {
			g.unclaimed.Wait()
			g.lockedAt = g.env.Clock.Now()
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

// saveLocked makes, replaces or, with nil, removes the definition of a claimed key, and returns
// when that is on disk. It releases mu while waiting. If the definition cannot be saved, the old
// one is restored. It is also an error if the virtual host was deleted in the meantime.
func (g *guard) saveLocked(key string, now, was any) error {
	if !g.catalog.Saving.Load() {
		return nil
	}
	g.noteLocked(key, now)
	g.unlock()
	err := g.catalog.Sync()
	g.lock()
	if err != nil {
		g.noteLocked(key, was)
	} else if g.deleted {
		err = NoVHost(g.name)
	}
	return err
}

// noteLocked notes a change that is written to the store when mu is unlocked; without a value the definition is removed.
// Nothing is written for a deleted virtual host: there may be a new one of its name.
func (g *guard) noteLocked(key string, value any) {
	if !g.deleted && g.catalog.Saving.Load() {
		g.changes = append(g.changes, catalog.Definition(key, value))
	}
}

// pause lets others change what is declared, and use the processor. Called with mu held for reading.
func (g *guard) pause() {
	g.mu.RUnlock()
	runtime.Gosched()
	g.mu.RLock()
}

// lock locks mu and notes when.
func (g *guard) lock() {
	g.mu.Lock()
	g.lockedAt = g.env.Clock.Now()
}

// unlock writes the changes to the store, unlocks mu, and notes how long it was locked.
func (g *guard) unlock() {
	if len(g.changes) > 0 {
		g.catalog.ChangeLocked(g.changes...)
		g.changes = nil
	}
	now := g.env.Clock.Now()
	held := now.Sub(g.lockedAt)
	g.mu.Unlock()
	g.env.VHostLocks.Add(now, held)
}
