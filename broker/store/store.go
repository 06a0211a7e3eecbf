package store

import (
	"errors"
	"io"
	"slices"

	"curfew/broker/deadline"
)

var (
	// errClosed is returned after Close.
	errClosed = errors.New("store: closed")
	// ErrFull is Put's answer to a durable message while the disk is full. Operations that
	// remove messages still work.
	ErrFull = errors.New("store: disk is full")
)

// Enqueue records that the message at Pos is in a queue under Seq. Queue is the queue's
// incarnation: it is never zero and never given to a second queue.
type Enqueue struct {
	Queue, Seq uint64
	Pos        Pos
	ExpiresAt  deadline.Instant // 0 never; kept for recovery; the store ignores it
	Flags      uint8            // the caller's own; kept for recovery, the store ignores them
	Durable    bool             // the entry survives a restart, if the message was put durably
	EnqueuedAt deadline.Instant // 0: not kept; the store ignores it
}

// Settle records that the entry (Queue, Seq), which referred to Pos, has left its queue.
// Durable has the same value as in the entry.
type Settle struct {
	Queue, Seq uint64
	Pos        Pos
	Durable    bool
}

// Terms are the properties of an entry that may change while its message is queued.
type Terms struct {
	ExpiresAt  deadline.Instant // 0 never
	Deliveries uint16           // failed deliveries
	Flags      uint8            // the caller's own
	WaitsUntil deadline.Instant // for another try; 0: it does not wait
}

// Amend records new terms of the entry (Queue, Seq), which refers to Pos. Durable has the
// same value as in the entry.
type Amend struct {
	Queue, Seq uint64
	Pos        Pos
	Durable    bool
	Terms
}

// Store holds the messages of all queues; see the package comment. It is safe for
// concurrent use, but nothing may be called after Close.
type Store struct {
	memory     mappings
	volatile   *volatileLog
	journal    *journal // nil: memory only
	maintainer *maintainer

	fs   fileSystem // nil: memory only
	lock io.Closer

	definitions *definitions // nil: memory only
}

// Put copies a message into the store and returns its position. The caller gets refs
// references to give to queue entries, or one of its own when refs is 0. Settled, Moved and
// Release give references back. A durable message goes to the journal: Put waits while the
// disk is far behind, and returns ErrFull while the disk is full. For other messages Put
// waits while the disk is far behind in taking what does not fit into memory, but not while
// the disk is full. Put must not be called under a queue's lock.
func (s *Store) Put(m Message, durable bool, refs int) (Pos, error) {
	if durable && s.journal != nil {
		return s.journal.put(&m, refs, 0, publishing)
	}
	return s.volatile.put(&m, refs, publishing)
}

// PutMoved is Put for the copy of a message that Moved will take out of another queue: it
// may use the space that is reserved for a full disk. It must not be called under a queue's
// lock either.
func (s *Store) PutMoved(m Message, durable bool, refs int) (Pos, error) {
	if durable && s.journal != nil {
		return s.journal.put(&m, refs, 0, moving)
	}
	return s.volatile.put(&m, refs, moving)
}

// View returns the message at p, aliasing the store's memory. The result is valid while the
// caller holds a reference, or holds the lock of a queue whose entry has one. (Without that
// lock, compaction may move the entry's reference to another position.) View takes no lock.
func (s *Store) View(p Pos) Message {
	return viewMessage(s.segment(p).mem[p.offset():])
}

func (s *Store) logOf(p Pos) *appender {
	if p.Durable() {
		return &s.journal.appender
	}
	return &s.volatile.appender
}

// segment returns the segment that contains a referenced position.
func (s *Store) segment(p Pos) *segment {
	seg := s.logOf(p).table.get(p.segment())
	if seg == nil {
		panic("store: a message was used without a reference to it")
	}
	return seg
}

// Retain adds n references to the message at p, to which the caller holds one.
func (s *Store) Retain(p Pos, n int) { s.segment(p).refs.Add(int64(n)) }

// Release gives back one reference to the message at p.
func (s *Store) Release(p Pos) { s.logOf(p).release(s.segment(p), 1) }

// Enqueued records that messages are in queues. It only writes to memory and is meant to be
// called under the queue's lock.
func (s *Store) Enqueued(entries []Enqueue) {
	if s.enterVolatile(entries) == len(entries) {
		return
	}
	defer s.journal.unlock(s.journal.lock())
	s.journal.enqueuedLocked(entries)
}

