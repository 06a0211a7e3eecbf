package testenv

import (
	"fmt"
	"testing"
	"time"
)

// Check fails the test if there is an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually polls until done returns true, and fails the test with what it waited for when the limit has passed. The longer it has waited, the less often
// it asks: what a test waits for needs the processors more than the questions do.
func Eventually(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	began := time.Now()
	for !done() {
		waited := time.Since(began)
		if waited > limit {
			t.Fatalf("waited %v for %s", limit, what)
		}
		<-time.After(min(max(waited/10, 5*time.Millisecond), 100*time.Millisecond))
	}
}

// Poll is Eventually for what no single test owns. Errors: done's, or that the limit has passed.
func Poll(limit time.Duration, done func() (bool, error)) error {
	over := time.After(limit)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-over:
			return fmt.Errorf("not ready within %v", limit)
		}
	}
}
