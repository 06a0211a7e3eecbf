package observe

import "curfew/broker/deadline"

// expiration reads the property expiration of a message; -1: none.
func expiration(text string) deadline.Millis {
	if text == "" {
		return -1
	}
	var ms deadline.Millis
	for _, c := range text {
		if c < '0' || c > '9' || ms > 1<<46 {
			return -1
		}
		ms = 10*ms + deadline.Millis(c-'0')
	}
	return ms
}

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
