package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"

	"go.uber.org/zap"
)

// A clean stop leaves a file that records the stop, and which entries had been delivered.
// Without it the next start cannot know: delivering records nothing, so after a crash any
// entry may have been delivered. The next Open removes the file before it returns; it is
// valid for one start.
//
// Little-endian:
//
//	 0  magic
//	 8  uint32  version
//	12  uint32  CRC32C of what follows
//	16  uint64  id of the store
//	24  uint64  position of the end of the journal
//	32          per run: uint64 queue, first seq, count
const (
	cleanStopName  = "stopped"
	stoppedTemp    = "stopped.tmp"
	stoppedMagic   = "CURFEWS\n"
	stoppedVersion = 1
	stoppedHeader  = 32
	deliveredBytes = 24
)

// Delivered identifies entries of a queue that have been handed to a consumer: Count
// consecutive sequence numbers from First on. The range may include numbers without an
// entry.
type Delivered struct{ Queue, First, Count uint64 }

// CloseClean is Close for a clean stop: the next Open reports it, and also which entries
// had been delivered (RecoveredQueue.WasDelivered). If that cannot be saved, the error is
// returned and the next Open assumes a crash.
func (s *Store) CloseClean(delivered []Delivered) error {
	if s.journal == nil {
		return s.Close()
	}
	return s.close(func() error {
		if err := writeCleanStop(s.fs, s.journal.id, s.journal.logEnd(), delivered); err != nil {
			return fmt.Errorf("store: record the clean stop: %w", err)
		}
		return nil
	})
}

// logEnd returns the position after the last record. Nothing may be appended after that.
func (j *journal) logEnd() Pos {
	s := j.active
	if s == nil {
		s = j.unended
	}
	if s != nil {
		return makePos(false, s.number, s.used)
	}
	return makePos(false, j.next, 0)
}

// logEnd returns the position after the last record that was read, before repair.
func (r *recovery) logEnd() Pos {
	if n := len(r.files); n > 0 && !r.files[n-1].ended {
		return makePos(false, r.files[n-1].number, r.files[n-1].end)
	}
	return makePos(false, r.next(), 0)
}

func writeCleanStop(dir fileSystem, id uint64, end Pos, delivered []Delivered) error {
	b := make([]byte, stoppedHeader, stoppedHeader+deliveredBytes*len(delivered))
	copy(b, stoppedMagic)
	binary.LittleEndian.PutUint32(b[8:], stoppedVersion)
	binary.LittleEndian.PutUint64(b[16:], id)
	binary.LittleEndian.PutUint64(b[24:], uint64(end))
	for _, d := range delivered {
		b = binary.LittleEndian.AppendUint64(b, d.Queue)
		b = binary.LittleEndian.AppendUint64(b, d.First)
		b = binary.LittleEndian.AppendUint64(b, d.Count)
	}
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[16:], castagnoli))
	f, err := dir.Create(stoppedTemp, int64(len(b)))
	if err != nil {
		return err
	}
	defer f.Close()
	return install(dir, f, b, stoppedTemp, cleanStopName)
}

// readCleanStop reads the record of a clean stop, if it belongs to this journal in its
// present state. Any other file is harmless: the last stop counts as a crash.
func (r *recovery) readCleanStop() error {
	b, err := readWhole(r.fs, cleanStopName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	valid := len(b) >= stoppedHeader && string(b[:8]) == stoppedMagic &&
		binary.LittleEndian.Uint32(b[8:]) == stoppedVersion &&
		binary.LittleEndian.Uint32(b[12:]) == crc32.Checksum(b[16:], castagnoli) &&
		(binary.LittleEndian.Uint64(b[16:]) == r.id || len(r.files) == 0) && // an empty journal has no id
		Pos(binary.LittleEndian.Uint64(b[24:])) == r.logEnd()
	if !valid {
		r.log.Warn("the record of the last clean stop does not belong to this journal: assuming a crash", zap.String("file", cleanStopName))
		return nil
	}
	r.result.Clean = true
	for b = b[stoppedHeader:]; len(b) >= deliveredBytes; b = b[deliveredBytes:] {
		r.delivered = append(r.delivered, Delivered{
			binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]),
		})
	}
	return nil
}

// WasDelivered reports whether the entry had been handed to a consumer. After a crash it
// may have been, so the answer is true.
func (q *RecoveredQueue) WasDelivered(seq uint64) bool {
	if !q.clean {
		return true
	}
	at, found := slices.BinarySearchFunc(q.delivered, seq, func(d Delivered, seq uint64) int {
		return cmp.Compare(d.First, seq)
	})
	return found || at > 0 && seq-q.delivered[at-1].First < q.delivered[at-1].Count
}

// markDelivered passes the record of a clean stop on to each queue.
func (r *recovery) markDelivered(queues []RecoveredQueue) {
	of := map[uint64][]Delivered{}
	for _, d := range r.delivered {
		of[d.Queue] = append(of[d.Queue], d)
	}
	for _, runs := range of {
		slices.SortFunc(runs, func(a, b Delivered) int { return cmp.Compare(a.First, b.First) })
	}
	for i := range queues {
		queues[i].clean, queues[i].delivered = r.result.Clean, of[queues[i].Queue]
	}
}
