package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"

	"golang.org/x/sys/unix"
)

var errCrashed = errors.New("the machine has crashed")

// crashDisk is a file system in memory that knows what a real disk would still have after a
// power failure: what was synced, and any sectors of the rest. It can crash at any
// operation, fail a sync, and be full.
type crashDisk struct {
	mu      mutex
	names   map[string]*inode
	durable map[string]*inode // as of the last SyncDir
	changes []func(map[string]*inode)

	ops     int
	crashAt int // the operation that does not return; 0: none
	crashed bool

	written  int64 // bytes in total
	space    int64 // bytes of all files together; 0: unlimited
	maxNames int   // 0: unlimited
	noFiles  bool  // no file can be opened
	refusing bool  // nothing can be allocated, made or renamed

	places    int              // calls so far that may find no space, no name or no descriptor
	failAt    int              // the one of them before which fail is called; 0: none
	fail      func(*crashDisk) // under mu
	last      *inode           // the file written to last
	emptied   int              // files cut off
	failSyncs int              // this number of file syncs will fail
	syncs     int
	locked    bool
}

type inode struct {
	data    []byte
	synced  []byte
	pending []write
}

type write struct {
	at int
	b  []byte
}

func newCrashDisk() *crashDisk {
	return &crashDisk{names: map[string]*inode{}, durable: map[string]*inode{}}
}

const sector = 512

func (n *inode) size() int64 {
	if n == nil {
		return 0
	}
	return int64(len(n.data))
}

// afterCrash returns the disk as the next start may find it. keep is the probability that a
// sector which was written but not synced survives; 1 means that only the process died.
func (d *crashDisk) afterCrash(rng *rand.Rand, keep float64) *crashDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := map[string]*inode{}
	for name, n := range d.durable {
		names[name] = n
	}
	changes := len(d.changes)
	if keep < 1 {
		changes = rng.IntN(changes + 1)
	}
	for _, change := range d.changes[:changes] {
		change(names)
	}
	next := newCrashDisk()
	next.space, next.maxNames, next.refusing = d.space, d.maxNames, d.refusing
	for _, name := range slices.Sorted(maps.Keys(names)) {
		kept := names[name].afterCrash(rng, keep)
		next.names[name], next.durable[name] = kept, kept
	}
	return next
}

func (n *inode) afterCrash(rng *rand.Rand, keep float64) *inode {
	data := slices.Clone(n.synced)
	if grown := len(n.data) - len(data); grown > 0 && (len(n.pending) > 0 || rng.IntN(2) == 0) {
		data = append(data, make([]byte, grown)...)
	}
	for _, w := range n.pending {
		for from := w.at; from < w.at+len(w.b); {
			to := min((from/sector+1)*sector, w.at+len(w.b))
			if rng.Float64() < keep && to <= len(data) {
				copy(data[from:to], w.b[from-w.at:])
			}
			from = to
		}
	}
	return &inode{data: data, synced: slices.Clone(data)}
}

// op counts an operation that changes the disk, and crashes when it is the chosen one.
func (d *crashDisk) op() error {
	if d.crashed {
		return errCrashed
	}
	d.ops++
	if d.ops == d.crashAt {
		d.crashed = true
		return errCrashed
	}
	return nil
}

// place comes before everything that needs space, a name or a descriptor.
func (d *crashDisk) place() {
	if d.places++; d.places == d.failAt {
		d.fail(d)
	}
}

// mayMake returns why a file of that name cannot be made.
func (d *crashDisk) mayMake(name string) error {
	switch {
	case d.noFiles:
		return fmt.Errorf("open %s: %w", name, unix.EMFILE)
	case d.refusing, d.maxNames > 0 && d.names[name] == nil && len(d.names) >= d.maxNames:
		return fmt.Errorf("open %s: %w", name, unix.ENOSPC)
	}
	return nil
}

func (d *crashDisk) used() (n int64) {
	for _, f := range d.names {
		n += int64(len(f.data))
	}
	return n
}

func (d *crashDisk) change(fn func(map[string]*inode)) {
	fn(d.names)
	d.changes = append(d.changes, fn)
}

// write creates a file with some content, synced.
func (d *crashDisk) write(name string, b []byte) {
	n := &inode{data: b, synced: slices.Clone(b)}
	d.names[name], d.durable[name] = n, n
}

func (d *crashDisk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.names {
		names = append(names, name)
	}
	return names, nil
}

