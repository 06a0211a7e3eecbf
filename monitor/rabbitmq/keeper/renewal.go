package keeper

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

const (
	leaseEvery   = time.Second
	leaseTimeout = 2 * time.Second
	loadTimeout  = 5 * time.Second
	loadFor      = time.Minute // Redis may be failing over
	firstWait    = 50 * time.Millisecond
	lastWait     = 2 * time.Second
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

// renew takes the lease or renews it, and reports whether it is held. An instance that has it and cannot ask goes on.
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

// Work is what is done with a lease.
type Work struct {
	Waits   func(reason string)         // another Curfew has it; each second
	Taken   func(waited bool)           // it was taken for the first time, or after another Curfew had it
	Session func(context.Context) error // one connection. nil: ctx has ended, or another Curfew has the lease
	Lost    func(error)                 // the connection, while ctx has not ended
}

// Run has one session after another while the lease is held, until ctx ends. What is lost with ctx is no news: nobody is told.
func (r *Renewal) Run(ctx context.Context, w Work) {
	for wait, first := firstWait, true; ; first = false {
		waited, ok := r.Await(ctx, w.Waits)
		if !ok {
			return
		}
		if first || waited {
			w.Taken(waited)
		}
		began := time.Now()
		err := w.Session(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		w.Lost(err)
		r.Log.Warn("connection lost, the queue has its messages again", zap.String("error", cluster.Words(err)))
		if time.Since(began) > lastWait {
			wait = firstWait
		}
		deadline.Sleep(ctx, wait)
		wait = min(2*wait, lastWait)
	}
}

// LoadShadows returns what is remembered; nil has nothing. It tries for loadFor, unless another Curfew has the lease by then. otherwise says what follows if that
// cannot be read.
func (r *Renewal) LoadShadows(ctx context.Context, from Shadows, otherwise string) []Shadow {
	if from == nil {
		return nil
	}
	for until := time.Now().Add(loadFor); ; {
		limited, cancel := context.WithTimeout(ctx, loadTimeout)
		shadows, err := from.Load(limited)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil, r.Lease != nil && !r.renew(ctx):
			return shadows
		case time.Now().After(until):
			r.Log.Warn("cannot read the deadlines that other Curfews knew: "+otherwise, zap.Error(err))
			return nil
		}
		deadline.Sleep(ctx, leaseEvery)
	}
}

// Await waits until the lease is held, and reports whether another Curfew had it until now. waits is told why, each second. ok false: ctx has ended.
func (r *Renewal) Await(ctx context.Context, waits func(reason string)) (waited, ok bool) {
	for r.Lease != nil && !r.renew(ctx) && ctx.Err() == nil {
		waited = true
		r.mu.Lock()
		why := leased.text
		if r.err != nil {
			why = "no lease: " + r.err.Error()
		}
		r.mu.Unlock()
		waits(why)
		deadline.Sleep(ctx, leaseEvery)
	}
	return waited, ctx.Err() == nil
}

// Watch renews the lease each second until ctx ends or another Curfew has it: then lost is called.
func (r *Renewal) Watch(ctx context.Context, lost func()) {
	if r.Lease == nil {
		return
	}
	for deadline.Sleep(ctx, leaseEvery) {
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
