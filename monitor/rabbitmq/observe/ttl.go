package observe

import "curfew/broker/deadline"

// lower returns the lower of two times to live; below 0: none.
func lower(a, b deadline.Millis) deadline.Millis {
	switch {
	case a < 0:
		return b
	case b < 0:
		return a
	}
	return min(a, b)
}