// enterVolatile records and counts the entries of volatile messages.
func (s *Store) enterVolatile(entries []Enqueue) (n int) {
	for i := range entries {
		if !entries[i].Pos.Durable() {
			s.volatile.enqueued(entries[i].Pos, entries[i].Queue, entries[i].Seq)
			n++
		}
	}
	return n
}

// Settled records that entries left their queues and releases a reference for each. It only
// writes to memory and is meant to be called under the queue's lock. To purge or delete a
// queue, settle all its entries: runs of consecutive sequence numbers take one small record
// per segment.
func (s *Store) Settled(entries []Settle) {
	if slices.ContainsFunc(entries, Settle.journaled) {
		since := s.journal.lock()
		s.journal.settledLocked(entries)
		s.journal.unlock(since)
	}
	s.releaseAll(entries)
}

// releaseAll gives back a reference for each settlement.
func (s *Store) releaseAll(entries []Settle) {
	for i := 0; i < len(entries); {
		p, n := entries[i].Pos, int64(1)
		for i++; i < len(entries) && entries[i].Pos>>offsetBits == p>>offsetBits; i++ {
			n++
		}
		s.logOf(p).release(s.segment(p), n)
	}
}

// Amended records new terms of different entries. If an entry is amended several times the
// latest terms count. It only writes to memory and must be called under the queue's lock: an
// amendment has to come before the entry's next relocation, or name the new position.
func (s *Store) Amended(changes []Amend) {
	if s.journal == nil || !slices.ContainsFunc(changes, Amend.journaled) {
		return
	}
	defer s.journal.unlock(s.journal.lock())
	s.journal.amendedLocked(changes)
}

// Moved records, as one, that src left its queue and that dst are in theirs: after a crash
// both are true or neither is. It releases src's reference.
func (s *Store) Moved(src Settle, dst []Enqueue) {
	s.enterVolatile(dst)
	if j := s.journal; j != nil {
		since := j.lock()
		if src.journaled() {
			j.movedLocked(&src, dst)
		} else {
			j.enqueuedLocked(dst)
		}
		j.unlock(since)
	}
	s.Release(src.Pos)
}

// Replaced records that an entry, whose terms are t, refers no longer to the message at old, but to one that was put
// since: after a crash it refers to one of them. It releases the reference to old. It must be called under the queue's lock.
func (s *Store) Replaced(e Enqueue, t Terms, old Pos) {
	s.Amended([]Amend{{e.Queue, e.Seq, e.Pos, e.Durable, t}}) // first: if a crash loses the rest they are those of the original
	s.Moved(Settle{Queue: e.Queue, Seq: e.Seq, Pos: old, Durable: e.Durable}, []Enqueue{e})
}

// Transacted is Enqueued and Settled as one, for any number of queues: after a crash all of
// it is true or none. That holds for up to maxTransaction entries and settlements; of more,
// a prefix survives, entries first. It may be called after the queues' locks were released,
// if the caller holds a reference to each message in entries.
func (s *Store) Transacted(entries []Enqueue, settles []Settle) {
	s.enterVolatile(entries)
	if j := s.journal; j != nil {
		j.transact(entries, settles)
	}
	s.releaseAll(settles)
}

// Failed delivers the error that ended the journal, if that ever happens. The process must
// then end, and recover by opening the store again.
func (s *Store) Failed() <-chan error {
	if s.journal == nil {
		return nil
	}
	return s.journal.commit.failed
}

// Close writes and syncs what is pending and releases all memory: no view and no position
// may be used afterwards. It returns the error that ended the journal, if there was one.
func (s *Store) Close() error { return s.close(func() error { return nil }) }

// close calls last when everything is on disk.
func (s *Store) close(last func() error) error {
	s.volatile.shut()
	if s.journal != nil {
		s.journal.shut()
		deadline.Wake(s.journal.commit.bell)
	}
	s.maintainer.close()
	var err error
	if s.journal != nil {
		<-s.journal.commit.ended // once it has synced everything
		resumed()
		err = errors.Join(s.journal.err, s.definitions.close())
		if err == nil {
			err = last()
		}
		s.journal.close()
	}
	s.volatile.close()
	s.memory.close()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
