package store

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Definition is one small record that describes a queue, a user or the like. The store
// treats key and value as plain bytes.
type Definition struct {
	Key   string
	Value []byte // empty: the key has no definition
}

// Define records that definitions have these values from now on; after a crash all changes
// of one call are found or none. Of several values for a key the latest counts. Define only
// writes to memory, keeps the values, and may be called with any lock held. SyncDefinitions
// reports when they are safe. A journal record handed in later is never safe before them,
// unless the disk is full.
func (s *Store) Define(changes ...Definition) {
	if s.definitions != nil {
		s.definitions.define(changes, true)
	}
}

// Undefine is Define for what no record needs, such as 100,000 removals: a record handed in later may be safe before it. It is written
// with the next definitions that somebody, or a record, waits for, or when the store is closed.
func (s *Store) Undefine(changes ...Definition) {
	if s.definitions != nil {
		s.definitions.define(changes, false)
	}
}

// Unsaved returns why definitions are not on disk although SyncDefinitions was called: the
// disk is full, or there is another reason that may pass. Every later call tries again, and
// so does the maintainer from time to time. nil means that all is well.
func (s *Store) Unsaved() error {
	if s.definitions == nil {
		return nil
	}
	s.definitions.mu.Lock()
	defer s.definitions.mu.Unlock()
	return s.definitions.stuckErr
}

// SyncDefinitions returns when everything that Define was given before is on disk, in every
// mode. Callers that wait at the same time share one write and one sync. If writing could
// not even begin, because the disk is full (ErrFull) or for another reason, the next call
// tries again; any other error ends the store. The maintainer also tries again from time to
// time, so a definition that could not be saved may still be saved later, unless it has
// been replaced by then.
func (s *Store) SyncDefinitions() error {
	if s.definitions == nil {
		return nil
	}
	return s.definitions.sync()
}

// definitions holds the definitions that are not written yet, and their file.
type definitions struct {
	fs   fileSystem
	room int               // bytes that can be appended to a new file, at least
	fail func(error) error // ends the store
	wake func()            // wakes the maintainer, which tries again

	defined atomic.Uint64 // calls of define; raised with mu held
	needed  atomic.Uint64 // the last of them that records may need
	saved   atomic.Uint64 // how many of them are on disk
	stuck   atomic.Bool   // the last attempt to write could not begin

	mu       mutex  // a leaf
	pending  values // an empty value removes the key
	stuckErr error  // why it is stuck

	writing mutex  // held while writing; taken before mu. It guards the fields below
	err     error  // why nothing more can be written
	file    file   // nil: there is none
	id      uint64 // of the file
	synced  int64  // the file is synced up to here
	end     int64  // of what was written
	size    int64  // of the file
}

func (d *definitions) define(changes []Definition, needed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range changes {
		d.pending[c.Key] = c.Value
	}
	if n := d.defined.Add(1); needed {
		d.needed.Store(n)
	}
}

