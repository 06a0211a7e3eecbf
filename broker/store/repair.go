package store

import (
	"encoding/binary"
	"fmt"
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
// interrupted at any point.
func (r *recovery) repair(segmentBytes int) error {
	next := r.next()
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
	if err := r.repairSpares(next, int64(segmentBytes)); err != nil {
		return err
	}
	if err := r.removeCleanStop(); err != nil {
		return err
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
	f, err := r.fs.Create(spareTemp, size)
	if err == nil {
		r.spared = 1
	} else if noSpace(err) {
		f, err = r.fs.Create(spareTemp, 0)
	}
	if err != nil {
		return fmt.Errorf("store: make %s: %w", fileName(next), err)
	}
	f.Close()
	if err := r.fs.Rename(spareTemp, fileName(next)); err != nil {
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
	if !s.ended {
		b := make([]byte, endBytes)
		putHeader(b, kindEnd, 0)
		binary.LittleEndian.PutUint32(b, checksum(r.id, makePos(false, s.number, s.end), b))
		if _, err := f.WriteAt(b, int64(s.end)); err != nil {
			return fmt.Errorf("store: end %s: %w", s.name, err)
		}
		s.end += endBytes
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("store: sync %s: %w", s.name, err)
	}
	unmap(s.mem)
	if s.mem, err = f.Map(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
