package monitor

import "sync"

const (
	// recentMost is how many entries are kept; the oldest go.
	recentMost = 256
	// recentMerge is within how many ms expiries of the same queue and fate are one entry,
	// and recentBack among how many of the last entries that is looked for.
	recentMerge = 1000
	recentBack  = 8
)

// Miss is messages of one queue that expired within a second, and met the same fate.
type Miss struct {
	At     int64  `json:"at"` // Unix ms, of the first one
	VHost  string `json:"vhost"`
	Queue  string `json:"queue"`
	Action string `json:"action"`
	Path   string `json:"path"`
	Count  int64  `json:"count"`
	// WorstMillis is how long after its deadline the latest left; Late says that some left
	// later than Options.MissThreshold, and no consumer had held them.
	WorstMillis int64 `json:"worst_ms"`
	Late        bool  `json:"late"`
}

// recent is a ring of the last misses. Safe for concurrent use.
type recent struct {
	mu   sync.Mutex
	ring [recentMost]Miss
	n    uint64 // entries ever made
}

// add takes in messages that expired, the last of them at one.At.
func (r *recent) add(one Miss) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for back := uint64(1); back <= min(r.n, recentBack); back++ {
		if r.ring[(r.n-back)%recentMost].take(&one) {
			return
		}
	}
	r.ring[r.n%recentMost] = one
	r.n++
}

// take adds o to m if they may be one entry.
func (m *Miss) take(o *Miss) bool {
	if o.At-m.At > recentMerge || m.Queue != o.Queue || m.VHost != o.VHost || m.Action != o.Action || m.Path != o.Path || m.Late != o.Late {
		return false
	}
	m.Count += o.Count
	m.WorstMillis = max(m.WorstMillis, o.WorstMillis)
	return true
}

// Missed lists the last messages that expired, the latest first. Safe for concurrent use.
func (m *Monitor) Missed() []Miss {
	r := &m.books.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := min(r.n, recentMost)
	list := make([]Miss, 0, kept)
	for back := uint64(1); back <= kept; back++ {
		list = append(list, r.ring[(r.n-back)%recentMost])
	}
	return list
}
