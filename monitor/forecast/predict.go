package forecast

import "math"

// Standing is where a message stands in its queue.
type Standing struct {
	Seq      uint64 // its name in the queue, for the caller
	Ahead    int    // messages that are delivered before it
	Deadline int64  // Unix µs; 0: none
}

// Line is a queue at an instant: every Step-th message that is ready, in the order
// of delivery.
type Line struct {
	Now       int64 // Unix µs
	Ready     int   // messages in all
	Step      int   // 1 or more
	Standings []Standing
	Rate      float64 // messages served a second; 0: none are
}

// Prediction is what will become of a Line.
type Prediction struct {
	Deadlines int // messages that have a deadline
	Miss      int // of these, how many will not be served before it
	// First is the index of the standing whose deadline is the first to be missed;
	// -1: none. Last is the last such deadline, Unix µs.
	First int
	Last  int64
	// Drained is when the last message that is served will have been, Unix µs;
	// 0: never at this rate.
	Drained int64
}

// Predict walks the line. Counts of a sampled line are estimates: each standing
// speaks for the Step messages from it on.
func Predict(l Line) Prediction {
	p := Prediction{First: -1}
	served := 0.0
	reached := func() float64 { // when the next message is, in Unix µs
		if l.Rate <= 0 {
			return math.Inf(1)
		}
		return float64(l.Now) + served/l.Rate*second
	}
	for i, s := range l.Standings {
		weight := max(min(l.Step, l.Ready-s.Ahead), 1)
		if s.Deadline != 0 {
			p.Deadlines += weight
		}
		if s.Deadline == 0 || float64(s.Deadline) > reached() {
			served += float64(weight)
			continue
		}
		p.Miss += weight
		p.Last = max(p.Last, s.Deadline)
		if p.First < 0 || s.Deadline < l.Standings[p.First].Deadline {
			p.First = i
		}
	}
	if at := reached(); at < math.MaxInt64/2 {
		p.Drained = int64(math.Ceil(at))
	}
	return p
}
