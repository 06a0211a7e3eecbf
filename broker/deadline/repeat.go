package deadline

import (
	"maps"
	"sync"
	"time"
)

const (
	// repeats is how often something has to happen within a minute to be known as a Repeat that goes on.
	repeats = 5
	// repeatPause is how long it must not happen for that to be over.
	repeatPause = 3 * time.Minute
)

// Repeat counts what happens again and again. The zero value has never happened. Not safe for concurrent use.
type Repeat struct {
	Count       int64 // since Since
	Since, Last time.Time
	goes        bool
	times       [repeats]time.Time // the last ones, in a ring
}

// Add counts once more.
func (r *Repeat) Add(now time.Time) {
	if now.Sub(r.Last) >= repeatPause {
		*r = Repeat{Since: now}
	}
	r.Last, r.times[r.Count%repeats] = now, now
	r.Count++
	r.goes = r.goes || r.Count >= repeats && now.Sub(r.times[r.Count%repeats]) <= time.Minute
}

// GoesOn reports whether it happens again and again, and has done so for longer than for some time.
func (r *Repeat) GoesOn(now time.Time, longer time.Duration) bool {
	return r.goes && now.Sub(r.Last) < repeatPause && r.Last.Sub(r.Since) >= longer
}

// maxRepeats bounds what is counted in Repeats. When there is so much, what does not go on is forgotten.
const maxRepeats = 1000

// Repeats count different things that happen again and again. The zero value is ready for use. Safe for concurrent use.
type Repeats[K comparable] struct {
	mu  sync.Mutex
	all map[K]Repeat
}

// Add counts one of them once more.
func (t *Repeats[K]) Add(what K, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, known := t.all[what]
	if !known && len(t.all) >= maxRepeats {
		maps.DeleteFunc(t.all, func(_ K, r Repeat) bool { return !r.GoesOn(now, 0) })
	}
	if t.all == nil {
		t.all = make(map[K]Repeat)
	}
	if of.Add(now); known || len(t.all) < maxRepeats {
		t.all[what] = of
	}
}

// All returns how often each has happened.
func (t *Repeats[K]) All() map[K]Repeat {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.all)
}
