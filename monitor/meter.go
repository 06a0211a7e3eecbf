package monitor

import (
	"math"

	"curfew/broker/deadline"
)

const (
	// The rate is an average in which an observation this old weighs a third of a new one:
	// ten seconds, or longer if that is needed to see enough messages.
	memory         = 10 * second
	memoryMost     = 120 * second
	memoryMessages = 20
	// polledFor is how long a queue without consumers counts as served after
	// somebody polled a message from it.
	polledFor = 30 * second
	// stuckAfter is how long consumers have taken nothing, though messages wait, when they are stuck. One that has just come needs a moment on a
	// busy machine. It is no longer than a queue is at risk before that is an incident, so the incident begins under the name that it keeps.
	stuckAfter = 3 * second

	second = 1_000_000 // µs
)

// Observation is the state of a queue at one instant.
type Observation struct {
	Now       deadline.Instant // later than the one before
	Delivered uint64           // messages handed out so far
	Polled    uint64           // of these, by basic.get
	Ready     int
	Consumers int
}

// Meter measures how fast a queue is served, from observations about once a second.
// It can see a rate only while messages wait: an empty queue hands out what arrives, so its
// consumers are at least that fast. The zero value has seen nothing. Not safe for concurrent
// use.
type Meter struct {
	served, span float64 // what was handed out, and in what time, µs; both fade
	bound        bool    // the rate is at least that; more is not known
	last         Observation
	polled       deadline.Instant // when it last was; 0 never
	took         deadline.Instant // when consumers last took a message, or there were none, or nothing waited
}

// Observe adds an observation.
func (m *Meter) Observe(o Observation) {
	last := m.last
	m.last = o
	if last.Consumers == 0 || last.Ready == 0 || o.Delivered != last.Delivered {
		m.took = o.Now
	}
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

// Rate is how many messages are served a second; 0 if nobody takes any.
func (m *Meter) Rate() float64 {
	if m.last.Consumers == 0 && (m.polled == 0 || m.last.Now-m.polled > polledFor) {
		return 0
	}
	if m.span == 0 {
		return 0
	}
	return m.served / m.span * second
}

// Stuck reports whether there are consumers, and they take nothing.
func (m *Meter) Stuck() bool {
	return m.last.Consumers > 0 && m.last.Ready > 0 && m.Rate() == 0 && m.last.Now-m.took >= stuckAfter
}
