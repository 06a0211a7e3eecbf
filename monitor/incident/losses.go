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
func (l losses) rising(list []Loss, now time.Time) map[string]int {
	rising := make(map[string]int)
	for _, one := range list {
		of, known := l[one.Condition]
		if now.Sub(of.at) >= recent {
			of.rise = 0
		}
		if known && one.Total > of.total {
			of.rise, of.at = of.rise+int(one.Total-of.total), now
		}
		of.total = one.Total
		l[one.Condition] = of
		if of.rise > 0 {
			rising[one.Condition] = of.rise
		}
	}
	return rising
}
