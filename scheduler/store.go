package scheduler

import (
	"context"

	"curfew/broker/deadline"
)

// Store keeps shadows in order of their scores. A shadow's score is the instant
// from which it may be claimed: its deadline at first, then where a claim
// or Settle moves it.
//
// All methods are safe for concurrent use and keep none of the slices handed in.
// After an error nothing, a part or all of the call may have been done; every call
// may be repeated. An instant out of range is refused with an error that wraps
// ErrInstant.
type Store interface {
	// Apply puts add at their deadlines, including those that have another score, and
	// removes remove; a shadow in both is removed. Adding a shadow that is present, or
	// removing one that is absent, is not an error.
	Apply(ctx context.Context, add, remove []deadline.Ref) error

	// Claim leases shadows whose score is <= until, at most max: it moves their
	// score to leaseUntil, which must be greater, and appends them to out. Those of
	// one queue come in order of score, then deadline, then seq; shadows of other
	// queues may come between them.
	//
	// next is when to claim again: an instant <= until when there is more to claim (a store may claim less than max), or else the lowest score in the
	// store, which may be the end of a lease; 0 when the store is empty.
	//
	// With an error, claimed holds what was leased for certain, and next is meaningless.
	Claim(ctx context.Context, until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) (claimed []deadline.Ref, next deadline.Instant, err error)

	// Settle removes done, and then moves later to their At, claimed or not; a shadow
	// that is not present stays so.
	Settle(ctx context.Context, done []deadline.Ref, later []Later) error

	// Len counts the shadows, claimed ones included.
	Len(ctx context.Context) (int64, error)
}
