package store

import (
	"time"

	"curfew/broker/deadline"
)

// Stats are current figures of the store.
type Stats struct {
	Messages       int64 // references to messages
	Segments       int
	LiveBytes      int64 // estimate of the referenced messages' size
	MappedBytes    int64
	ResidentBytes  int64 // sealed segments in anonymous memory
	PendingCommits int
	UnsavedBytes   int   // of the journal, not yet written to a file
	SpareBytes     int64 // disk space allocated ahead
	Full           bool
}

// Stats examines every segment.
func (s *Store) Stats() Stats {
	var st Stats
	s.volatile.stats(&st)
	if j := s.journal; j != nil {
		j.stats(&st)
		j.mu.Lock()
		defer j.mu.Unlock()
		st.PendingCommits = len(j.commit.waiters)
		st.UnsavedBytes = j.unsaved
		st.SpareBytes = j.unclaimedSpareLocked()
		st.Full = j.spare.why() != nil
	}
	return st
}

// LongestHold returns the longest time for which a lock of the store was recently held
// (deadline.Longest).
func (s *Store) LongestHold() time.Duration {
	now := deadline.Instant(time.Now().UnixMicro())
	longest := s.volatile.holds.Value(now)
	if s.journal != nil {
		longest = max(longest, s.journal.holds.Value(now))
	}
	return longest
}

// DiskWait is how long the journal has waited for the disk to write or to sync something; 0: it is not waiting.
func (s *Store) DiskWait() time.Duration {
	j := s.journal
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.commit.askedAt.IsZero() {
		return 0
	}
	return time.Since(j.commit.askedAt)
}

func (a *appender) stats(st *Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	st.Segments += a.segments
	st.MappedBytes += a.mapped
	st.ResidentBytes += a.resident
	a.table.each(func(s *segment) bool {
		st.Messages += s.refs.Load() % stripRefs
		st.LiveBytes += s.live()
		if s == a.active {
			st.Messages--
		}
		return true
	})
}
