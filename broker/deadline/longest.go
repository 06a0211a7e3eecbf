package deadline

import (
	"sync/atomic"
	"time"
)

// LongestWindow is how long a measurement counts in Longest, at least. It counts for less than twice
// as long.
const LongestWindow = time.Minute

// Longest is the longest duration that was measured recently. The zero value is ready for use. Safe
// for concurrent use. A measurement that comes just as a window ends may be missed.
type Longest struct {
	window         atomic.Int64 // number of the window that longest is for
	longest, prior atomic.Int64 // in ns; prior is that of the window before
}

// Add adds what was measured at an instant.
func (l *Longest) Add(at Instant, d time.Duration) {
	l.turn(at)
	for longest := l.longest.Load(); int64(d) > longest; longest = l.longest.Load() {
		if l.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// turn begins a window if it is time.
func (l *Longest) turn(at Instant) {
	now, window := int64(at)/LongestWindow.Microseconds(), l.window.Load()
	if now <= window || !l.window.CompareAndSwap(window, now) {
		return
	}
	prior := l.longest.Swap(0)
	if now > window+1 {
		prior = 0
	}
	l.prior.Store(prior)
}

// Value is the longest at an instant; 0: nothing was measured recently.
func (l *Longest) Value(at Instant) time.Duration {
	l.turn(at)
	return time.Duration(max(l.longest.Load(), l.prior.Load()))
}
