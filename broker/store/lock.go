//go:build !schedule

package store

import "sync"

// The locks of a store, and resumed, which a goroutine of the store calls when it starts and
// after it has waited for a channel, are where lock_test.go takes over: with the build tag
// schedule, a test decides which goroutine runs from one of these points to the next.
type (
	mutex = sync.Mutex
	cond  = sync.Cond
)

func resumed() {}
