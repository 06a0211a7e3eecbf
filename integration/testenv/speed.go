package testenv

import (
	"runtime"
	"testing"
	"time"
)

// patience is how long a machine that is busy is given to be quick once.
const patience = 30 * time.Second

// took is the processor time that fn takes on its thread. Unlike elapsed time it hardly grows where others use the processor.
func took(t testing.TB, fn func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime(t)
	fn()
	return threadTime(t) - before
}

// Quick fails the test if fn, which starts no goroutines, takes more processor time than the limit each time that it is tried.
func Quick(t testing.TB, limit time.Duration, what string, fn func()) {
	t.Helper()
	least := took(t, fn)
	for began := time.Now(); least > limit && time.Since(began) < patience; {
		least = min(least, took(t, fn))
	}
	t.Logf("%s takes %v", what, least)
	if least > limit {
		t.Errorf("%s takes more than %v", what, limit)
	}
}

// InProportion fails the test if many takes more than most times the processor time of few, neither of which starts goroutines. The
// least that each takes counts. To tell what grows in proportion from what grows with the square, many is as large as it takes for the
// limit to be far from both: a cache that holds the few and not the many makes a difference, too.
func InProportion(t testing.TB, most time.Duration, what string, few, many func()) {
	t.Helper()
	short, long := took(t, few), took(t, many)
	for began := time.Now(); long > most*short && time.Since(began) < patience; {
		short, long = min(short, took(t, few)), min(long, took(t, many))
	}
	if long > most*short {
		t.Errorf("%s: few take %v, and many more than %d times as long: %v", what, short, most, long)
	}
}
