package operate

import (
	"sync"
	"sync/atomic"
	"time"
)

// cachedList is a list for the whole broker that takes long to compute. All who ask for it at nearly the same time get the same one: pages that
// refresh themselves, and clients that poll. It must not be changed.
//
// How long a list is used depends on its length, so that computing it takes a small part of one processor however many ask: a short one is
// computed for each call, and none is older than a second. Users see the effect of their own operations at once.
type cachedList[T any] struct {
	mu      sync.Mutex
	value   T
	until   time.Time
	epoch   uint64
	forgets *time.Timer
}

const (
	// shortList: a list with fewer entries is computed for each call.
	shortList = 200
	maxAge    = time.Second
)

// get returns the list, and calls compute if there is none or it is too old. The list is used for the time each, multiplied by the number n of
// entries that compute has examined. epoch counts the operations.
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

// forget frees the memory when nobody has asked for a while.
func (s *cachedList[T]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !time.Now().Before(s.until) {
		var none T
		s.value, s.until = none, time.Time{}
	}
}
