package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
)

const (
	definitionsVersion = 1

	definitionsName  = "definitions"
	definitionsTemp  = "definitions.tmp"
	definitionsMagic = "CURFEWD\n"
)

// The file of definitions, little-endian:
//
//	 0  magic
//	 8  uint32  version
//	12  uint32  CRC32C of what follows
//	16          what SaveDefinitions was given
const definitionsHeader = 16

// SaveDefinitions replaces the small document that says what queues and the like
// there are. Once it returns nil the new one survives any crash; after an error
// the old one does, or the new one. For the store it is only bytes. Not on any
// hot path: it writes and syncs a file. Safe for concurrent use.
func (s *Store) SaveDefinitions(b []byte) error {
	s.definitionsMu.Lock()
	defer s.definitionsMu.Unlock()
	if s.fs != nil {
		if err := writeDefinitions(s.fs, b); err != nil {
			return fmt.Errorf("store: save definitions: %w", err)
		}
	}
	s.definitions = slices.Clone(b)
	return nil
}

// Definitions returns what was saved last, nil if nothing ever was.
func (s *Store) Definitions() ([]byte, error) {
	s.definitionsMu.Lock()
	defer s.definitionsMu.Unlock()
	return slices.Clone(s.definitions), nil
}

func writeDefinitions(dir fileSystem, b []byte) error {
	whole := make([]byte, definitionsHeader+len(b))
	copy(whole, definitionsMagic)
	binary.LittleEndian.PutUint32(whole[8:], definitionsVersion)
	binary.LittleEndian.PutUint32(whole[12:], crc32.Checksum(b, castagnoli))
	copy(whole[definitionsHeader:], b)
	if err := writeFile(dir, definitionsTemp, whole); err != nil {
		return err
	}
	if err := dir.Rename(definitionsTemp, definitionsName); err != nil {
		return err
	}
	return dir.SyncDir()
}

func writeFile(dir fileSystem, name string, b []byte) error {
	f, err := dir.Create(name, int64(len(b)))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Sync()
}

// readDefinitions returns nil if there are none.
func readDefinitions(dir fileSystem) ([]byte, error) {
	b, err := readWhole(dir, definitionsName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(b) < definitionsHeader || string(b[:8]) != definitionsMagic {
		return nil, &CorruptError{File: definitionsName, Reason: "its header is not valid"}
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != definitionsVersion {
		return nil, fmt.Errorf("store: definitions: format %d, this Curfew reads %d: %w", v, definitionsVersion, ErrVersion)
	}
	if binary.LittleEndian.Uint32(b[12:]) != crc32.Checksum(b[definitionsHeader:], castagnoli) {
		return nil, &CorruptError{File: definitionsName, Offset: definitionsHeader, Reason: "the checksum is wrong"}
	}
	return b[definitionsHeader:], nil
}

func readWhole(dir fileSystem, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("store: size of %s: %w", name, err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("store: read %s: %w", name, err)
	}
	return b, nil
}
