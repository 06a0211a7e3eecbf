package monitor

import "curfew/broker/deadline"

// PendingBefore appends, for each of the instants in Unix ms, how many deadlines are at or before
// it. Each count includes the deadlines that have passed while consumers hold the messages. It
// leaves out the messages that wait 20 ms to be indexed. Safe for concurrent use.
func (m *Monitor) PendingBefore(untilMillis []int64, out []int64) []int64 {
	until := m.instants(untilMillis)
	if m.scheduled != nil {
		return m.scheduled.PendingBefore(until, out)
	}
	return m.index.Count(until, out)
}

// instants converts Unix ms of the wall clock to instants of the primary's clock.
func (m *Monitor) instants(millis []int64) []deadline.Instant {
	at := make([]deadline.Instant, len(millis))
	offset := m.primary.ClockOffset()
	for i := range millis {
		at[i] = deadline.FromUnixMilli(millis[i]).Add(offset)
	}
	return at
}
