package store

import "io"

// fileSystem is one directory, as the store uses it. The tests have a second
// implementation: a disk that crashes.
type fileSystem interface {
	// List returns the names of the directory's files.
	List() ([]string, error)
	Open(name string) (file, error)
	// Create makes a file of size zero bytes whose space is allocated. It replaces a file
	// of that name. After an error there is no such file.
	Create(name string, size int64) (file, error)
	Remove(name string) error
	Rename(old, name string) error
	// SyncDir makes creations, removals and renames durable.
	SyncDir() error
	// Space is the size of the disk in bytes.
	Space() (int64, error)
	// Lock keeps other processes out until the result is closed.
	Lock(name string) (io.Closer, error)
}

// file is an open file for reading and writing.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Allocate makes the file at least size bytes long, with space for all of it.
	Allocate(size int64) error
	// Truncate cuts the file off and frees the space.
	Truncate(size int64) error
	// Sync makes what was written durable.
	Sync() error
	// Map returns the whole file as read-only memory.
	Map() ([]byte, error)
	// MapOver replaces the pages of mem by those of the file. The file's pages hold the same
	// bytes, and mem may be read during the call. Writing to mem afterwards changes the file.
	MapOver(mem []byte, writable bool) error
}
