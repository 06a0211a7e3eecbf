package topology

import (
	"slices"
	"sync"

	"curfew/broker/policy"
)

// sharedSettings lets queues with equal settings share one copy: most queues are declared like
// others shortly before them. Only the last few settings are remembered. Safe for concurrent use.
type sharedSettings struct {
	mu   sync.Mutex // leaf
	last []*policy.Settings
}

const settingsRemembered = 8

// share returns a pointer to equal settings, which are never changed.
func (s *sharedSettings) share(set policy.Settings) *policy.Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, known := range s.last {
		if *known == set {
			s.last[0], s.last[i] = known, s.last[0]
			return known
		}
	}
	if len(s.last) == settingsRemembered {
		s.last = s.last[:settingsRemembered-1]
	}
	added := new(policy.Settings) // &set would be allocated for known settings, too
	*added = set
	s.last = slices.Insert(s.last, 0, added)
	return added
}
