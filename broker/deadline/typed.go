package deadline

import (
	"fmt"
	"time"
)

// ParseSpan reads a duration that somebody typed.
func ParseSpan(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		err = fmt.Errorf("%q is invalid: want a duration such as 90s, 10m or 1h30m", text)
	}
	return d, err
}

// ParseTime reads an instant that somebody typed, or that a browser sent: in the form of RFC 3339, a date alone or a date with hours and minutes,
// in UTC unless it names a zone.
func ParseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is invalid: want an instant such as 2006-01-02T15:04:05Z", text)
}

// ParseMillis is ParseTime in Unix ms, rounded up: a deadline is never early.
func ParseMillis(text string) (int64, error) {
	at, err := ParseTime(text)
	return at.Add(time.Millisecond - 1).UnixMilli(), err
}
