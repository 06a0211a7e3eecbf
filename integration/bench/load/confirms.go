package load

import (
	"sync"
	"sync/atomic"
	"time"
)

// confirms tracks a producer's unconfirmed publishes. A broker may confirm them one by one,
// in any order, or many at once. For each run of publishes in one write it keeps the time
// of sending, for the latency of the confirm.
type confirms struct {
	mu     sync.Mutex
	sent   []int64 // time of sending, by tag & (length-1); 0: confirmed
	low    uint64  // all tags up to it are confirmed
	next   uint64  // last tag sent
	nacked int
	delays Histogram
	// measuring reports whether confirms count in delays; nil: all of them do
	measuring *atomic.Bool
	onConfirm func(tag uint64, at int64) // called for each confirmed tag; may be nil
}

func newConfirms(window int) *confirms {
	size := 1024
	for size < 8*window {
		size *= 2
	}
	return &confirms{sent: make([]int64, size)}
}

// add records the next n publishes. There is room for them if the caller waits while full
// is true: a window is an eighth of the room.
func (c *confirms) add(n int, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.next++
		c.sent[c.next&uint64(len(c.sent)-1)] = at
	}
}

// full reports whether the next publish would need the place of one that is not confirmed
// yet, since many later ones were confirmed before it.
func (c *confirms) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.next-c.low) > len(c.sent)/2
}

// confirm handles one basic.ack or nack and returns how many publishes it settled.
func (c *confirms) confirm(tag uint64, multiple, nack bool, at int64) (settled int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := tag
	if multiple {
		first = c.low + 1
	}
	for t := first; t <= tag; t++ {
		settled += c.confirmOne(t, at)
	}
	for c.low < c.next && c.sent[(c.low+1)&uint64(len(c.sent)-1)] == 0 {
		c.low++
	}
	if nack {
		c.nacked += settled
	}
	return settled
}

func (c *confirms) confirmOne(tag uint64, at int64) int {
	place := &c.sent[tag&uint64(len(c.sent)-1)]
	if *place == 0 {
		return 0
	}
	if c.measuring == nil || c.measuring.Load() {
		c.delays.Record(time.Duration(at - *place))
	}
	*place = 0
	if c.onConfirm != nil {
		c.onConfirm(tag, at)
	}
	return 1
}
