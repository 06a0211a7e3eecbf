package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Definition is one of the small things that say what queues and the like there are.
// For the store key and value are only bytes.
type Definition struct {
	Key   string
	Value []byte // empty: there is none of that key
}

// Define records that definitions have these values from now on: after a crash all of
// one call do, or none. Of several values of a key the latest counts. It only writes
// memory, keeps the values, and may be called with any lock held. SyncDefinitions says
// when they are safe; a journal record that was handed in later never is before them,
// unless the disk is full.
func (s *Store) Define(changes ...Definition) {
	if s.definitions != nil {
		s.definitions.define(changes)
	}
}

// DefineLater is Define for what nobody waits for: it is written with what is defined
// next, and may be lost in a crash before that.
func (s *Store) DefineLater(changes ...Definition) {
	if s.definitions != nil {
		s.definitions.later(changes)
	}
}

// Unsaved is why what was defined is not on the disk, though SyncDefinitions was called:
// there is no space, or another reason that may pass. It is tried again with each call,
// and now and then without one. nil: all is well.
func (s *Store) Unsaved() error {
	if s.definitions == nil {
		return nil
	}
	return s.definitions.unsaved()
}

// SyncDefinitions returns when all that Define was told before is on the disk, in
// every mode. Those who wait at a time share one write and one sync. If that could not
// even begin, for want of space (ErrFull) or another reason, the next call tries again;
// any other error ends the store. It is also tried again now and then, so what could not
// be saved may be later, unless it is defined otherwise.
func (s *Store) SyncDefinitions() error {
	if s.definitions == nil {
		return nil
	}
	return s.definitions.sync()
}

// definitions are what is to be written to the file of definitions, and the file.
type definitions struct {
	fs   fileSystem
	room int               // the least that can be appended to a new file
	fail func(error) error // ends the store
	wake func()            // has the keeper try again

	told  atomic.Uint64 // calls of define; raised with mu held
	saved atomic.Uint64 // so many of them are on the disk
	stuck atomic.Bool   // writing could not begin the last time

	mu      sync.Mutex // a leaf
	pending map[string][]byte
	why     error // it is stuck

	writing sync.Mutex // held while writing; taken before mu. It guards what follows
	err     error      // why nothing is written any more
	file    file       // nil: there is none, or one of an older version
	id      uint64     // of the file
	synced  int64      // up to here the disk has it
	end     int64      // of what was written
	size    int64      // of the file
}

func (d *definitions) define(changes []Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(changes)
	d.told.Add(1)
}

func (d *definitions) later(changes []Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(changes)
}

// note is called with mu held.
func (d *definitions) note(changes []Definition) {
	if d.pending == nil {
		d.pending = map[string][]byte{}
	}
	for _, c := range changes {
		d.pending[c.Key] = c.Value
	}
}

func (d *definitions) unsaved() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why
}

// sync is SyncDefinitions. Who comes while another writes finds his own written, or
// writes all that has gathered.
func (d *definitions) sync() error {
	want := d.told.Load() // what others define from now on is theirs to wait for
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
	changes, upTo := d.take()
	err := d.write(changes)
	d.setStuck(err)
	switch {
	case err == nil:
		d.saved.Store(upTo)
	case d.stuck.Load():
		d.giveBack(changes)
		err = fmt.Errorf("store: save definitions: %w", err)
	default:
		d.err = d.fail(fmt.Errorf("save definitions: %w", err))
		err = d.err
	}
	return err
}

// setStuck notes whether writing could begin.
func (d *definitions) setStuck(err error) {
	var began *notBegun
	stuck := errors.As(err, &began)
	if !stuck {
		err = nil
	}
	d.mu.Lock()
	d.why = err
	d.mu.Unlock()
	if !d.stuck.Swap(stuck) && stuck {
		d.wake()
	}
}

// retry is sync for what waits since writing could not begin. It returns false if it
// still cannot.
func (d *definitions) retry() bool {
	if d.stuck.Load() {
		_ = d.sync() // what is more than that ends the store
	}
	return !d.stuck.Load()
}

// before is sync for the committer, whose records may speak of what was defined before
// them. While definitions cannot be written they go ahead: what takes messages away
// must not wait.
func (d *definitions) before() error {
	if d.stuck.Load() {
		return nil
	}
	if err := d.sync(); !d.stuck.Load() {
		return err
	}
	return nil
}

// take returns what is to be written, by key.
func (d *definitions) take() (changes []Definition, upTo uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(d.pending)) {
		changes = append(changes, Definition{key, d.pending[key]})
	}
	d.pending = nil
	return changes, d.told.Load()
}

// giveBack undoes take, but for what was changed again since.
func (d *definitions) giveBack(changes []Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending == nil {
		d.pending = map[string][]byte{}
	}
	for _, c := range changes {
		if _, changed := d.pending[c.Key]; !changed {
			d.pending[c.Key] = c.Value
		}
	}
}

// notBegun is why nothing could be written: the disk is as it was.
type notBegun struct{ error }

func (e *notBegun) Unwrap() error {
	if noSpace(e.error) {
		return ErrFull
	}
	return e.error
}

// write appends one batch to the file, or writes the file anew with it.
func (d *definitions) write(changes []Definition) error {
	b := encodeBatch(d.id, d.end, d.synced, changes)
	if d.file == nil || d.end+int64(len(b))+batchHeader > d.size {
		return d.rewrite(changes)
	}
	if _, err := d.file.WriteAt(b, d.end); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := d.file.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	d.end += int64(len(b))
	d.synced = d.end
	return d.mark()
}

// mark says in the file that all up to here is synced; that itself nobody syncs.
func (d *definitions) mark() error {
	b := encodeBatch(d.id, d.end, d.synced, nil)
	if _, err := d.file.WriteAt(b, d.end); err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	d.end += int64(len(b))
	return nil
}

// rewrite puts a file in place of the present one that holds what is still true, and
// the changes. It is as long again as that: so much can be appended before the next
// time, and a change costs the same however many there are.
func (d *definitions) rewrite(changes []Definition) error {
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
	whole := encodeDefinitions(id, found.latest.all())
	size := int64(2*len(whole) + d.room)
	f, err := d.fs.Create(definitionsTemp, size)
	if err != nil {
		return &notBegun{err}
	}
	if err := d.replace(f, whole); err != nil {
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

// replace writes the new file and gives it its name.
func (d *definitions) replace(f file, whole []byte) error {
	if _, err := f.WriteAt(whole, 0); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := d.fs.Rename(definitionsTemp, definitionsName); err != nil {
		return err
	}
	return d.fs.SyncDir()
}

// repair makes the file such that appending can go on: nothing is left of what was
// torn, and what was found is synced, as it may have survived in the system's memory
// only. It may be interrupted anywhere.
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
		err = d.mark()
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("store: repair definitions: %w", err)
	}
	return nil
}

// close closes the file, its last mark being synced.
func (d *definitions) close() error {
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
