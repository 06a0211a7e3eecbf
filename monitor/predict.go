package monitor

import (
	"math"

	"curfew/broker/deadline"
)

// Line is a queue at an instant: every Step-th message that is ready, in the order
// of delivery.
type Line struct {
	Now     deadline.Instant
	Ready   int // messages in all
	Step    int // 1 or more
	Samples []deadline.Sample
	Rate    float64 // messages served a second; 0: none are
	// Missed, if it is not nil, has an entry for each sample; Predict says there whether it will expire.
	Missed []bool
}

// Weight is how many messages a sample stands for.
func (l *Line) Weight(s *deadline.Sample) int { return max(min(l.Step, l.Ready-s.Ahead), 1) }

// Prediction is what becomes of a Line.
type Prediction struct {
	Deadlines int // messages that have a deadline
	Miss      int // how many of these will expire
	// First is the index of the sample that will expire first; -1 is none. Last is the
	// deadline of the last.
	First int
	Last  deadline.Instant
	// Drained is when the last message to be served will have been served; 0: never at
	// this rate.
	Drained deadline.Instant
}

// Predict walks the line. Counts of a sampled line are estimates: each sample stands for
// the Step messages from it on.
func Predict(l Line) Prediction {
	p := Prediction{First: -1}
	served := 0.0
	reached := func() float64 { // when the next message is, in Unix µs
		if l.Rate <= 0 {
			return math.Inf(1)
		}
		return float64(l.Now) + served/l.Rate*second
	}
	for i, s := range l.Samples {
		weight := l.Weight(&s)
		due := s.Ref.Deadline
		if due != 0 {
			p.Deadlines += weight
		}
		miss := due != 0 && float64(due) <= reached()
		if l.Missed != nil {
			l.Missed[i] = miss
		}
		if !miss {
			served += float64(weight)
			continue
		}
		p.Miss += weight
		p.Last = max(p.Last, due)
		if p.First < 0 || due < l.Samples[p.First].Ref.Deadline {
			p.First = i
		}
	}
	if at := reached(); at < math.MaxInt64/2 {
		p.Drained = deadline.Instant(math.Ceil(at))
	}
	return p
}
