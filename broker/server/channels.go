package server

import (
	"cmp"
	"slices"
	"sync"
)

// channelTable holds the open channels of a connection by number. Only the reader may change
// it, and read open without the lock; any goroutine may call list and count. mu is a leaf lock.
type channelTable struct {
	mu   sync.Mutex // held by the reader to change open, by others to read it
	open map[uint16]*channel
}

func (t *channelTable) add(ch *channel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[ch.id] = ch
}

func (t *channelTable) remove(ch *channel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, ch.id)
}

// clear removes all channels and returns their number.
func (t *channelTable) clear() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = len(t.open)
	clear(t.open)
	return n
}

func (t *channelTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// list returns the channels, ordered by number.
func (t *channelTable) list() []*channel {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*channel, 0, len(t.open))
	for _, ch := range t.open {
		all = append(all, ch)
	}
	slices.SortFunc(all, func(x, y *channel) int { return cmp.Compare(x.id, y.id) })
	return all
}

// consume reports whether any channel has consumers. Only the reader may call it.
func (t *channelTable) consume() bool {
	for _, ch := range t.open {
		if ch.deliveries.Consumers() > 0 {
			return true
		}
	}
	return false
}
