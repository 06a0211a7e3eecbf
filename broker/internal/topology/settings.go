package topology

import (
	"slices"
	"sync"

	"curfew/broker/internal/queueargs"
)

// settingsShared has queues of equal settings point to the same ones: most are declared like others
// shortly before. Only the last few settings are remembered. Safe for concurrent use.
type settingsShared struct {
	mu   sync.Mutex // leaf
	last []*queueargs.Settings
}

const settingsRemembered = 8

// share returns a pointer to equal settings, which nobody changes.
func (s *settingsShared) share(set queueargs.Settings) *queueargs.Settings {
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
	added := new(queueargs.Settings) // &set would be allocated for known ones, too
	*added = set
	s.last = slices.Insert(s.last, 0, added)
	return added
}
