package store

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// Recovery describes what Open found in a directory.
type Recovery struct {
	Queues []RecoveredQueue // ascending by Queue
	Bytes  int64            // read
	Clean  bool             // the last run stopped cleanly
	New    bool             // the directory contained no store

	// Definitions has the latest value of each key that Define was given, by key.
	Definitions []Definition

	// The torn tail that was cut off, if there was one: the end of what was being written
	// in a crash. No caller was notified that it was safe.
	CutFile             string
	CutOffset, CutBytes int64
}

// RecoveredQueue holds the surviving entries of one queue, in ascending order of Seq. The
// caller owns one reference per entry. It settles the entries of queues that no longer
// exist.
type RecoveredQueue struct {
	Queue   uint64
	Entries []RecoveredEntry

	clean     bool        // the last run stopped cleanly, and
	delivered []Delivered // these entries had been delivered; ascending
}

// RecoveredEntry is an entry as given to Enqueued, or amended later. Pos is different if
// compaction has moved the message.
type RecoveredEntry struct {
	Seq        uint64
	Pos        Pos
	EnqueuedAt deadline.Instant // 0: not recorded
	Terms
}

// recovery reads a directory. It changes nothing before repair.
type recovery struct {
	fs       fileSystem
	log      *zap.Logger
	progress func(done, total int64)
	every    time.Duration // between calls of progress

	id        uint64
	files     []*scanned       // with a valid header, ascending
	discarded []*scanned       // those of files that are no longer needed
	spares    map[uint64]int64 // sizes of the files without a header
	spared    uint64           // how many spare files follow the last segment and stay
	unended   bool             // the last segment could not be ended yet
	leftover  []string         // files that a crash left without their final names
	defined   bool             // there are definitions
	total     int64
	delivered []Delivered
	index     index
	result    Recovery

	definitions *foundDefinitions
}

func newRecovery(fs fileSystem, log *zap.Logger, progress func(done, total int64)) *recovery {
	return &recovery{
		fs: fs, log: log, progress: progress, every: time.Second, id: newID(),
		spares: map[uint64]int64{}, index: index{queues: map[uint64]*queueIndex{}},
	}
}

// read finds and verifies all files without changing any, and returns what survives.
func (r *recovery) read() ([]RecoveredQueue, error) {
	if err := r.find(); err != nil {
		return nil, err
	}
	if err := r.scan(); err != nil {
		return nil, err
	}
	if err := r.readDefinitions(); err != nil {
		return nil, err
	}
	var stray error
	queues := r.index.surviving(func(p Pos) bool {
		s := r.file(p.segment())
		if s == nil || s.ended && s.records == 0 {
			return false
		}
		if stray == nil && !s.hasMessage(p.offset()) {
			stray = &corruptError{File: s.name, Offset: int64(p.offset()), Reason: "an entry says there is a message"}
		}
		return true
	})
	r.markDelivered(queues)
	r.result.New = len(r.files)+len(r.discarded)+len(r.spares)+len(r.result.Definitions) == 0
	return queues, stray
}

// readDefinitions reads the file of definitions.
func (r *recovery) readDefinitions() (err error) {
	if r.definitions, err = scanDefinitions(r.fs); err != nil {
		return err
	}
	r.result.Definitions = r.definitions.latest.list()
	r.reportCut(definitionsName, int(r.definitions.end), r.definitions.torn)
	return nil
}

// file returns the segment with that number, or nil if it is no longer needed.
func (r *recovery) file(number uint64) *scanned {
	at, found := slices.BinarySearchFunc(r.files, number, func(s *scanned, n uint64) int {
		return cmp.Compare(s.number, n)
	})
	if !found {
		return nil
	}
	return r.files[at]
}

// unmap undoes the mappings of a failed recovery.
func (r *recovery) unmap() {
	for _, s := range slices.Concat(r.files, r.discarded) {
		if s.mem != nil {
			unmap(s.mem)
		}
	}
}

// find lists the segment files and reads their headers.
func (r *recovery) find() error {
	names, err := r.fs.List()
	if err != nil {
		return fmt.Errorf("store: list data directory: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if number, ok := fileNumber(name); ok {
			if err := r.open(name, number); err != nil {
				return err
			}
		}
		if slices.Contains([]string{spareTemp, spillTemp, definitionsTemp, stoppedTemp}, name) {
			r.leftover = append(r.leftover, name)
		}
	}
	r.defined = slices.Contains(names, definitionsName)
	return nil
}

func (r *recovery) open(name string, number uint64) error {
	f, size, err := openSized(r.fs, name)
	if err != nil {
		return err
	}
	defer f.Close()
	start := make([]byte, min(size, fileHeader))
	if _, err := f.ReadAt(start, 0); err != nil {
		return fmt.Errorf("store: read %s: %w", name, err)
	}
	if size < fileHeader || binary.LittleEndian.Uint32(start[60:]) == 0 {
		r.spares[number] = size
		return nil
	}
	head, err := getFileHeader(start)
	switch {
	case errors.Is(err, errVersion):
		return fmt.Errorf("store: %s: %w", name, err)
	case err != nil:
		return &corruptError{File: name, Reason: "its header is not valid"}
	case head.number != number:
		return r.misnamed(name, head.number)
	case len(r.files) > 0 && head.id != r.id:
		return &corruptError{File: name, Offset: 16, Reason: "it belongs to another store"}
	}
	r.id = head.id
	mem, err := f.Map()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	r.total += size
	r.files = append(r.files, &scanned{name: name, number: number, mem: mem})
	return nil
}

