package integration

import (
	"context"
	"sync"
	"testing"
	"time"
)

// busyMachine is held, of the tests that run beside others, by the one that keeps the machine busy.
var busyMachine sync.Mutex

// eventually polls until done says so, and fails the test with what it waited for when the limit has passed.
func eventually(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("waited %v for %s", limit, what)
		}
	}
}
