package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"curfew/broker/store"
)

// Catalog is what the store is told of definitions: nothing, while what it holds is being
// restored, or where it keeps nothing.
type Catalog struct {
	store *store.Store
	on    atomic.Bool
}

// Open has the catalog use a store. It tells it nothing before begin.
func (c *Catalog) Open(s *store.Store) { c.store = s }

// Begin has changes told to the store from now on.
func (c *Catalog) Begin() { c.on.Store(true) }

// Saving reports whether changes are told to the store.
func (c *Catalog) Saving() bool { return c.on.Load() }

// Tell makes, replaces and removes definitions, all at once, if changes are saved. Called with
// the lock held that guards what they describe.
func (c *Catalog) Tell(changes ...store.Definition) {
	if c.Saving() {
		c.store.Define(changes...)
	}
}

// Define makes or replaces a definition that is in no virtual host. Called with the lock
// held that guards what it describes.
func (c *Catalog) Define(key string, value any) {
	if c.Saving() {
		c.store.Define(Definition(key, value))
	}
}

// Undefine removes definitions, all at once, in the same way.
func (c *Catalog) Undefine(keys ...string) {
	if !c.Saving() {
		return
	}
	gone := make([]store.Definition, len(keys))
	for i, key := range keys {
		gone[i].Key = key
	}
	c.store.Define(gone...)
}

func Definition(key string, value any) store.Definition {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("broker: definition %s cannot be written as JSON: %v", key, err))
	}
	return store.Definition{Key: key, Value: text}
}

// SaveFirst makes or replaces definitions, all at once, and returns when they are on
// disk; where they cannot be saved, it makes them what they were. The caller sees to it
// that nobody else changes them meanwhile.
func (c *Catalog) SaveFirst(now, were []store.Definition) error {
	if !c.Saving() {
		return nil
	}
	c.store.Define(now...)
	err := c.Sync()
	if err != nil {
		c.store.Define(were...)
	}
	return err
}

// ErrNotSaved is wrapped by what is said of a change of definitions that could not be
// written to the disk. It may succeed later.
var ErrNotSaved = errors.New("save definitions")

// Sync returns when the definitions of this moment are on disk.
func (c *Catalog) Sync() error {
	if err := c.store.SyncDefinitions(); err != nil {
		return fmt.Errorf("broker: %w: %w", ErrNotSaved, err)
	}
	return nil
}

// Changes are those that a critical section has made and not told yet: of one section the store hears in one
// call, when its lock is given back. The zero value is empty.
type Changes struct{ list []store.Definition }

// Define and undefine note what is to be told the store.
func (n *Changes) Define(c *Catalog, key string, value any) {
	if c.Saving() {
		n.list = append(n.list, Definition(key, value))
	}
}

func (n *Changes) Undefine(c *Catalog, key string) {
	if c.Saving() {
		n.list = append(n.list, store.Definition{Key: key})
	}
}

// Tell hands them to the store.
func (n *Changes) Tell(c *Catalog) {
	if len(n.list) > 0 {
		c.store.Define(n.list...)
		n.list = nil
	}
}