// sync implements SyncDefinitions. A caller that waits while another goroutine writes either
// finds its changes written, or writes everything that has gathered.
func (d *definitions) sync() error {
	want := d.defined.Load() // others wait for what they define from now on
	if d.saved.Load() >= want {
		return nil
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.saved.Load() >= want {
		return nil
	}
	if d.err != nil {
		return d.err
	}
	changes, upTo := d.takePending()
	err := d.writeLocked(changes)
	d.setStuck(err)
	switch {
	case err == nil:
		d.saved.Store(upTo)
	case d.stuck.Load():
		d.restorePending(changes)
		err = fmt.Errorf("store: save definitions: %w", err)
	default:
		d.err = d.fail(fmt.Errorf("save definitions: %w", err))
		err = d.err
	}
	return err
}

// setStuck records whether writing could begin.
func (d *definitions) setStuck(err error) {
	var began *notBegun
	stuck := errors.As(err, &began)
	if !stuck {
		err = nil
	}
	d.mu.Lock()
	d.stuckErr = err
	d.mu.Unlock()
	if !d.stuck.Swap(stuck) && stuck {
		d.wake()
	}
}

// retry tries again to write definitions when writing could not begin. It returns false if
// it still cannot.
func (d *definitions) retry() bool {
	if d.stuck.Load() {
		_ = d.sync() // any other error ends the store
	}
	return !d.stuck.Load()
}

// syncBefore is sync for the committer, whose records may refer to definitions made before
// them. While definitions cannot be written the records go ahead: removing messages must
// not have to wait.
func (d *definitions) syncBefore() error {
	if d.stuck.Load() || d.saved.Load() >= d.needed.Load() {
		return nil
	}
	if err := d.sync(); !d.stuck.Load() {
		return err
	}
	return nil
}

// takePending returns what has to be written, by key.
func (d *definitions) takePending() (changes []Definition, upTo uint64) {
	d.mu.Lock()
	pending, upTo := d.pending, d.defined.Load()
	d.pending = values{}
	d.mu.Unlock()
	return pending.list(), upTo // with others' changes going on
}

// restorePending undoes takePending, except for keys that have changed again since.
func (d *definitions) restorePending(changes []Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range changes {
		if _, changed := d.pending[c.Key]; !changed {
			d.pending[c.Key] = c.Value
		}
	}
}

// notBegun is the reason why nothing could be written; the file is unchanged.
type notBegun struct{ error }

func (e *notBegun) Unwrap() error {
	if noSpace(e.error) {
		return ErrFull
	}
	return e.error
}

// writeLocked appends one batch to the file, or writes the whole file again if it does not fit.
func (d *definitions) writeLocked(changes []Definition) error {
	b := encodeBatch(d.id, d.end, d.synced, changes)
	if d.file == nil || d.end+int64(len(b))+batchHeader > d.size {
		return d.rewriteLocked(changes)
	}
	if _, err := d.file.WriteAt(b, d.end); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	d.end += int64(len(b))
	d.synced = d.end
	return d.markLocked()
}

// markLocked records in the file that everything up to here is synced. The mark itself is not
// synced.
func (d *definitions) markLocked() error {
	b := encodeBatch(d.id, d.end, d.synced, nil)
	if _, err := d.file.WriteAt(b, d.end); err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	d.end += int64(len(b))
	return nil
}

// rewriteLocked replaces the file by a new one with all present definitions and the changes. The
// new file is twice as long as its content, so that much can be appended before it is
// written again, and the cost of a change does not depend on how many there are.
func (d *definitions) rewriteLocked(changes []Definition) error {
	found, err := scanDefinitions(d.fs)
	if noSpace(err) {
		return &notBegun{err}
	}
	if err != nil {
		return err
	}
	for _, c := range changes {
		found.latest.put(c)
	}
	id := newID()
	whole := encodeDefinitions(id, found.latest.list())
	size := int64(2*len(whole) + d.room)
	f, err := d.fs.Create(definitionsTemp, size)
	if err != nil {
		return &notBegun{err}
	}
	if err := install(d.fs, f, whole, definitionsTemp, definitionsName); err != nil {
		f.Close()
		return err
	}
	if d.file != nil {
		d.file.Close()
	}
	d.file, d.id, d.size = f, id, size
	d.end = int64(len(whole))
	d.synced = d.end
	return nil
}

// install writes the content of a new file, and gives it its name.
func install(dir fileSystem, f file, whole []byte, temp, name string) error {
	if _, err := f.WriteAt(whole, 0); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := dir.Rename(temp, name); err != nil {
		return err
	}
	return dir.SyncDir()
}

// repair prepares the file for appending: it erases a torn tail, and syncs what was found,
// since that may have survived only in the system's memory. It may be interrupted at any
// point.
func (d *definitions) repair(found *foundDefinitions) error {
	if found.version != definitionsVersion {
		return nil
	}
	f, err := d.fs.Open(definitionsName)
	if err != nil {
		return fmt.Errorf("store: open definitions: %w", err)
	}
	d.file, d.id, d.size = f, found.id, found.size
	d.synced, d.end = found.end, found.end
	if found.torn > 0 {
		_, err = f.WriteAt(make([]byte, found.torn), found.end)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil && !found.marked && d.end+batchHeader <= d.size {
		err = d.markLocked()
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("store: repair definitions: %w", err)
	}
	return nil
}

// close writes what nobody has waited for, if it can, and closes the file; its last mark is synced.
func (d *definitions) close() error {
	if !d.stuck.Load() {
		_ = d.sync()
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.file == nil {
		return nil
	}
	if d.err == nil {
		d.err = d.file.Sync()
	}
	return errors.Join(d.err, d.file.Close())
}
