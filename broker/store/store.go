package store

import (
	"errors"
	"io"
	"slices"
)

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("store: closed")
	// ErrFull is Put's answer to a durable message while the disk is full. What
	// takes messages away goes on.
	ErrFull = errors.New("store: disk is full")
)

// Enqueue says that the message at Pos stands in a queue under Seq. Queue is the
// queue's incarnation: never zero and never given to a second queue.
type Enqueue struct {
	Queue, Seq uint64
	Pos        Pos
	ExpiresAt  int64 // Unix µs, 0 never; kept for recovery, not looked at
	Flags      uint8 // the caller's own; kept for recovery, not looked at
	Durable    bool  // the entry survives a restart, if the message was put durably
	EnqueuedAt int64 // Unix µs, 0 not to be kept; not looked at
}

// Settle says that the entry (Queue, Seq), which referred to Pos, has left its
// queue. Durable as the entry was.
type Settle struct {
	Queue, Seq uint64
	Pos        Pos
	Durable    bool
}

// Terms are what may change of an entry while its message stays in its queue.
type Terms struct {
	ExpiresAt  int64  // Unix µs, 0 never
	Deliveries uint16 // that failed
	Flags      uint8  // the caller's own
}

// Amend says that the entry (Queue, Seq), which refers to Pos, has other terms than
// it was entered with. Durable as the entry was.
type Amend struct {
	Queue, Seq uint64
	Pos        Pos
	Durable    bool
	Terms
}

func (a *Amend) amendment() amendment {
	return amendment{a.Queue, a.Seq, uint32(a.Pos.segment()), a.Terms}
}

// Store holds the messages of all queues. See the package comment. Safe for
// concurrent use, except that nothing may be called after Close.
type Store struct {
	memory   mappings
	volatile *volatileLog
	journal  *journal // nil: memory only
	keeper   *keeper

	fs   fileSystem // nil: memory only
	lock io.Closer

	definitions *definitions // nil: memory only
}

// Put copies a message into the store and returns its position. The caller gets
// refs references to give to queue entries, or one of his own when refs is 0;
// each is given back with Settled, Moved or Release. A durable message is written
// to the journal; it waits while the disk is far behind, and is refused with
// ErrFull while it is full. So does any other while the disk is far behind in taking
// what lies in memory, but not while it is full. Must not be called under a queue's lock.
func (s *Store) Put(m Message, durable bool, refs int) (Pos, error) {
	if durable && s.journal != nil {
		return s.journal.put(&m, refs, 0, publishing)
	}
	return s.volatile.put(&m, refs, publishing)
}

// PutMoved is Put for the copy of a message that Moved will take out of another
// queue: it may use the space that is kept back when the disk is full. Must not be
// called under a queue's lock either.
func (s *Store) PutMoved(m Message, durable bool, refs int) (Pos, error) {
	if durable && s.journal != nil {
		return s.journal.put(&m, refs, 0, moving)
	}
	return s.volatile.put(&m, refs, moving)
}

// View returns the message at p, aliasing the store's memory. It is valid while
// the caller holds a reference: one of his own, or that of a queue entry while he
// holds the queue's lock. (Without the lock, compaction may move the entry's
// reference to another position.) Takes no lock.
func (s *Store) View(p Pos) Message {
	return viewMessage(s.segment(p).mem[p.offset():])
}

func (s *Store) logOf(p Pos) *appender {
	if p.Durable() {
		return &s.journal.appender
	}
	return &s.volatile.appender
}

// segment returns the segment a referenced position stands in.
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

// Enqueued records that messages stand in queues. It only writes memory and is
// meant to be called under the queue's lock.
func (s *Store) Enqueued(entries []Enqueue) {
	if s.enterVolatile(entries) == len(entries) {
		return
	}
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.journal.enqueued(entries)
}

// enterVolatile records the entries that hold volatile messages and counts them.
func (s *Store) enterVolatile(entries []Enqueue) (n int) {
	for i := range entries {
		if !entries[i].Pos.Durable() {
			s.volatile.enqueued(&entries[i])
			n++
		}
	}
	return n
}

// Settled records that entries left their queues and releases a reference for
// each. It only writes memory and is meant to be called under the queue's lock.
// Purging or deleting a queue is settling all its entries: those with consecutive
// sequence numbers take one small record per segment.
func (s *Store) Settled(entries []Settle) {
	if slices.ContainsFunc(entries, Settle.journaled) {
		s.journal.mu.Lock()
		s.journal.settled(entries)
		s.journal.mu.Unlock()
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

// Amended records that entries have other terms from now on: of several records for
// one entry the latest counts. It only writes memory and is meant to be called under
// the queue's lock.
func (s *Store) Amended(changes []Amend) {
	if s.journal == nil || !slices.ContainsFunc(changes, Amend.journaled) {
		return
	}
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.journal.amended(changes)
}

// Moved records as one that src left its queue and dst stand in theirs: after a
// crash both are true or neither is. It releases src's reference.
func (s *Store) Moved(src Settle, dst []Enqueue) {
	s.enterVolatile(dst)
	if j := s.journal; j != nil {
		j.mu.Lock()
		if src.journaled() {
			j.moved(&src, dst)
		} else {
			j.enqueued(dst)
		}
		j.mu.Unlock()
	}
	s.Release(src.Pos)
}

// Transacted is Enqueued and Settled as one, of any number of queues: after a crash all
// of it is true or nothing is. That holds for MaxTransaction entries and settlements; of
// more a prefix is found, entries first. It may be called after the queues' locks were
// released, by one who holds a reference to each message that was entered.
func (s *Store) Transacted(entries []Enqueue, settles []Settle) {
	s.enterVolatile(entries)
	if j := s.journal; j != nil {
		j.mu.Lock()
		j.transacted(entries, settles)
		j.mu.Unlock()
	}
	s.releaseAll(settles)
}

// Commit calls fn once all that was handed in before is as safe as the sync mode
// promises, or with the error that prevents it; before it returns, if there is
// nothing to wait for. Calls are made in the order of Commit. They must not block
// nor call Put.
func (s *Store) Commit(fn func(error)) {
	if s.journal == nil {
		fn(nil)
		return
	}
	s.journal.whenSafe(fn)
}

// Synced is Commit for the disk, whatever the mode promises.
func (s *Store) Synced(fn func(error)) {
	if s.journal == nil {
		fn(nil)
		return
	}
	s.journal.whenSynced(fn)
}

// Full reports whether the disk is full: durable messages are refused.
func (s *Store) Full() bool { return s.journal != nil && s.journal.isFull() }

// Failed delivers the error that ended the journal, if one ever does. The process
// is to end then, and to recover by opening the store again.
func (s *Store) Failed() <-chan error {
	if s.journal == nil {
		return nil
	}
	return s.journal.commit.failed
}

// Err returns the error that ended the journal, nil while it works.
func (s *Store) Err() error {
	if s.journal == nil {
		return nil
	}
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.journal.err
}

// Close writes and syncs what is pending and gives all memory back: no view and
// no position may be used afterwards. It returns the error that ended the
// journal, if one did.
func (s *Store) Close() error { return s.close(func() error { return nil }) }

// close calls last when everything is on the disk.
func (s *Store) close(last func() error) error {
	s.volatile.shut()
	if s.journal != nil {
		s.journal.shut()
	}
	s.keeper.close()
	var err error
	if s.journal != nil {
		err = errors.Join(s.journal.finish(), s.definitions.close())
		if err == nil {
			err = last()
		}
		s.journal.close()
	}
	s.volatile.close()
	s.memory.close()
	s.keeper.spilled.close()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
