package operate

import (
	"maps"
	"sync"
	"time"
)

// attempts bounds what the refused and failed attempts of a user write to the log and the audit. Whoever may do nothing could otherwise fill
// both with them, and push out what others did. The metric counts all of them.
//
// Of each user, attemptsKept are written a minute. The others of the minute are summed up in one record at its end, or at a stop.
type attempts struct {
	mu sync.Mutex
	of map[string]*minute // by user
}

// minute is what a user tried in one; it begins with the first attempt.
type minute struct {
	written, more int
	sum           func(more int) // called at the end with how many were not written, unless it is 0
	timer         *time.Timer
}

const (
	attemptsKept  = 30
	attemptsEvery = time.Minute
)

// admit reports whether an attempt is to be written. When it is not, it is counted: sum, which is that of the minute's first attempt, gets the
// number.
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

// endAll ends the minutes of all users.
func (t *attempts) endAll() {
	t.mu.Lock()
	of := maps.Clone(t.of)
	t.mu.Unlock()
	for user, m := range of {
		m.timer.Stop()
		t.end(user, m)
	}
}
