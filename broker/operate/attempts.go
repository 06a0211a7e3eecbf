package operate

import (
	"maps"
	"sync"
	"time"
)

// attempts bounds what the refused and failed attempts of a user write to the log and the audit. Otherwise a user without
// rights could fill both with them, and push out what others did. The metric counts all attempts.
//
// For each user, attemptsKept are written per minute. The number of the others is written in one record at the end of the minute, or at a stop.
type attempts struct {
	mu sync.Mutex
	of map[string]*minute // by user
}

// minute has the attempts of a user in one minute, which begins with the first attempt.
type minute struct {
	written, more int
	sum           func(more int) // called at the end with how many were not written, unless it is 0
	timer         *time.Timer
}

const (
	attemptsKept  = 30
	attemptsEvery = time.Minute
)

// admit reports whether an attempt should be written. Otherwise it counts the attempt; at the end of the minute, the sum of the minute's first
// attempt is called with the number.
func (t *attempts) admit(user string, sum func(more int)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[user]
	if m == nil {
		if t.of == nil {
			t.of = map[string]*minute{}
		}
		m = &minute{sum: sum}
		t.of[user] = m
		m.timer = time.AfterFunc(attemptsEvery, func() { t.end(user, m) })
	}
	if m.written < attemptsKept {
		m.written++
		return true
	}
	m.more++
	return false
}

func (t *attempts) end(user string, m *minute) {
	t.mu.Lock()
	more := m.more
	m.more = 0
	if t.of[user] == m {
		delete(t.of, user)
	}
	t.mu.Unlock()
	if more > 0 {
		m.sum(more)
	}
}

// Close records how many attempts of the last minute were not recorded one by one. It is called when nobody can ask for a change any longer.
func (t *attempts) Close() {
	t.mu.Lock()
	of := maps.Clone(t.of)
	t.mu.Unlock()
	for user, m := range of {
		m.timer.Stop()
		t.end(user, m)
	}
}