func (d *crashDisk) Open(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.place()
	n := d.names[name]
	if d.noFiles {
		return nil, fmt.Errorf("open %s: %w", name, unix.EMFILE)
	}
	if n == nil {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return &crashFile{d, n, name}, nil
}

func (d *crashDisk) Create(name string, size int64) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.place()
	if err := d.op(); err != nil {
		return nil, err
	}
	if err := d.mayMake(name); err != nil {
		return nil, err
	}
	if had := d.names[name]; d.space > 0 && d.used()+size > d.space+had.size() {
		if had != nil {
			d.change(func(names map[string]*inode) { delete(names, name) })
		}
		return nil, unix.ENOSPC
	}
	n := &inode{data: make([]byte, size)}
	d.change(func(names map[string]*inode) { names[name] = n })
	return &crashFile{d, n, name}, nil
}

func (d *crashDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	d.change(func(names map[string]*inode) { delete(names, name) })
	return nil
}

func (d *crashDisk) Rename(old, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	d.place()
	n := d.names[old]
	if n == nil {
		return fs.ErrNotExist
	}
	if d.refusing {
		return unix.ENOSPC
	}
	d.change(func(names map[string]*inode) {
		delete(names, old)
		names[name] = n
	})
	return nil
}

func (d *crashDisk) SyncDir() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(); err != nil {
		return err
	}
	for _, change := range d.changes {
		change(d.durable)
	}
	d.changes = nil
	return nil
}

func (d *crashDisk) Space() (int64, error) { return d.space, nil }

func (d *crashDisk) Lock(string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, errors.New("in use")
	}
	d.locked = true
	return unlocker{d}, nil
}

type unlocker struct{ d *crashDisk }

func (u unlocker) Close() error {
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	u.d.locked = false
	return nil
}

type crashFile struct {
	d    *crashDisk
	n    *inode
	name string
}

func (f *crashFile) Close() error { return nil }

func (f *crashFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *crashFile) Allocate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	grow := size - int64(len(f.n.data))
	if grow <= 0 {
		return nil
	}
	if err := f.d.op(); err != nil {
		return err
	}
	f.d.place()
	if f.d.refusing || f.d.space > 0 && f.d.used()+grow > f.d.space {
		return unix.ENOSPC
	}
	f.n.data = append(f.n.data, make([]byte, grow)...)
	return nil
}

func (f *crashFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op(); err != nil {
		return err
	}
	f.d.emptied++
	f.n.data = f.n.data[:size]
	return nil
}

func (f *crashFile) ReadAt(b []byte, at int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n := copy(b, f.n.data[min(at, int64(len(f.n.data))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes into allocated space. A write that the crash interrupts may have happened
// in part.
func (f *crashFile) WriteAt(b []byte, at int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.crashed {
		return 0, errCrashed
	}
	if missing := int(at) + len(b) - len(f.n.data); missing > 0 {
		f.n.data = append(f.n.data, make([]byte, missing)...)
	}
	copy(f.n.data[at:], b)
	f.d.written += int64(len(b))
	f.n.pending = append(f.n.pending, write{int(at), slices.Clone(b)})
	f.d.last = f.n
	if err := f.d.op(); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *crashFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.op(); err != nil {
		return err
	}
	f.d.syncs++
	if f.d.failSyncs > 0 {
		f.d.failSyncs--
		return unix.EIO
	}
	f.n.synced, f.n.pending = slices.Clone(f.n.data), nil
	return nil
}

func (f *crashFile) Map() ([]byte, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if len(f.n.data) == 0 {
		return nil, nil
	}
	mem, err := mapAnonymous(len(f.n.data))
	copy(mem, f.n.data)
	return mem, err
}

// MapOver only verifies that nobody would notice the change.
func (f *crashFile) MapOver(mem []byte, writable bool) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if len(f.n.data) < len(mem) {
		panic(f.name + " is shorter than its segment")
	}
	if !writable && !equalRecords(mem, f.n.data) {
		panic(f.name + " is not what is in memory")
	}
	return nil
}

// equalRecords compares two images of a complete segment up to its end.
func equalRecords(a, b []byte) bool {
	for at := fileHeader; ; {
		k, n := header(a[at:])
		if string(a[at:at+n]) != string(b[at:at+n]) {
			return false
		}
		if k == kindEnd {
			return true
		}
		at += align(n)
	}
}
