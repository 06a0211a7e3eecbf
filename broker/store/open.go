package store

import (
	"fmt"
	"math/bits"
	"time"

	"go.uber.org/zap"
)

// Options configure a Store. The zero value is a store in memory only.
type Options struct {
	Dir          string   // of the journal; "": memory only, nothing is durable
	SegmentBytes int      // 0: DefaultSegmentBytes, less on a small disk
	Sync         SyncMode // what Commit waits for
	MemoryLimit  int64    // bytes that the process should stay well below; 0: none
	Log          *zap.Logger

	// Relocate is asked by compaction to let the entry (queue, seq) stand at new
	// instead of old, under the queue's lock: false if the entry is gone or does
	// not stand at old. With old == new it only answers. It returns the present terms
	// of the entry, which from then on count in place of those recorded before. The
	// reference goes with the position: the store releases the one to old. It is
	// called from Open on, and false is a good answer until queues are restored. nil:
	// no compaction.
	Relocate func(queue, seq uint64, old, new Pos) (Terms, bool)

	OnSync   func(time.Duration)     // each sync's duration
	OnFull   func(why error)         // when the disk gets full or no file can be opened; nil: no longer
	Progress func(done, total int64) // each second of a recovery, in bytes
}

const (
	mib = 1 << 20

	minSegmentBytes = mib / 4
	definitionsRoom = 64 << 10
	maxReserve      = 64 * mib
)

// tune derives the numbers from the options and the size of the disk (0: none).
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
		t.segmentBytes = DefaultSegmentBytes
		if space > 0 {
			t.segmentBytes = int(min(DefaultSegmentBytes, max(minSegmentBytes, 1<<bits.Len64(uint64(space)/128))))
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

// Open opens the store in o.Dir, which no other process may have open, or an
// empty one in memory. It reads all of the journal and returns what survives, or
// refuses with a *CorruptError, without having changed anything, if something is
// damaged that had been synced.
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

// recover reads the directory and makes the journal from it.
func (s *Store) recover(t tuning, o *Options) (*Recovery, error) {
	r := newRecovery(s.fs, o.logger(), o.Progress)
	queues, err := r.read()
	r.result.Queues = queues
	s.definitions = &definitions{fs: s.fs, room: t.room, wake: func() {}}
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
	s.definitions.fail, s.journal.define = s.journal.fail, s.definitions.before
	return &r.result, nil
}

// start starts the store's goroutines.
func (s *Store) start(t tuning, o *Options) {
	s.memory.size = t.segmentBytes
	s.keeper = &keeper{
		memory: &s.memory, journal: s.journal, relocate: o.Relocate, log: o.logger(), opts: t,
		spilled: spill{size: t.segmentBytes},
		bell:    make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	s.volatile = newVolatileLog(&s.memory, s.keeper.wake)
	if s.journal != nil {
		s.volatile.overflow, s.keeper.spilled.fs = t.overflow, s.journal.fs
	}
	s.keeper.volatile = s.volatile
	if s.journal != nil {
		s.keeper.define, s.definitions.wake = s.definitions.retry, s.keeper.wake
		s.journal.wake = s.keeper.wake
		go s.journal.runCommitter()
	}
	go s.keeper.run()
}

func (o *Options) logger() *zap.Logger {
	if o.Log == nil {
		return zap.NewNop()
	}
	return o.Log.Named("store")
}

// newJournal makes the journal of what was recovered, and counts the references
// of the surviving entries.
func newJournal(fs fileSystem, t tuning, memory *mappings, r *recovery) *journal {
	j := &journal{appender: appender{memory: memory}, fs: fs, opts: t, id: r.id, log: r.log}
	j.space.L = &j.mu
	j.wake = func() {}
	j.dead = func(s *segment) *segment {
		j.buried = append(j.buried, s)
		return nil
	}
	j.commit.init()
	j.next = r.next()
	j.paging = j.next
	j.spare.next, j.spare.end = j.next, j.next+r.spared
	j.commit.synced = makePos(false, j.next, 0)
	for _, s := range r.files {
		j.restore(s)
	}
	for _, q := range r.result.Queues {
		for i := range q.Entries {
			j.table.get(q.Entries[i].Pos.segment()).refs.Add(1)
		}
	}
	j.table.each(func(s *segment) bool {
		s.given = max(s.given, s.refs.Load())
		if s.refs.Load() == 0 {
			j.buried = append(j.buried, s)
		}
		return true
	})
	return j
}

// restore adds a segment that was read.
func (j *journal) restore(s *scanned) {
	j.existing.add(s.number)
	j.add(&segment{
		number: s.number, mem: s.mem, used: s.end, paged: true, given: int64(s.messages),
		journaled: journaled{complete: true, enters: s.enters, alters: s.alters, origins: s.origins, millis: s.millis},
	})
}

// shut ends appending, and the committer once it has synced all.
func (j *journal) shut() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.space.Broadcast()
	j.ring()
}

// finish waits until the committer has synced all, and returns the error that ended
// the journal, if one did.
func (j *journal) finish() error {
	<-j.commit.ended
	return j.err
}

// close closes the files and unmaps everything.
func (j *journal) close() {
	j.table.each(func(s *segment) bool {
		if s.file != nil {
			s.file.Close()
		}
		return true
	})
	j.appender.close()
}
