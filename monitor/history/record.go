package history

import (
	"math"
	"time"

	"curfew/broker/deadline"
)

// Point is what happened in one interval.
type Point struct {
	// Known is false if nothing was sampled in that interval.
	Known bool
	// Depth and AtRisk are the most messages that waited at once, unacked ones among them, and of those,
	// the most that were at risk.
	Depth, AtRisk int64
	// Published and Delivered count messages, as do Toll and, of the expired ones, Late.
	Published, Delivered int64
	deadline.Toll
	Late int64
	// Lateness is how long after their deadlines 99 in 100 of the expired messages left, at most. Of a longer
	// interval it is that of its worst second.
	Lateness time.Duration
}

// add adds an interval that follows.
func (p *Point) add(o *Point) {
	if !o.Known {
		return
	}
	p.Known = true
	p.Depth, p.AtRisk = max(p.Depth, o.Depth), max(p.AtRisk, o.AtRisk)
	p.Published, p.Delivered = p.Published+o.Published, p.Delivered+o.Delivered
	p.Toll.Add(o.Toll)
	p.Late += o.Late
	p.Lateness = max(p.Lateness, o.Lateness)
}

// record is a Point in a ring: its numbers as small has them, the first of them plus 1. The zero value is a Point that is not known.
type record [9]uint16

// small is the upper half of a 32-bit float, rounded: numbers up to 256 are exact, others within 0.4%.
func small(n int64) uint16 { return uint16((math.Float32bits(float32(max(n, 0))) + 1<<15) >> 16) }

// large is the inverse of small.
func large(n uint16) int64 { return int64(math.Float32frombits(uint32(n) << 16)) }

func recordOf(p *Point) (r record) {
	if !p.Known {
		return r
	}
	for i, n := range []int64{p.Depth, p.AtRisk, p.Published, p.Delivered, p.Expired, p.Late, p.Lateness.Microseconds(), p.Dropped, p.Meant} {
		r[i] = small(n)
	}
	r[0]++
	return r
}

func (r *record) point() Point {
	if r[0] == 0 {
		return Point{}
	}
	return Point{
		Known: true, Depth: large(r[0] - 1), AtRisk: large(r[1]), Published: large(r[2]), Delivered: large(r[3]), Late: large(r[5]),
		Lateness: time.Duration(large(r[6])) * time.Microsecond, Toll: deadline.Toll{Expired: large(r[4]), Dropped: large(r[7]), Meant: large(r[8])},
	}
}
