package store

import (
	"time"

	"curfew/broker/deadline"
)

// Stats are current figures of the store.
type Stats struct {
	Segments    int
	LiveBytes   int64 // estimate of the referenced messages' size
	MappedBytes int64
}

// Stats examines every segment.
func (s *Store) Stats() Stats {
	var st Stats
	s.volatile.stats(&st)
	if s.journal != nil {
		s.journal.stats(&st)
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
	a.table.each(func(s *segment) bool {
		st.LiveBytes += s.live()
		return true
	})
}
