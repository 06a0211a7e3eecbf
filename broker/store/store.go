package store

import (
	"errors"

	"go.uber.org/zap"
)

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("store: closed")
	// ErrFull is Put's answer to a durable message while the disk is full. What
	// takes messages away goes on.
	ErrFull = errors.New("store: disk is full")
)

// Options configure a Store. The zero value is a store in memory only.
type Options struct {
	Dir          string // of the journal; "": memory only, nothing is durable
	SegmentBytes int    // 0: DefaultSegmentBytes, less on a small disk
	Log          *zap.Logger

	// Relocate is asked by compaction to move the entry (queue, seq) from
	// position old to new, under the queue's lock: false if the entry is gone or
	// does not stand at old. With old == new it only answers. The reference goes
	// with the position: old's is released by the store. nil: no compaction.
	Relocate func(queue, seq uint64, old, new Pos) bool
}

// Enqueue says that the message at Pos stands in a queue under Seq. Queue is the
// queue's incarnation: never zero and never given to a second queue.
type Enqueue struct {
	Queue, Seq uint64
	Pos        Pos
	ExpiresAt  int64 // Unix ms, 0 never; kept for recovery, not looked at
	Flags      uint8 // the caller's own; kept for recovery, not looked at
	Durable    bool  // the entry survives a restart, if the message was put durably
}

// Settle says that the entry (Queue, Seq), which referred to Pos, has left its
// queue. Durable as the entry was.
type Settle struct {
	Queue, Seq uint64
	Pos        Pos
	Durable    bool
}

// Store holds the messages of all queues. See the package comment. Safe for
// concurrent use, except that nothing may be called after Close.
type Store struct {
	log      *zap.Logger
	memory   mappings
	volatile appender
}

// Open opens the store in o.Dir, or an empty one in memory.
func Open(o Options) (*Store, *Recovery, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	s := &Store{log: o.Log.Named("store")}
	s.memory.size = o.SegmentBytes
	s.volatile = appender{volatile: true, memory: &s.memory, next: 1}
	return s, &Recovery{}, nil
}

// Recovery is what Open found in a directory.
type Recovery struct {
	Queues []RecoveredQueue // ascending by Queue
}

// RecoveredQueue holds the surviving entries of one queue, ascending by Seq. The
// caller owns one reference per entry. An entry of a queue that is not known any
// more is to be settled.
type RecoveredQueue struct {
	Queue   uint64
	Entries []RecoveredEntry
}

// RecoveredEntry is what Enqueued was told of one entry.
type RecoveredEntry struct {
	Seq       uint64
	Pos       Pos
	ExpiresAt int64
	Flags     uint8
}

// Put copies a message into the store and returns its position. The caller gets
// refs references to give to queue entries, or one of his own when refs is 0;
// each is given back with Settled, Moved or Release.
func (s *Store) Put(m Message, durable bool, refs int) (Pos, error) {
	return s.volatile.putVolatile(&m, refs)
}

// PutMoved is Put for the copy of a message that Moved will take out of another
// queue: it may use the space that is kept back when the disk is full.
func (s *Store) PutMoved(m Message, durable bool, refs int) (Pos, error) {
	return s.volatile.putVolatile(&m, refs)
}

func (a *appender) putVolatile(m *Message, refs int) (Pos, error) {
	slots := min(refs, maxSlots)
	n, err := messageBytes(m, slots)
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.room(align(n)); err != nil {
		return 0, err
	}
	s, at := a.take(align(n), max(refs, 1))
	putMessage(s.mem[at:at+n], m, slots)
	return makePos(true, s.number, at), nil
}

// View returns the message at p. It is valid while the caller holds a reference:
// one taken with Retain, or that of a queue entry whose queue he has locked.
func (s *Store) View(p Pos) Message {
	return viewMessage(s.segment(p).mem[p.offset():])
}

// segment returns the segment a referenced position stands in.
func (s *Store) segment(p Pos) *segment {
	seg := s.volatile.table.get(p.segment())
	if seg == nil {
		panic("store: a message was used without a reference to it")
	}
	return seg
}

// Retain adds n references to the message at p, to which the caller holds one.
func (s *Store) Retain(p Pos, n int) { s.segment(p).refs.Add(int64(n)) }

// Release gives back one reference to the message at p.
func (s *Store) Release(p Pos) { s.volatile.release(s.segment(p), 1) }

// Enqueued records that messages stand in queues. It only writes memory and is
// meant to be called under the queue's lock.
func (s *Store) Enqueued(entries []Enqueue) {
	for i := range entries {
		e := &entries[i]
		claimSlot(s.segment(e.Pos).mem[e.Pos.offset():], e.Queue, e.Seq)
	}
}

// Settled records that entries left their queues and releases a reference for
// each. It only writes memory and is meant to be called under the queue's lock.
func (s *Store) Settled(entries []Settle) {
	for i := 0; i < len(entries); {
		seg, n := s.segment(entries[i].Pos), int64(1)
		for i++; i < len(entries) && entries[i].Pos>>offsetBits == entries[i-1].Pos>>offsetBits; i++ {
			n++
		}
		s.volatile.release(seg, n)
	}
}

// Moved records as one that src left its queue and dst stand in theirs: after a
// crash both are true or neither is. It releases src's reference.
func (s *Store) Moved(src Settle, dst []Enqueue) {
	s.Enqueued(dst)
	s.Release(src.Pos)
}

// Commit calls fn once all that was handed in before is as durable as the sync
// mode promises, or with the error that prevents it; before it returns, if there
// is nothing to wait for. Calls are made in the order of Commit and must not
// block, nor call Put.
func (s *Store) Commit(fn func(error)) { fn(nil) }

// Close writes and syncs what is pending and gives all memory back.
func (s *Store) Close() error {
	s.volatile.close()
	s.memory.close()
	return nil
}

func (a *appender) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.active = nil
	a.table.each(func(s *segment) bool {
		unmap(s.mem)
		return true
	})
	a.table.dir.Store(nil)
}
