package history

import (
	"sync"
	"time"
)

// clock never goes back. It follows the wall clock forward after the machine has slept.
type clock struct {
	mu sync.Mutex
	at time.Time // the instant that it counts from
}

// jump is how far the wall clock must be ahead to be followed.
const jump = time.Minute

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.at.Add(time.Since(c.at))
	if wall := time.Now(); wall.Round(0).Sub(now.Round(0)) > jump {
		c.at = wall
		return wall
	}
	return now
}
