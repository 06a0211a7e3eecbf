package monitor

// Ahead appends for each of the instants, in Unix ms, how many deadlines lie there or
// before it; those that have passed, of messages that consumers hold, are among all of
// them. What waits to be indexed, for 20 ms, is left out. Safe for concurrent use.
func (m *Monitor) Ahead(untilMillis []int64, out []int64) []int64 {
	until := make([]int64, len(untilMillis))
	offset := m.primary.ClockOffset().Microseconds()
	for i, at := range untilMillis {
		until[i] = at*1000 + offset
	}
	return m.index.Count(until, out)
}
