package operate

import (
	"sync"
	"time"
)

// attempts bounds what the refused and failed attempts of a user write to the log and the audit. Whoever may do nothing could otherwise fill
// both with them, and push out what others did. The metric counts all of them.
//
// Of each user, attemptsKept are written a minute. The others of the minute are summed up in one record at its end.
type attempts struct {
	mu sync.Mutex
	of map[string]*minute // by user
}

// minute is what a user tried in one; it begins with the first attempt.
type minute struct{ written, more int }

const (
	attemptsKept  = 30
	attemptsEvery = time.Minute
)

// admit reports whether an attempt is to be written. When it is not, sum is called once, at the end of the minute, with how many were not.
func (t *attempts) admit(user string, sum func(more int)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[user]
	if m == nil {
		if t.of == nil {
			t.of = map[string]*minute{}
		}
		m = &minute{}
		t.of[user] = m
		time.AfterFunc(attemptsEvery, func() { t.end(user, sum) })
	}
	if m.written < attemptsKept {
		m.written++
		return true
	}
	m.more++
	return false
}

func (t *attempts) end(user string, sum func(more int)) {
	t.mu.Lock()
	more := t.of[user].more
	delete(t.of, user)
	t.mu.Unlock()
	if more > 0 {
		sum(more)
	}
}
