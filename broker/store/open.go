package store

import (
	"fmt"
	"math/bits"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// Options configures a Store. The zero value is a store in memory only.
type Options struct {
	Dir          string   // of the journal; "": memory only, nothing is durable
	SegmentBytes int      // 0: defaultSegmentBytes, less on a small disk
	Sync         SyncMode // what Commit waits for
	MemoryLimit  int64    // bytes that the process should stay well below; 0: none
	Log          *zap.Logger

	// Relocate is called by compaction to let the entry (queue, seq) refer to new instead
	// of old. It takes the queue's lock, and returns false if the entry is gone or does not
	// refer to old. If old == new it only answers. It returns the present terms of the
	// entry, which from then on count instead of earlier ones. The reference moves with the
	// position: the store releases the one to old. Relocate is called from Open on, and may
	// return false until queues are restored. nil: no compaction.
	Relocate func(queue, seq uint64, old, new Pos) (Terms, bool)

	OnSync   func(time.Duration)     // duration of each sync
	OnFull   func(why error)         // the disk is full, or no file can be opened; nil: no longer
	Progress func(done, total int64) // every second during recovery, in bytes
}

const (
	mib = 1 << 20

	minSegmentBytes = mib / 4
	definitionsRoom = 64 << 10
	maxReserve      = 64 * mib
)

// tune derives the numbers from the options and the size of the disk (0: no disk).
func (o *Options) tune(space int64) tuning {
	t := tuning{
		segmentBytes: o.SegmentBytes,
		slack:        maxReserve,
		resident:     32 * mib,
		overflow:     256 * mib,
		backlog:      64 * mib,
		burst:        mib,
		linger:       2 * time.Millisecond,
		announce:     200 * time.Millisecond,
		retry:        time.Second,
		room:         definitionsRoom,
		mode:         o.Sync,
		onSync:       o.OnSync,
		onFull:       o.OnFull,
	}
	switch o.Sync {
	case SyncGroup:
		t.lazy = 200 * time.Millisecond
	case SyncInterval:
		t.lazy = 100 * time.Millisecond
	}
	if t.onSync == nil {
		t.onSync = func(time.Duration) {}
	}
	if t.onFull == nil {
		t.onFull = func(error) {}
	}
	if t.segmentBytes == 0 {
		t.segmentBytes = defaultSegmentBytes
		if space > 0 {
			t.segmentBytes = min(defaultSegmentBytes, max(minSegmentBytes, 1<<bits.Len64(uint64(space)/128)))
		}
	}
	t.segmentBytes = pageAlign(t.segmentBytes)
	if o.MemoryLimit > 0 {
		t.resident = min(t.resident, o.MemoryLimit/8)
		t.overflow = min(t.overflow, o.MemoryLimit/4)
	}
	if space > 0 {
		t.reserve = max(2*int64(t.segmentBytes), min(maxReserve, space/16))
		t.ahead = 4 * int64(t.segmentBytes)
		t.slack = t.reserve
	}
	return t
}

// Open opens the store in o.Dir, which no other process may have open, or an empty one in
// memory. It reads the whole journal and returns what survives. If something is damaged
// that had been synced, it refuses with a *corruptError and changes nothing.
func Open(o Options) (*Store, *Recovery, error) {
	if o.Dir == "" {
		s := &Store{}
		s.start(o.tune(0), &o)
		return s, &Recovery{}, nil
	}
	dir, err := openDir(o.Dir)
	if err != nil {
		return nil, nil, err
	}
	space, err := dir.Space()
	if err != nil {
		return nil, nil, fmt.Errorf("store: size of the disk: %w", err)
	}
	return openOn(dir, o.tune(space), &o)
}

// openOn opens the store on a file system.
func openOn(fs fileSystem, t tuning, o *Options) (*Store, *Recovery, error) {
	lock, err := fs.Lock(lockName)
	if err != nil {
		return nil, nil, err
	}
	s := &Store{fs: fs, lock: lock}
	r, err := s.recover(t, o)
	if err != nil {
		lock.Close()
		return nil, nil, err
	}
	s.start(t, o)
	return s, r, nil
}

// recover reads the directory and builds the journal from it.
func (s *Store) recover(t tuning, o *Options) (*Recovery, error) {
	r := newRecovery(s.fs, o.logger(), o.Progress)
	queues, err := r.read()
	r.result.Queues = queues
	s.definitions = &definitions{fs: s.fs, room: t.room, wake: func() {}, pending: values{}}
	if err == nil {
		err = r.repair(t.segmentBytes)
	}
	if err == nil {
		err = s.definitions.repair(r.definitions)
	}
	if err != nil {
		r.unmap()
		return nil, err
	}
	s.memory.size = t.segmentBytes
	s.journal = newJournal(s.fs, t, &s.memory, r)
	s.definitions.fail, s.journal.define = s.journal.fail, s.definitions.syncBefore
	return &r.result, nil
}

// start starts the goroutines of the store.
func (s *Store) start(t tuning, o *Options) {
	s.memory.size = t.segmentBytes
	s.maintainer = &maintainer{
		memory: &s.memory, journal: s.journal, relocate: o.Relocate, log: o.logger(), opts: t,
		bell: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	wake := func() { deadline.Wake(s.maintainer.bell) }
	s.volatile = newVolatileLog(&s.memory, wake)
	if s.journal != nil {
		s.volatile.overflow = t.overflow
		s.maintainer.define, s.definitions.wake, s.journal.wake = s.definitions.retry, wake, wake
		go (&committer{j: s.journal, alarm: time.NewTimer(time.Hour)}).run()
	}
	s.maintainer.volatile = s.volatile
	go s.maintainer.run()
}

func (o *Options) logger() *zap.Logger {
	if o.Log == nil {
		return zap.NewNop()
	}
	return o.Log.Named("store")
}

// newJournal builds the journal from what was recovered, and counts the references of the
// surviving entries.
func newJournal(fs fileSystem, t tuning, memory *mappings, r *recovery) *journal {
	j := &journal{appender: appender{memory: memory}, fs: fs, opts: t, id: r.id, log: r.log}
	j.space.L, j.spare.j = &j.mu, j
	j.wake = func() {}
	j.dead = func(s *segment) *segment {
		j.deadSegments = append(j.deadSegments, s)
		return nil
	}
	j.commit.bell, j.commit.failed, j.commit.ended = make(chan struct{}, 1), make(chan error, 1), make(chan struct{})
	j.next = r.next()
	j.paging = j.next
	j.spare.next, j.spare.end = j.next, j.next+r.spared
	j.commit.synced = makePos(false, j.next, 0)
	for _, s := range r.files {
		j.restore(s)
	}
	if r.unended {
		j.unended = j.table.get(j.next - 1)
	}
	for _, q := range r.result.Queues {
		for i := range q.Entries {
			j.table.get(q.Entries[i].Pos.segment()).refs.Add(1)
		}
	}
	j.table.each(func(s *segment) bool {
		s.given = max(s.given, s.refs.Load())
		if s.refs.Load() == 0 {
			j.deadSegments = append(j.deadSegments, s)
		}
		return true
	})
	return j
}

// restore adds a segment that was read from disk.
func (j *journal) restore(s *scanned) {
	j.existing.Add(s.number)
	j.addLocked(&segment{
		number: s.number, mem: s.mem, used: s.end, paged: true, given: int64(s.messages),
		journaled: journaled{complete: true, enters: s.enters, alters: s.alters, origins: s.origins},
	})
}

// close closes the files and unmaps all memory.
func (j *journal) close() {
	j.table.each(func(s *segment) bool {
		if s.file != nil {
			s.file.Close()
		}
		return true
	})
	if j.copies != nil { // the journal has failed
		j.copies.Wait()
	}
	j.appender.close()
}
