package incident

import "time"

// losses remember, by condition, counters of what must not happen.
type losses map[string]loss

type loss struct {
	total uint64 // as last seen
	rise  int
	at    time.Time // of the last rise
}

// rising is what was added to each counter, with no pause of recent.
func (l losses) rising(totals map[string]uint64, now time.Time) map[string]int {
	rising := make(map[string]int)
	for condition, total := range totals {
		of, known := l[condition]
		if now.Sub(of.at) >= recent {
			of.rise = 0
		}
		if known && total > of.total {
			of.rise, of.at = of.rise+int(total-of.total), now
		}
		of.total = total
		l[condition] = of
		if of.rise > 0 {
			rising[condition] = of.rise
		}
	}
	return rising
}
