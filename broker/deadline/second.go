package deadline

import "time"

// UntilSecond is how long it is from now to the next full second of the wall clock, or to the one after it if that is very near. Loops that
// look around once a second wait for so long. Then they wake up together: what an idle process costs is how often it wakes up.
func UntilSecond(now time.Time) time.Duration {
	const near = 100 * time.Millisecond // it has just been: timers and the wall clock differ a little
	rest := time.Second - time.Duration(now.Nanosecond())
	if rest < near {
		rest += time.Second
	}
	return rest
}
