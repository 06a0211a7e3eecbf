package keeper

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	leaseEvery   = time.Second
	leaseTimeout = 2 * time.Second
)

// Renewal is the lease of one queue as its keeper has it. Its methods are safe for concurrent use.
type Renewal struct {
	Lease Lease // nil: none is needed
	Log   *zap.Logger

	mu     sync.Mutex
	holder string
	held   bool  // as far as is known, no other has had it since
	err    error // of the last try
}

// Show adds who has the lease.
func (r *Renewal) Show(s *Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Keeper = r.holder; r.err != nil {
		s.LeaseError = r.err.Error()
	}
}

// renew takes the lease or renews it, and reports whether it is held. A Curfew that has it and cannot ask goes on.
func (r *Renewal) renew(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	holder, held, err := r.Lease.Acquire(limited)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.err == nil && ctx.Err() == nil {
		r.Log.Warn("cannot renew the lease; a queue that is kept stays kept", zap.Error(err))
	}
	if r.err = err; err == nil {
		r.holder, r.held = holder, held
	}
	return r.held
}

// Await waits until the lease is held, and reports whether another Curfew had it until now. waits is told why, each second. ok false: ctx has ended.
func (r *Renewal) Await(ctx context.Context, waits func(reason string)) (waited, ok bool) {
	for r.Lease != nil && !r.renew(ctx) {
		waited = true
		r.mu.Lock()
		why := leased.text
		if r.err != nil {
			why = "no lease: " + r.err.Error()
		}
		r.mu.Unlock()
		waits(why)
		select {
		case <-ctx.Done():
			return waited, false
		case <-time.After(leaseEvery):
		}
	}
	return waited, ctx.Err() == nil
}

// Watch renews the lease each second until ctx ends or another Curfew has it: then lost is called.
func (r *Renewal) Watch(ctx context.Context, lost func()) {
	if r.Lease == nil {
		return
	}
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !r.renew(ctx) {
			lost()
			return
		}
	}
}

// Release gives the lease back.
func (r *Renewal) Release(ctx context.Context) {
	if r.Lease == nil {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	if err := r.Lease.Release(limited); err != nil {
		r.Log.Warn("cannot release the lease; it ends by itself", zap.Error(err))
	}
}
