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

// ChangeLocked makes, replaces and removes definitions, all at once, if changes are saved. What makes or replaces something has to
// be on disk before messages that may refer to it, and the note that a queue was deleted before what settles its messages. Called
// with the lock held that guards what they describe.
func (c *Catalog) ChangeLocked(changes ...store.Definition) {
	switch {
	case !c.Saving.Load():
	case slices.ContainsFunc(changes, func(x store.Definition) bool { return len(x.Value) > 0 }):
		c.Store.Define(changes...)
	default:
		c.Store.Undefine(changes...)
	}
}

// Removals remove the definitions of those keys.
func Removals(keys ...string) []store.Definition {
	gone := make([]store.Definition, len(keys))
	for i, key := range keys {
		gone[i].Key = key
	}
	return gone
}

// Definition is the definition of value, as JSON, under key; nil: its removal.
func Definition(key string, value any) store.Definition {
	if value == nil {
		return store.Definition{Key: key}
	}
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
