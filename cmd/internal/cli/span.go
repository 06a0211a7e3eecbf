package cli

import (
	"fmt"
	"time"
)

// Span is a span of time: to the millisecond below ten seconds, and to the second above.
func Span(d time.Duration) string {
	if d.Abs() < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Until is how long it is from now until an instant: "5s", "now" if it has just passed, or "1m2s ago" if it passed a second ago or earlier; "-" for the zero
// time.
func Until(now, at time.Time) string {
	switch d := at.Sub(now); {
	case at.IsZero():
		return "-"
	case d > 0:
		return Span(d)
	case d <= -time.Second:
		return (-d).Truncate(time.Second).String() + " ago"
	}
	return "now"
}

// From is an instant as it is seen from now, such as "in 5s", or "now" if it has passed.
func From(now, at time.Time) string {
	if d := at.Sub(now); d > 0 {
		return "in " + Span(d)
	}
	return "now"
}

// age is how long ago something was, in its largest unit: "3m ago"; if d is negative, "in 3m".
func age(d time.Duration) string {
	text := "0s"
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d.Abs() / unit.size; n > 0 {
			text = fmt.Sprint(int64(n), unit.name)
			break
		}
	}
	if d < 0 {
		return "in " + text
	}
	return text + " ago"
}
