package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
)

// next returns the number of the first segment to come.
func (r *recovery) next() uint64 {
	if n := len(r.files); n > 0 {
		return r.files[n-1].number + 1
	}
	return 1
}

// repair prepares the directory for appending: it removes what was cut and the record of a
// clean stop, ends and syncs the last segment, and makes the next segment's file. It may be
// interrupted at any point. If the disk does not even have room for an empty file, the last
// segment stays open until it has.
func (r *recovery) repair(segmentBytes int) error {
	next := r.next()
	for _, name := range r.leftover {
		if err := r.fs.Remove(name); err != nil {
			return fmt.Errorf("store: remove %s: %w", name, err)
		}
	}
	for i := len(r.discarded) - 1; i >= 0; i-- {
		s := r.discarded[i]
		unmap(s.mem)
		s.mem = nil
		if s.number == next {
			continue // replaced below
		}
		if err := r.fs.Remove(s.name); err != nil {
			return fmt.Errorf("store: remove %s: %w", s.name, err)
		}
	}
	err := r.repairSpares(next, int64(segmentBytes))
	if noSpace(err) {
		n := len(r.files)
		r.unended = n > 0 && !r.files[n-1].ended
		if r.unended || r.present(next) {
			err = nil // the file is made later
		}
	}
	if err != nil {
		return err
	}
	if err := r.fs.Remove(cleanStopName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: remove %s: %w", cleanStopName, err)
	}
	if err := r.fs.SyncDir(); err != nil {
		return fmt.Errorf("store: sync the data directory: %w", err)
	}
	if len(r.files) == 0 {
		return nil
	}
	return r.end(r.files[len(r.files)-1])
}

// repairSpares keeps the spare files that follow the last segment without a gap and have
// the right size. Afterwards the first of them exists, if only as a name: the existence of
// the next file is how the loss of the last one is noticed.
func (r *recovery) repairSpares(next uint64, size int64) error {
	for r.spares[next+r.spared] == size {
		r.spared++
	}
	for number := range r.spares {
		if number == next || number > next && number < next+r.spared {
			continue
		}
		if err := r.fs.Remove(fileName(number)); err != nil {
			return fmt.Errorf("store: remove %s: %w", fileName(number), err)
		}
	}
	if r.spared > 0 {
		return nil
	}
	err := makeSpare(r.fs, next, size)
	if err == nil {
		r.spared = 1
	} else if noSpace(err) {
		err = makeSpare(r.fs, next, 0)
	}
	if err != nil {
		return fmt.Errorf("store: make %s: %w", fileName(next), err)
	}
	return nil
}

// end ends the last segment after its last valid record and syncs it: the end may have
// survived only in the system's memory.
func (r *recovery) end(s *scanned) error {
	f, err := r.fs.Open(s.name)
	if err != nil {
		return fmt.Errorf("store: open %s: %w", s.name, err)
	}
	defer f.Close()
	switch {
	case s.ended || r.unended:
		err = f.Sync()
	default:
		err = writeEnd(f, r.id, s.number, s.end)
		s.end += endBytes
	}
	if err != nil {
		return fmt.Errorf("store: end %s: %w", s.name, err)
	}
	unmap(s.mem)
	if s.mem, err = f.Map(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// writeEnd ends a segment's file at an offset and syncs it. An end record lies in one sector,
// so a crash leaves all of it or nothing.
func writeEnd(f file, id, number uint64, at int) error {
	b := make([]byte, endBytes)
	putHeader(b, kindEnd, 0)
	binary.LittleEndian.PutUint32(b, checksum(id, makePos(false, number, at), b))
	if _, err := f.WriteAt(b, int64(at)); err != nil {
		return err
	}
	return f.Sync()
}