// scan reads all files and decides which of them count. What follows an invalid record was
// being written in a crash and is cut off, unless a mark says that it had been synced.
func (r *recovery) scan() error {
	last := time.Now()
	torn := -1
	for i, s := range r.files {
		if torn < 0 {
			s.read(r.id, r.index.add)
		} else {
			s.read(r.id, nil)
		}
		if !s.ended && torn < 0 {
			torn = i
		}
		r.result.Bytes += int64(len(s.mem))
		if r.progress != nil && time.Since(last) >= r.every {
			last = time.Now()
			r.progress(r.result.Bytes, r.total)
		}
	}
	if torn >= 0 {
		if err := r.cut(torn); err != nil {
			return err
		}
	}
	if err := r.checkNext(); err != nil {
		return err
	}
	if err := r.readCleanStop(); err != nil {
		return err
	}
	return r.checkPresent()
}

// cut cuts the log at the end of file i, unless what follows had been synced.
func (r *recovery) cut(i int) error {
	s, keep := r.files[i], i+1
	at := makePos(false, s.number, s.end)
	if !s.listed {
		at, keep = makePos(false, s.number, 0), i
	}
	for _, f := range r.files {
		if f.synced > at {
			return &corruptError{File: s.name, Offset: int64(s.end), Reason: "the record there is not valid, but had been synced"}
		}
	}
	r.reportCut(s.name, s.end, s.written()-s.end)
	for _, f := range r.files[i+1:] {
		r.reportCut(f.name, 0, f.written())
	}
	r.files, r.discarded = r.files[:keep], r.files[keep:]
	return nil
}

// reportCut adds to the report of what was cut.
func (r *recovery) reportCut(name string, at, bytes int) {
	if bytes == 0 {
		return
	}
	if r.result.CutBytes == 0 {
		r.result.CutFile, r.result.CutOffset = name, int64(at)
	}
	r.result.CutBytes += int64(bytes)
	r.log.Warn("cut off the end of the journal, which was being written in a crash",
		zap.String("file", name), zap.Int("offset", at), zap.Int("bytes", bytes))
}

// checkNext verifies that the first spare file is a spare one. In a crash a file may lose
// its header but keep sectors behind it, and these would be valid again when the file is
// used. (Later files were not written to: the committer goes on to the next file only when
// one is complete and synced.)
func (r *recovery) checkNext() error {
	next := r.next()
	if r.spares[next] == 0 {
		return nil
	}
	f, err := r.fs.Open(fileName(next))
	if err != nil {
		return fmt.Errorf("store: open %s: %w", fileName(next), err)
	}
	defer f.Close()
	s := &scanned{name: fileName(next), number: next}
	if s.mem, err = f.Map(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer unmap(s.mem)
	written := s.written()
	if written == 0 {
		return nil
	}
	if s.searchMarks(r.id); s.synced > makePos(false, next, 0) {
		return &corruptError{File: s.name, Reason: "its header is gone, but had been synced"}
	}
	r.reportCut(s.name, 0, written)
	r.spares[next] = 0
	return nil
}

// checkPresent compares the files with the list in the newest segment. Files that the list
// does not name are no longer needed.
func (r *recovery) checkPresent() error {
	if len(r.files) == 0 {
		return r.checkFirst()
	}
	last := r.files[len(r.files)-1]
	if last.ended && !r.present(last.number+1) && !r.result.Clean {
		return missingNext(last.number+1, "the file is missing")
	}
	found := map[uint64]bool{last.number: true}
	for _, s := range r.files {
		found[s.number] = true
	}
	needed := map[uint64]bool{last.number: true}
	for _, run := range last.segments {
		for n := uint64(run.First); n < uint64(run.First)+uint64(run.Count); n++ {
			if slices.Contains(last.dropped, n) {
				continue
			}
			if !found[n] {
				return &corruptError{File: fileName(n), Reason: "the file is missing"}
			}
			needed[n] = true
		}
	}
	kept := make([]*scanned, 0, len(needed))
	for _, s := range r.files {
		if needed[s.number] {
			kept = append(kept, s)
		} else {
			r.discarded = append(r.discarded, s)
		}
	}
	r.files = kept
	return nil
}

// checkFirst distinguishes a store that was never written to from one whose only file is
// missing.
func (r *recovery) checkFirst() error {
	first := uint64(0)
	for number := range r.spares {
		if first == 0 || number < first {
			first = number
		}
	}
	switch {
	case first > 1 && !r.present(1):
		return &corruptError{File: fileName(first - 1), Reason: "the file is missing"}
	case first == 0 && r.defined && !r.result.Clean:
		return missingNext(1, "there are definitions but no journal files")
	}
	return nil
}

// missingNext is the error about the file after the last one. It may never have had content:
// a start on a full disk used to remove it while it was empty.
func missingNext(number uint64, reason string) error {
	return &corruptError{
		File: fileName(number), Reason: reason, plan: "make an empty one, unless you have the file elsewhere and put it back",
		cure: func(fs fileSystem) error { return makeSpare(fs, number, 0) },
	}
}

// present reports whether there is a file for the segment after the last one.
func (r *recovery) present(number uint64) bool {
	_, spare := r.spares[number]
	return spare || slices.ContainsFunc(r.discarded, func(s *scanned) bool { return s.number == number })
}

// misnamed returns the error about a segment's file under the name of another.
func (r *recovery) misnamed(name string, number uint64) error {
	e := &corruptError{File: name, Offset: 24, Reason: fmt.Sprintf("it is segment %d under another name", number)}
	if f, err := r.fs.Open(fileName(number)); err == nil {
		f.Close()
	} else if errors.Is(err, fs.ErrNotExist) {
		e.plan = "name it " + fileName(number)
		e.cure = func(fs fileSystem) error { return fs.Rename(name, fileName(number)) }
	}
	return e
}

// newID chooses the id of a new store.
func newID() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}
