package deadline

import (
	"strings"
	"time"
)

const (
	// MaxSteps is the most waits of a back-off.
	MaxSteps = 16
	// longestStep is ten years.
	longestStep = 10 * 365 * 24 * time.Hour
)

// ParseBackoff reads a list of 1 to MaxSteps waits of 1 ms to ten years, such as 1s,5s,30s,2m. False: it is not one.
func ParseBackoff(list string) (steps []Millis, ok bool) {
	for step := range strings.SplitSeq(list, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(step))
		if err != nil || d < time.Millisecond || d > longestStep || len(steps) == MaxSteps {
			return nil, false
		}
		steps = append(steps, Millis(d.Milliseconds()))
	}
	return steps, true
}

// Jitter is m longer by up to that many percent of it, differently for each salt.
func (m Millis) Jitter(percent uint8, salt uint64) Millis {
	return m + m*Millis(percent)/100*Millis(scatter(salt))/1024
}

// scatter is a number below 1024 that looks random (the finish of splitmix64).
func scatter(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return (n ^ n>>31) >> 54
}
