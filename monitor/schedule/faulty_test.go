package schedule

import (
	"context"
	"sync"
	"time"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// Faulty is a Store that fails, hangs or is slow on command. The zero value with
// its Store set passes everything on. Safe for concurrent use.
type Faulty struct {
	scheduler.Store

	mu     sync.Mutex
	err    error
	blind  bool
	delay  time.Duration
	healed chan struct{} // non-nil: calls wait until it is closed
	calls  int
}

// Fail makes every call from now on return err without reaching the store.
func (f *Faulty) Fail(err error) { f.set(func() { f.err, f.blind = err, false }) }

// FailAfter makes every call from now on reach the store, but return err: the reply
// is lost.
func (f *Faulty) FailAfter(err error) { f.set(func() { f.err, f.blind = err, true }) }

// Block makes calls wait for Heal or the end of their context.
func (f *Faulty) Block() {
	f.set(func() {
		if f.healed == nil {
			f.healed = make(chan struct{})
		}
	})
}

// Delay makes every call take d longer.
func (f *Faulty) Delay(d time.Duration) { f.set(func() { f.delay = d }) }

// Heal ends all faults; waiting calls go on.
func (f *Faulty) Heal() {
	f.set(func() {
		if f.healed != nil {
			close(f.healed)
		}
		f.err, f.blind, f.delay, f.healed = nil, false, 0, nil
	})
}

// Calls counts the calls begun.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *Faulty) set(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

// Do puts a call of any kind through the fault in force; a wrapper of further
// methods uses it.
func (f *Faulty) Do(ctx context.Context, call func() error) error {
	f.mu.Lock()
	f.calls++
	delay, healed := f.delay, f.healed
	f.mu.Unlock()
	if err := wait(ctx, delay, healed); err != nil {
		return err
	}
	f.mu.Lock()
	err, blind := f.err, f.blind
	f.mu.Unlock()
	if err == nil {
		return call()
	}
	if blind {
		_ = call()
	}
	return err
}

func wait(ctx context.Context, delay time.Duration, healed <-chan struct{}) error {
	if healed != nil {
		select {
		case <-healed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Apply implements scheduler.Store.
func (f *Faulty) Apply(ctx context.Context, add, remove []deadline.Ref) error {
	return f.Do(ctx, func() error { return f.Store.Apply(ctx, add, remove) })
}

// Claim implements scheduler.Store.
func (f *Faulty) Claim(ctx context.Context, until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) (claimed []deadline.Ref, next deadline.Instant, err error) {
	before := len(out)
	err = f.Do(ctx, func() (err error) {
		out, next, err = f.Store.Claim(ctx, until, max, leaseUntil, out)
		return err
	})
	if err != nil {
		return out[:before], 0, err
	}
	return out, next, nil
}

// Settle implements scheduler.Store.
func (f *Faulty) Settle(ctx context.Context, done []deadline.Ref, later []scheduler.Later) error {
	return f.Do(ctx, func() error { return f.Store.Settle(ctx, done, later) })
}

// Len implements scheduler.Store.
func (f *Faulty) Len(ctx context.Context) (n int64, err error) {
	err = f.Do(ctx, func() (err error) {
		n, err = f.Store.Len(ctx)
		return err
	})
	return n, err
}
