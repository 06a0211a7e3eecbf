package monitor

import "curfew/broker/deadline"

// Ahead appends, for each of the instants in Unix ms, how many deadlines are at that instant
// or before it. Each count includes the deadlines that have passed, of messages that
// consumers hold. It leaves out what waits 20 ms to be indexed. Safe for concurrent use.
func (m *Monitor) Ahead(untilMillis []int64, out []int64) []int64 {
	until := m.instants(untilMillis)
	if m.scheduled != nil {
		return m.scheduled.Ahead(until, out)
	}
	return m.index.Count(until, out)
}

// instants are Unix ms of the wall clock by the primary's clock.
func (m *Monitor) instants(millis []int64) []deadline.Instant {
	at := make([]deadline.Instant, len(millis))
	offset := m.primary.ClockOffset()
	for i := range millis {
		at[i] = deadline.FromUnixMilli(millis[i]).Add(offset)
	}
	return at
}
