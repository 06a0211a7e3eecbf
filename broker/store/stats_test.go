package store

// figures are those of Stats, and what only tests look at.
type figures struct {
	Stats
	Messages       int64 // references to messages
	ResidentBytes  int64 // sealed segments in anonymous memory
	PendingCommits int
	SpareBytes     int64 // disk space allocated ahead
}

func (s *Store) figures() figures {
	x := figures{Stats: s.Stats()}
	s.volatile.figures(&x)
	if j := s.journal; j != nil {
		j.figures(&x)
		j.mu.Lock()
		defer j.mu.Unlock()
		x.PendingCommits, x.SpareBytes = len(j.commit.waiters), j.spare.unclaimedLocked()
	}
	return x
}

func (a *appender) figures(x *figures) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x.ResidentBytes += a.resident
	a.table.each(func(s *segment) bool {
		x.Messages += s.refs.Load() % stripRefs
		if s == a.active {
			x.Messages--
		}
		return true
	})
}
