package store

// Stats are figures of the moment.
type Stats struct {
	Messages       int64 // references to messages
	Segments       int
	LiveBytes      int64 // estimate of what is referred to
	MappedBytes    int64
	PendingCommits int
}

// Stats walks the table of segments.
func (s *Store) Stats() Stats {
	var st Stats
	s.volatile.stats(&st)
	return st
}

func (a *appender) stats(st *Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	st.Segments += a.segments
	st.MappedBytes += a.mapped
	a.table.each(func(s *segment) bool {
		st.Messages += s.refs.Load()
		st.LiveBytes += s.live()
		if s == a.active {
			st.Messages--
		}
		return true
	})
}
