package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"slices"
)

// definitionsVersion is the version of the file, the only one that is read: version 1 was never released.
const definitionsVersion = 2

const (
	definitionsName  = "definitions"
	definitionsTemp  = "definitions.tmp"
	definitionsMagic = "CURFEWD\n"
)

// The file of definitions starts with a header, little-endian:
//
//	 0  magic
//	 8  uint32  version
//	12  uint32  CRC32C of what follows
//	16  uint64  id of the file
//
// Batches follow, each at a multiple of eight and written and synced at once:
//
//	 0  uint32  checksum of what follows, which covers its place and the file's id
//	 4  uint32  length of the changes
//	 8  uint64  the position up to which the file was synced when this was written
//	16          per change: uint32 lengths of key and value, key, value
//
// The first batch has all definitions that existed when the file was made. A batch without
// changes is a mark. A mark follows each sync; it distinguishes damage in synced data from
// a torn tail. After the last batch come zeros, whose space is allocated.
const (
	definitionsHeader = 24
	batchHeader       = 16
	changeHeader      = 8
)

// encodeDefinitions makes a file of all definitions.
func encodeDefinitions(id uint64, all []Definition) []byte {
	b := make([]byte, definitionsHeader)
	copy(b, definitionsMagic)
	binary.LittleEndian.PutUint32(b[8:], definitionsVersion)
	binary.LittleEndian.PutUint64(b[16:], id)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[16:], castagnoli))
	b = append(b, encodeBatch(id, definitionsHeader, definitionsHeader, all)...)
	end := int64(len(b))
	return append(b, encodeBatch(id, end, end, nil)...)
}

// encodeBatch encodes the batch at an offset, with its padding.
func encodeBatch(id uint64, at, synced int64, changes []Definition) []byte {
	n := batchHeader
	for _, c := range changes {
		n += changeHeader + len(c.Key) + len(c.Value)
	}
	b := make([]byte, batchHeader, align(n))
	binary.LittleEndian.PutUint32(b[4:], uint32(n-batchHeader))
	binary.LittleEndian.PutUint64(b[8:], uint64(synced))
	for _, c := range changes {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Key)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Value)))
		b = append(b, c.Key...)
		b = append(b, c.Value...)
	}
	binary.LittleEndian.PutUint32(b, checksum(id, Pos(at), b))
	return b[:align(n)]
}

// values holds the last value of each key.
type values map[string][]byte

func (v values) put(c Definition) {
	if v[c.Key] = c.Value; len(c.Value) == 0 {
		delete(v, c.Key)
	}
}

// list returns them by key.
func (v values) list() (all []Definition) {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		all = append(all, Definition{key, v[key]})
	}
	return all
}

// foundDefinitions is the result of reading the file.
type foundDefinitions struct {
	latest  values
	version uint32 // 0: the file does not exist
	id      uint64
	size    int64 // of the file
	end     int64 // of the last valid batch
	marked  bool  // the last valid batch is a mark
	torn    int   // bytes after it, being written in a crash
}

// scanDefinitions reads the file without changing anything.
func scanDefinitions(dir fileSystem) (*foundDefinitions, error) {
	b, err := readWhole(dir, definitionsName)
	if errors.Is(err, fs.ErrNotExist) {
		return &foundDefinitions{latest: values{}}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(b) < 16 || string(b[:8]) != definitionsMagic {
		return nil, &corruptError{File: definitionsName, Reason: "its header is not valid"}
	}
	f := &foundDefinitions{latest: values{}, version: binary.LittleEndian.Uint32(b[8:]), size: int64(len(b))}
	switch {
	case f.version == definitionsVersion:
		return f, f.read(b)
	case f.version == 0 || f.version >= 1<<16:
		return nil, &corruptError{File: definitionsName, Offset: 8, Reason: "its version is not valid"}
	}
	return nil, fmt.Errorf("store: definitions: format %d, this Curfew reads %d: %w", f.version, definitionsVersion, errVersion)
}

func (f *foundDefinitions) read(b []byte) error {
	if len(b) < definitionsHeader || binary.LittleEndian.Uint32(b[12:]) != crc32.Checksum(b[16:definitionsHeader], castagnoli) {
		return &corruptError{File: definitionsName, Reason: "its header is not valid"}
	}
	f.id, f.end = binary.LittleEndian.Uint64(b[16:]), definitionsHeader
	for {
		batch, ok := batchAt(f.id, b, f.end)
		if !ok {
			break
		}
		if !f.addBatch(batch[batchHeader:]) {
			return &corruptError{File: definitionsName, Offset: f.end, Reason: "the changes there are not valid"}
		}
		f.marked = len(batch) == batchHeader
		f.end += int64(align(len(batch))) // the padding may be missing if the file was cut
	}
	return f.checkTail(b)
}

// batchAt returns the batch at an offset, without its padding, if its checksum is valid.
func batchAt(id uint64, b []byte, at int64) (batch []byte, ok bool) {
	left := int64(len(b)) - at
	if left < batchHeader {
		return nil, false
	}
	n := batchHeader + int64(binary.LittleEndian.Uint32(b[at+4:]))
	synced := binary.LittleEndian.Uint64(b[at+8:])
	if n > left || synced < definitionsHeader || synced > uint64(at) {
		return nil, false
	}
	batch = b[at : at+n]
	return batch, binary.LittleEndian.Uint32(batch) == checksum(id, Pos(at), batch)
}

// addBatch adds the changes of a batch.
func (f *foundDefinitions) addBatch(b []byte) bool {
	for len(b) > 0 {
		if len(b) < changeHeader {
			return false
		}
		key, value := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
		b = b[changeHeader:]
		if key+value > uint64(len(b)) {
			return false
		}
		f.latest.put(Definition{Key: string(b[:key]), Value: b[key : key+value]})
		b = b[key+value:]
	}
	return true
}

// checkTail examines what follows the last valid batch: it was being written in a crash,
// unless a later batch says that it had been synced.
func (f *foundDefinitions) checkTail(b []byte) error {
	for at := f.end + 8; at < f.size; at += 8 {
		if _, ok := batchAt(f.id, b, at); ok && binary.LittleEndian.Uint64(b[at+8:]) > uint64(f.end) {
			return &corruptError{File: definitionsName, Offset: f.end, Reason: "the changes there are not valid, but had been synced"}
		}
	}
	written := len(b)
	for written > int(f.end) && b[written-1] == 0 {
		written--
	}
	f.torn = max(0, written-int(f.end))
	if f.end == definitionsHeader {
		return &corruptError{File: definitionsName, Offset: f.end, Reason: "the first changes are missing"}
	}
	return nil
}

func openSized(dir fileSystem, name string) (f file, size int64, err error) {
	if f, err = dir.Open(name); err != nil {
		return nil, 0, fmt.Errorf("store: open %s: %w", name, err)
	}
	if size, err = f.Size(); err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("store: size of %s: %w", name, err)
	}
	return f, size, nil
}

func readWhole(dir fileSystem, name string) ([]byte, error) {
	f, size, err := openSized(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("store: read %s: %w", name, err)
	}
	return b, nil
}
