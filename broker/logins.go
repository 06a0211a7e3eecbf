package broker

import "sync/atomic"

// LoginCount counts the logins by one protocol. Safe for concurrent use.
type LoginCount struct{ succeeded, failed atomic.Uint64 }

// Note counts one, which failed if err is not nil.
func (c *LoginCount) Note(err error) {
	if err == nil {
		c.succeeded.Add(1)
	} else {
		c.failed.Add(1)
	}
}

// Read returns how many succeeded and how many failed, since the start or the last Reset.
func (c *LoginCount) Read() (succeeded, failed uint64) { return c.succeeded.Load(), c.failed.Load() }

// Reset begins to count again.
func (c *LoginCount) Reset() {
	c.succeeded.Store(0)
	c.failed.Store(0)
}
