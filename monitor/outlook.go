package monitor

import (
	"math/bits"

	"curfew/broker/deadline"
)

// Fate is what becomes of a message with a deadline.
type Fate uint8

// The fates.
const (
	Safe      Fate = iota // it is consumed in time, or its expiry is no loss
	AtRisk                // it will expire if consumers carry on as they do; there is time left
	NearlyDue             // the same, and most of the time is gone
	fates     = int(iota)
)

// An Outlook has a cell for each ms in the first 64 ms, and 64 cells for each doubling after that.
const (
	cellBits   = 6
	doublings  = 37 // 2^42 ms, more than a hundred years
	cells      = (doublings + 1) << cellBits
	milliMicro = 1000
)

// Outlook counts the messages of a forecast by fate and deadline. Times are exact to 1/64 of how far they are away.
type Outlook struct {
	At     deadline.Instant // when it was made
	counts [fates][]int32
}

// NewOutlook returns an outlook without messages.
func NewOutlook(at deadline.Instant) *Outlook {
	o := &Outlook{At: at}
	for i := range o.counts {
		o.counts[i] = make([]int32, cells)
	}
	return o
}

// Add adds n messages.
func (o *Outlook) Add(due deadline.Instant, n int, f Fate) { o.counts[f][o.cell(due)] += int32(n) }

// cell returns the cell of a deadline.
func (o *Outlook) cell(due deadline.Instant) int {
	in := uint64(max(int64(due-o.At)/milliMicro, 0))
	shift := max(bits.Len64(in)-cellBits-1, 0)
	return min(shift<<cellBits+int(in>>shift), cells-1)
}

// Share is the part of the messages, 0 to 1, that has each fate; the rest is safe.
type Share struct{ AtRisk, NearlyDue float64 }

// Shares appends the share of each span between two neighbouring instants, which are in ascending order. A span without messages in the
// forecast gets the share of the span before: its messages have come since.
func (o *Outlook) Shares(at []deadline.Instant, out []Share) []Share {
	last := Share{}
	for i := 1; i < len(at); i++ {
		var sums [fates]int64
		for c := o.cell(at[i-1]); c <= o.cell(at[i]-1); c++ {
			for f := range o.counts {
				sums[f] += int64(o.counts[f][c])
			}
		}
		if all := float64(sums[Safe] + sums[AtRisk] + sums[NearlyDue]); all > 0 {
			last = Share{float64(sums[AtRisk]) / all, float64(sums[NearlyDue]) / all}
		}
		out = append(out, last)
	}
	return out
}
