//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// diskDir is a fileSystem on disk.
type diskDir struct {
	path string
	self *os.File // stays open, so that syncing it takes no file descriptor; nil for read-only use
}

// openDir opens the directory of which this process will be the owner. If there is none it makes one.
func openDir(path string) (fileSystem, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("store: make data directory: %w", err)
	}
	self, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("store: open data directory: %w", err)
	}
	return &diskDir{path, self}, nil
}

// existingDir opens a directory for reading.
func existingDir(path string) (fileSystem, error) {
	d := &diskDir{path: path}
	if _, err := d.List(); err != nil {
		return nil, fmt.Errorf("store: read data directory: %w", err)
	}
	return d, nil
}

func (d *diskDir) join(name string) string { return filepath.Join(d.path, name) }

func (d *diskDir) List() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d *diskDir) Open(name string) (file, error) {
	f, err := os.OpenFile(d.join(name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &diskFile{f}, nil
}

func (d *diskDir) Create(name string, size int64) (file, error) {
	f, err := os.OpenFile(d.join(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	created := &diskFile{f}
	if err := created.Allocate(size); err != nil {
		f.Close()
		return nil, errors.Join(err, d.Remove(name))
	}
	return created, nil
}

func (d *diskDir) Remove(name string) error { return os.Remove(d.join(name)) }

func (d *diskDir) Rename(old, name string) error { return os.Rename(d.join(old), d.join(name)) }

func (d *diskDir) SyncDir() error { return d.self.Sync() }

func (d *diskDir) Space() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.path, &st); err != nil {
		return 0, err
	}
	return int64(st.Blocks) * int64(st.Bsize), nil
}

func (d *diskDir) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(d.join(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("store: %s is in use by another process", d.path)
		}
		return nil, err
	}
	return f, nil
}

type diskFile struct{ *os.File }

func (f *diskFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f *diskFile) Allocate(size int64) error {
	had, err := f.Size()
	if err != nil || had >= size {
		return err
	}
	if err := fallocate(f.File, size); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	zeros := make([]byte, 1<<20)
	for at := had; at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

func (f *diskFile) Map() ([]byte, error) {
	size, err := f.Size()
	if err != nil || size == 0 {
		return nil, err
	}
	at, err := unix.MmapPtr(int(f.Fd()), 0, nil, uintptr(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return unsafe.Slice((*byte)(at), size), nil
}

func (f *diskFile) MapOver(mem []byte, writable bool) error {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	at := unsafe.Pointer(unsafe.SliceData(mem))
	if _, err := unix.MmapPtr(int(f.Fd()), 0, at, uintptr(len(mem)), prot, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		return fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return nil
}

func mapAnonymous(size int) ([]byte, error) {
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(at), size), nil
}

// unmap returns memory to the system. It fails only for an address that was never mapped.
func unmap(mem []byte) {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))); err != nil {
		panic(fmt.Sprintf("store: unmap %d bytes: %v", len(mem), err))
	}
}
