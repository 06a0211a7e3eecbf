package load

import (
	"sync"
	"sync/atomic"
	"time"
)

// confirms follows a producer's unconfirmed publishes: a broker may confirm them one by one, in any order, and many at
// once. Of each run of publishes that one write carried the time of sending is kept, for the latency of its confirm.
type confirms struct {
	mu     sync.Mutex
	sent   []int64 // time of sending by tag & (length-1); 0: confirmed
	low    uint64  // tags up to it are confirmed
	next   uint64  // last tag sent
	nacked int
	late   Histogram
	// measuring says whether what is confirmed counts in late; nil: all of it does
	measuring *atomic.Bool
	told      func(tag uint64, at int64) // each confirmed tag; may be nil
}

func newConfirms(window int) *confirms {
	size := 1024
	for size < 8*window {
		size *= 2
	}
	return &confirms{sent: make([]int64, size)}
}

// add notes the next n publishes. The places last while full is heeded: a window is an eighth of them.
func (c *confirms) add(n int, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.next++
		c.sent[c.next&uint64(len(c.sent)-1)] = at
	}
}

// full says that one publish has been passed over by so many confirms that its place would be needed again.
func (c *confirms) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.next-c.low) > len(c.sent)/2
}

// confirm takes one basic.ack or nack and returns how many publishes it settled.
func (c *confirms) confirm(tag uint64, multiple, nack bool, at int64) (settled int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := tag
	if multiple {
		first = c.low + 1
	}
	for t := first; t <= tag; t++ {
		settled += c.one(t, at)
	}
	for c.low < c.next && c.sent[(c.low+1)&uint64(len(c.sent)-1)] == 0 {
		c.low++
	}
	if nack {
		c.nacked += settled
	}
	return settled
}

func (c *confirms) one(tag uint64, at int64) int {
	place := &c.sent[tag&uint64(len(c.sent)-1)]
	if *place == 0 {
		return 0
	}
	if c.measuring == nil || c.measuring.Load() {
		c.late.Record(time.Duration(at - *place))
	}
	*place = 0
	if c.told != nil {
		c.told(tag, at)
	}
	return 1
}
