package store

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
)

// Compaction copies the last messages out of segments that are mostly garbage, so
// that these can go. It starts when there is more garbage than live data, takes
// the emptiest segments first, and only those at most half alive: what is copied
// is never more than what is freed.
//
// A message is copied, then the owner is asked, entry by entry and under the
// queue's lock, to let the entry stand at the copy (Options.Relocate), then that
// is journaled. An entry that leaves its queue before is not moved; one that
// leaves after is settled at the copy, whose record stands before the settlement.
// After a crash in between both positions may be on record: the later one counts.
// The entry at the copy is recorded with the terms of that moment, so that what
// amended the one at the original need not be kept.
//
// In the volatile log a message's slots tell who holds it, in the journal the
// entries on record do. Whoever is not found there (an entry not yet recorded, a
// viewer) keeps his reference, and the segment stays until it is released.

func (k *keeper) compact() {
	for _, s := range k.volatile.sparse(k.opts.slack, false) {
		k.evacuateVolatile(s)
		k.provide()
	}
	if k.journal == nil {
		return
	}
	for _, s := range k.journal.sparse(k.opts.slack, k.journal.isFull()) {
		if err := k.evacuate(s); err != nil {
			if !errors.Is(err, ErrFull) && !errors.Is(err, ErrClosed) {
				k.journal.fail(err)
			}
			return
		}
		k.provide()
	}
}

// patience is how many segments are started before compaction comes back to one
// that it could not empty.
const patience = 16

// sparse returns the segments to evacuate now, the emptiest first. pressed: space
// is worth more work, namely to copy three bytes to free one. Only the keeper
// calls it.
func (a *appender) sparse(slack int64, pressed bool) []*segment {
	a.mu.Lock()
	events, next, active, segments := a.events, a.next, a.active, a.segments
	a.mu.Unlock()
	if events < a.look && !pressed {
		return nil
	}
	a.look = events + max(4, uint64(segments/8))
	var live, mapped int64
	var found []*segment
	a.table.each(func(s *segment) bool {
		if s == active || s.number >= next || s.hasStrip() {
			return true
		}
		l := s.live()
		live += l
		mapped += int64(len(s.mem))
		worth := l*2 <= int64(s.used) || pressed && l*4 <= int64(s.used)*3
		if l > 0 && worth && (s.tried == 0 || s.tried+patience <= next) {
			found = append(found, s)
		}
		return true
	})
	excess := mapped - live - (live + slack)
	if pressed {
		excess = mapped - live
	}
	slices.SortFunc(found, func(a, b *segment) int { return int(a.live() - b.live()) })
	for i, s := range found {
		if excess <= 0 {
			return found[:i]
		}
		excess -= int64(len(s.mem))
		s.tried = next
	}
	return found
}

// evacuateVolatile moves the messages of a sealed segment of the volatile log.
func (k *keeper) evacuateVolatile(s *segment) {
	if !s.tryRetain() {
		return
	}
	defer k.volatile.release(s, 1)
	for at := 0; at < s.used; {
		rec := s.mem[at:]
		kind, n := header(rec)
		if kind == unused {
			at += align(n)
			continue
		}
		p := makePos(true, s.number, at)
		k.held = k.held[:0]
		for i := range slotsOf(rec) {
			h := &slotsOf(rec)[i]
			k.hold(&Enqueue{Queue: atomic.LoadUint64(&h[0]), Seq: atomic.LoadUint64(&h[1]), Pos: p})
		}
		if err := k.moveVolatile(s, rec); errors.Is(err, ErrClosed) {
			return
		} else if err != nil {
			k.log.Warn("compaction of transient messages stops", zap.Error(err))
			return
		}
		at += align(n)
	}
}

// hold notes an entry that is still at its position.
func (k *keeper) hold(e *Enqueue) {
	if e.Queue == 0 {
		return
	}
	if _, ok := k.relocate(e.Queue, e.Seq, e.Pos, e.Pos); ok {
		k.held = append(k.held, *e)
	}
}

