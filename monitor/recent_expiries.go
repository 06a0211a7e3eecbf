package monitor

import "sync"

const (
	// recentMost is how many entries are kept; the oldest are dropped.
	recentMost = 256
	// Expiries of one queue with the same action and path are one entry if they are within
	// recentMerge ms. Only the last recentBack entries are searched for it.
	recentMerge = 1000
	recentBack  = 8
)

// RecentExpiry stands for messages of one queue that expired within a second, with the same action and path.
type RecentExpiry struct {
	At     int64  `json:"at"` // Unix ms, of the first one
	VHost  string `json:"vhost"`
	Queue  string `json:"queue"`
	Action string `json:"action"`
	Path   string `json:"path"`
	Count  int64  `json:"count"`
	// WorstMillis is the greatest lateness. Late is true if some were late (deadline.Expiry.Late).
	WorstMillis int64 `json:"worst_ms"`
	Late        bool  `json:"late"`
}

// recent is a ring of the last expiries. Safe for concurrent use.
type recent struct {
	mu   sync.Mutex
	ring [recentMost]RecentExpiry
	n    uint64 // entries ever made
}

// add adds messages that expired, the first of them at one.At.
func (r *recent) add(one RecentExpiry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for back := uint64(1); back <= min(r.n, recentBack); back++ {
		if r.ring[(r.n-back)%recentMost].merge(&one) {
			return
		}
	}
	r.ring[r.n%recentMost] = one
	r.n++
}

// merge adds o to x if they may be one entry.
func (x *RecentExpiry) merge(o *RecentExpiry) bool {
	if o.At-x.At > recentMerge || x.Queue != o.Queue || x.VHost != o.VHost || x.Action != o.Action || x.Path != o.Path || x.Late != o.Late {
		return false
	}
	x.Count += o.Count
	x.WorstMillis = max(x.WorstMillis, o.WorstMillis)
	return true
}

// RecentExpiries lists the messages that expired last, the latest first. Safe for concurrent use.
func (m *Monitor) RecentExpiries() []RecentExpiry {
	r := &m.counters.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := min(r.n, recentMost)
	list := make([]RecentExpiry, 0, kept)
	for back := uint64(1); back <= kept; back++ {
		list = append(list, r.ring[(r.n-back)%recentMost])
	}
	return list
}
