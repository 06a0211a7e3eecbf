package deadline

import (
	"cmp"
	"math"
)

// Forecast estimates what becomes of a queue's messages if its consumers carry on as in the
// last seconds and nothing of a higher priority arrives.
type Forecast struct {
	VHost     string  `json:"vhost"`
	Queue     string  `json:"queue"`
	Ready     int     `json:"ready"`
	Consumers int     `json:"consumers"`
	Rate      float64 `json:"rate"`       // messages handed out a second while any wait
	Deadlines int     `json:"deadlines"`  // ready messages that have one
	AtRisk    int     `json:"at_risk"`    // of these, how many will expire; 0 where that is no loss
	AsMeant   int     `json:"as_meant"`   // how many will, where it is no loss
	Sampled   bool    `json:"sampled"`    // the counts are estimates
	FirstMiss int64   `json:"first_miss"` // the first deadline of those that will expire, Unix ms; 0: none will
	LastMiss  int64   `json:"last_miss"`  // the last of them
	DrainedAt int64   `json:"drained_at"` // when the last message will have been handed out, Unix ms; 0: never
	NearlyDue bool    `json:"nearly_due"` // the first of those at risk has used up half of its time to live
	Stuck     bool    `json:"-"`          // there are consumers, and they take nothing
}

// Compare is the order of forecasts: first that of the queue that loses messages sooner, then of the one that loses more. nil is a queue without one.
func (f *Forecast) Compare(other *Forecast) int {
	safe := Forecast{FirstMiss: math.MaxInt64}
	if f == nil || f.AtRisk == 0 {
		f = &safe
	}
	if other == nil || other.AtRisk == 0 {
		other = &safe
	}
	return cmp.Or(cmp.Compare(f.FirstMiss, other.FirstMiss), cmp.Compare(other.AtRisk, f.AtRisk))
}
