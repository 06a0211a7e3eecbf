package observe

import "curfew/broker/deadline"

// expiration reads the property of a message; -1: none.
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

// lower is the lower of two times to live, of which each may be none.
func lower(a, b deadline.Millis) deadline.Millis {
	switch {
	case a < 0:
		return b
	case b < 0:
		return a
	}
	return min(a, b)
}
