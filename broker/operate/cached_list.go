package operate

import (
	"sync"
	"sync/atomic"
	"time"
)

// cachedList is a list about the whole broker that takes long to compute, for all who ask for it at nearly the same time: pages that follow what
// happens, and whoever asks again and again. Nobody may change it.
//
// How long a list is given out depends on its length, so that computing it takes a small part of one processor however many ask: a short one
// is computed for each who asks, and none is older than a second. What users do by an operation they see at once.
type cachedList[T any] struct {
	mu      sync.Mutex
	value   T
	until   time.Time
	epoch   uint64
	forgets *time.Timer
}

const (
	// shortList is how many entries are computed for each who asks.
	shortList = 200
	maxAge    = time.Second
)

// get returns the list, which compute makes if there is none or it is too old. each is how long it is given out for each of the n entries that
// compute has looked at. epoch counts the operations.
func (s *cachedList[T]) get(epoch *atomic.Uint64, each time.Duration, compute func() (value T, n int)) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := epoch.Load()
	if s.epoch == now && time.Now().Before(s.until) {
		return s.value
	}
	value, n := compute()
	if n < shortList {
		return value
	}
	s.value, s.epoch, s.until = value, now, time.Now().Add(min(time.Duration(n)*each, maxAge))
	if s.forgets == nil {
		s.forgets = time.AfterFunc(2*maxAge, s.forget)
	} else {
		s.forgets.Reset(2 * maxAge)
	}
	return value
}

// forget frees the memory while nobody asks.
func (s *cachedList[T]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !time.Now().Before(s.until) {
		var none T
		s.value, s.until = none, time.Time{}
	}
}
