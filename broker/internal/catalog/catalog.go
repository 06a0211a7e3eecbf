package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"curfew/broker/store"
)

// Catalog writes definitions to the store.
type Catalog struct {
	Store  *store.Store // set before Saving
	Saving atomic.Bool  // changes are written; not while the saved definitions are being restored, or where nothing is kept
}

// ChangeLocked makes, replaces and removes definitions, all at once, if changes are saved. Called
// with the lock held that guards what they describe.
func (c *Catalog) ChangeLocked(changes ...store.Definition) {
	if c.Saving.Load() {
		c.write(changes)
	}
}

// write hands changes to the store. What makes or replaces something has to be on disk before messages that may refer to it, and
// the note that a queue was deleted before what settles its messages.
func (c *Catalog) write(changes []store.Definition) {
	if slices.ContainsFunc(changes, func(x store.Definition) bool { return len(x.Value) > 0 }) {
		c.Store.Define(changes...)
	} else {
		c.Store.Undefine(changes...)
	}
}

// DefineLocked makes or replaces a definition. Called with the lock held that guards what it
// describes.
func (c *Catalog) DefineLocked(key string, value any) {
	if c.Saving.Load() {
		c.Store.Define(Definition(key, value))
	}
}

// UndefineLocked removes definitions, all at once, in the same way.
func (c *Catalog) UndefineLocked(keys ...string) {
	if !c.Saving.Load() {
		return
	}
	gone := make([]store.Definition, len(keys))
	for i, key := range keys {
		gone[i].Key = key
	}
	c.Store.Undefine(gone...)
}

// Definition is the definition of value, as JSON, under key.
func Definition(key string, value any) store.Definition {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("broker: definition %s cannot be written as JSON: %v", key, err))
	}
	return store.Definition{Key: key, Value: text}
}

// SaveFirst makes or replaces definitions, all at once, and returns when they are on
// disk. If they cannot be saved, it restores the old ones. The caller ensures that nobody
// else changes them in the meantime.
func (c *Catalog) SaveFirst(now, were []store.Definition) error {
	if !c.Saving.Load() {
		return nil
	}
	c.Store.Define(now...)
	err := c.Sync()
	if err != nil {
		c.Store.Define(were...)
	}
	return err
}

// ErrNotSaved is wrapped by the error of a change of definitions that could not be
// written to disk. It may succeed later.
var ErrNotSaved = errors.New("save definitions")

// Sync returns when the present definitions are on disk.
func (c *Catalog) Sync() error {
	if err := c.Store.SyncDefinitions(); err != nil {
		return fmt.Errorf("broker: %w: %w", ErrNotSaved, err)
	}
	return nil
}

// Changes are those that a critical section has made and not yet written: all changes of one section
// are written in one call, when its lock is released. The zero value is empty.
type Changes struct{ list []store.Definition }

// Define adds a definition, and Undefine the removal of one.
func (n *Changes) Define(c *Catalog, key string, value any) {
	if c.Saving.Load() {
		n.list = append(n.list, Definition(key, value))
	}
}

func (n *Changes) Undefine(c *Catalog, key string) {
	if c.Saving.Load() {
		n.list = append(n.list, store.Definition{Key: key})
	}
}

// Flush writes the changes to the store.
func (n *Changes) Flush(c *Catalog) {
	if len(n.list) > 0 {
		c.write(n.list)
		n.list = nil
	}
}
