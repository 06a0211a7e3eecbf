package forecast

import "math"

const (
	// The rate is an average in which what was seen this long ago weighs a third of
	// what is seen now: ten seconds, or longer where that is needed to see enough
	// messages.
	memory         = 10 * second
	memoryMost     = 120 * second
	memoryMessages = 20
	// polledFor is how long a queue without consumers counts as served after
	// somebody polled a message from it.
	polledFor = 30 * second

	second = 1_000_000 // µs
)

// Observation is what a queue shows of itself.
type Observation struct {
	Now       int64  // Unix µs; later than the one before
	Delivered uint64 // messages handed out so far
	Polled    uint64 // of these, by basic.get
	Ready     int
	Consumers int
}

// Meter measures how fast a queue is served, from observations about once a second.
// A rate is only seen while messages wait: an empty queue hands out what arrives,
// which says that its consumers are at least as fast as that. The zero value has seen
// nothing. Not safe for concurrent use.
type Meter struct {
	served, span float64 // what was handed out, and in what time, µs; both fade
	bound        bool    // they say only that it is at least as fast
	last         Observation
	polled       int64 // when it last was, Unix µs; 0 never
}

// Observe takes note of a queue's present state.
func (m *Meter) Observe(o Observation) {
	last := m.last
	m.last = o
	if last.Now == 0 || o.Now <= last.Now || o.Delivered < last.Delivered {
		return
	}
	if o.Polled > last.Polled {
		m.polled = o.Now
	}
	served, span := float64(o.Delivered-last.Delivered), float64(o.Now-last.Now)
	if waited := last.Ready > 0 && o.Ready > 0; waited {
		if m.bound {
			m.served, m.span, m.bound = 0, 0, false
		}
		kept := math.Exp(-span / m.memory())
		m.served, m.span = m.served*kept+served, m.span*kept+span
	} else if served*m.span > m.served*span || m.span == 0 {
		m.served, m.span, m.bound = served, span, true
	}
}

// memory is the time constant, in µs.
func (m *Meter) memory() float64 {
	if m.served == 0 {
		return memory
	}
	return min(max(memoryMessages*m.span/m.served, memory), memoryMost)
}

// Rate is how many messages a second are served: 0 when nobody is there to take
// them.
func (m *Meter) Rate() float64 {
	if m.last.Consumers == 0 && (m.polled == 0 || m.last.Now-m.polled > polledFor) {
		return 0
	}
	if m.span == 0 {
		return 0
	}
	return m.served / m.span * second
}
