package incident

import (
	"cmp"
	"fmt"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/printable"
)

// ByQueue has forecasts by their queues.
func ByQueue(all []deadline.Forecast) map[QueueName]*deadline.Forecast {
	by := make(map[QueueName]*deadline.Forecast, len(all))
	for i := range all {
		by[QueueName{all[i].VHost, all[i].Queue}] = &all[i]
	}
	return by
}

// Risk says in words what a forecast says. now is in Unix ms.
func Risk(f *deadline.Forecast, now int64) string {
	text, served := printable.Plural(int64(f.AtRisk), "message")+" at risk: ", "nobody consumes"
	if f.Ready > f.AtRisk {
		text += printable.Plural(int64(f.Ready), "message") + " wait, "
	}
	switch {
	case f.Rate >= 100:
		served = printable.Number(int64(f.Rate+0.5)) + " a second are consumed"
	case f.Rate > 0:
		served = fmt.Sprintf("%.3g a second are consumed", f.Rate)
	case f.Consumers > 0 && !f.Stuck:
		served = "nothing is consumed yet"
	case f.Consumers == 1:
		served = "its consumer takes nothing"
	case f.Consumers > 1:
		served = fmt.Sprintf("its %d consumers take nothing", f.Consumers)
	}
	in := (time.Duration(f.FirstMiss-now) * time.Millisecond).Round(100 * time.Millisecond)
	if in <= 0 {
		return text + served + ", the first expires now"
	}
	return text + served + ", the first expires in " + printable.Span(in)
}

// Standing is what decides how far up a queue is in a list that begins with the worst. Every such list is sorted by it.
type Standing struct {
	Level         Level              // of the worst that is wrong
	Place         int                // among the queues of that level, as the incidents stand
	Forecast      *deadline.Forecast // nil: none
	Lost, Rescued int64              // what expired in the last hour and is gone, or was dead-lettered; below 0 where that is no loss
}

// Compare is negative if a queue is worse than the other: first as their incidents stand, then by what it will lose, then by what it has lost.
func (s *Standing) Compare(o *Standing) int {
	return cmp.Or(cmp.Compare(s.Level.Rank(), o.Level.Rank()), cmp.Compare(s.Place, o.Place), s.Forecast.Compare(o.Forecast), cmp.Compare(max(o.Lost, 0), max(s.Lost, 0)), cmp.Compare(max(o.Rescued, 0), max(s.Rescued, 0)))
}