// moveVolatile copies the message for those in k.held.
func (k *keeper) moveVolatile(s *segment, rec []byte) error {
	if len(k.held) == 0 {
		return nil
	}
	m := viewMessage(rec)
	p, err := k.volatile.put(&m, len(k.held), copying)
	if err != nil {
		return err
	}
	copied := k.volatile.table.get(p.segment())
	for i := range k.held {
		e := &k.held[i]
		k.volatile.enqueued(&Enqueue{Queue: e.Queue, Seq: e.Seq, Pos: p})
	}
	for i := range k.held {
		e := &k.held[i]
		if _, ok := k.relocate(e.Queue, e.Seq, e.Pos, p); ok {
			k.volatile.release(s, 1)
		} else {
			k.volatile.release(copied, 1)
		}
	}
	return nil
}

// evacuate moves the messages of a complete segment of the journal.
func (k *keeper) evacuate(s *segment) error {
	j := k.journal
	if !s.tryRetain() {
		return nil
	}
	defer j.release(s, 1)
	if !j.isComplete(s) || j.existingOf(s.origins) > 0 || !k.findEntries(s) {
		return nil
	}
	slices.SortStableFunc(k.found, func(a, b Enqueue) int { return a.Pos.offset() - b.Pos.offset() })
	for entries := k.found; len(entries) > 0; {
		n := 1
		for n < len(entries) && entries[n].Pos == entries[0].Pos {
			n++
		}
		k.held = k.held[:0]
		for i := range entries[:n] {
			k.hold(&entries[i])
		}
		if err := k.move(s); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

func (j *journal) isComplete(s *segment) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return s.complete
}

// findEntries collects in k.found who may hold the messages of s, from its own
// records and from those of segments that speak of it. It returns false when one
// of them is not complete yet.
func (k *keeper) findEntries(s *segment) bool {
	k.found = k.found[:0]
	complete := true
	k.journal.table.each(func(other *segment) bool {
		if other != s && !k.journal.enters(other, s.number) {
			return true
		}
		if complete = k.journal.isComplete(other); !complete {
			return false
		}
		other.eachFact(func(f *facts) {
			f.eachEntry(func(e Enqueue) {
				if e.Pos.segment() == s.number {
					k.found = append(k.found, e)
				}
			})
		})
		return true
	})
	return complete
}

func (j *journal) enters(s *segment, number uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return s.enters.has(number)
}

// move copies a message of s for those in k.held. A copy must not give a damaged
// message a right checksum.
func (k *keeper) move(s *segment) error {
	if len(k.held) == 0 {
		return nil
	}
	j, old := k.journal, k.held[0].Pos
	kind, rec, ok := validAt(j.id, s.number, s.mem, old.offset())
	if !ok || kind != kindMessage {
		return fmt.Errorf("%s: damaged record at offset %d", fileName(s.number), old.offset())
	}
	m := viewMessage(rec)
	p, err := j.put(&m, len(k.held), old, copying)
	if err != nil {
		return err
	}
	copied := j.table.get(p.segment())
	moved := k.held[:0]
	k.amends = k.amends[:0]
	for _, e := range k.held {
		now, ok := k.relocate(e.Queue, e.Seq, old, p)
		if !ok {
			j.release(copied, 1)
			continue
		}
		e.Pos, e.ExpiresAt, e.Flags = p, now.ExpiresAt, now.Flags
		moved = append(moved, e)
		if now.Deliveries > 0 && e.Durable {
			k.amends = append(k.amends, amendment{e.Queue, e.Seq, uint32(p.segment()), now})
		}
	}
	j.mu.Lock()
	if len(k.amends) > 0 {
		// As of the copy: an amendment recorded meanwhile is later. Before the
		// entries: without them it holds of the original, too.
		j.putAmends(k.amends, p+1)
	}
	j.enqueued(moved)
	j.mu.Unlock()
	j.release(s, int64(len(moved)))
	return nil
}
