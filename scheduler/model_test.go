package scheduler_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// model is a Store as plain as can be: every shadow with its score.
type model map[deadline.Ref]deadline.Instant

// due returns what may be claimed, in order of score.
func (m model) due(until deadline.Instant) (due []deadline.Ref) {
	for s, at := range m {
		if at <= until {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b deadline.Ref) int {
		return cmp.Or(cmp.Compare(m[a], m[b]), a.Compare(b))
	})
	return due
}

func (m model) next() (at deadline.Instant) {
	for _, score := range m {
		if at == 0 || score < at {
			at = score
		}
	}
	return at
}

// likeModel performs random operations on a store and on the model.
func likeModel(t *testing.T, open func(t *testing.T) scheduler.Store) {
	store, ctx := open(t), context.Background()
	rapid.Check(t, func(t *rapid.T) {
		clearStore(t, store)
		m, now := model{}, deadline.Instant(startAt)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				n, err := store.Len(ctx)
				require.NoError(t, err)
				require.EqualValues(t, len(m), n)
			},
			"advance": func(t *rapid.T) { now += deadline.Instant(rapid.Int64Range(0, 20).Draw(t, "ms")) },
			"apply": func(t *rapid.T) {
				add, remove := drawShadows(t, "add"), drawShadows(t, "remove")
				require.NoError(t, store.Apply(ctx, add, remove))
				for _, s := range add {
					m[s] = s.Deadline
				}
				for _, s := range remove {
					delete(m, s)
				}
			},
			"claim": func(t *rapid.T) {
				max, leaseUntil := rapid.IntRange(0, 12).Draw(t, "max"), now+deadline.Instant(rapid.Int64Range(1, 30).Draw(t, "lease"))
				claimed, next, err := store.Claim(ctx, now, max, leaseUntil, nil)
				require.NoError(t, err)
				checkClaim(t, m, claimed, now, max)
				for _, s := range claimed {
					m[s] = leaseUntil
				}
				if first := m.next(); first == 0 || first > now || next == 0 || next > now {
					require.Equal(t, first, next)
				}
			},
			"settle": func(t *rapid.T) {
				done := drawShadows(t, "done")
				var later []scheduler.Later
				for _, s := range drawShadows(t, "later") {
					later = append(later, scheduler.Later{Ref: s, At: startAt + deadline.Instant(rapid.Int64Range(0, 100).Draw(t, "at"))})
				}
				require.NoError(t, store.Settle(ctx, done, later))
				for _, s := range done {
					delete(m, s)
				}
				for _, l := range later {
					if _, present := m[l.Ref]; present {
						m[l.Ref] = l.At
					}
				}
			},
		})
	})
}

// drawShadows draws from a few hundred shadows, so that they come up again.
func drawShadows(t *rapid.T, label string) []deadline.Ref {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deadline.Ref {
		return deadline.Ref{
			Deadline: startAt + deadline.Instant(rapid.Int64Range(0, 9).Draw(t, "deadline"))*7,
			Queue:    rapid.Uint64Range(1, 5).Draw(t, "queue"),
			Seq:      rapid.Uint64Range(1, 8).Draw(t, "seq"),
		}
	}), 0, 20).Draw(t, label)
}

// checkClaim holds a claim to its contract: as many as are due up to max, and of
// each queue the first ones, in order.
func checkClaim(t *rapid.T, m model, claimed []deadline.Ref, until deadline.Instant, max int) {
	due := m.due(until)
	require.Len(t, claimed, min(max, len(due)))
	dueOf := byQueue(due)
	for queue, got := range byQueue(claimed) {
		require.Equal(t, dueOf[queue][:len(got)], got)
	}
}

// clearStore settles whatever an earlier sequence left.
func clearStore(t *rapid.T, store scheduler.Store) {
	ctx := context.Background()
	for {
		left, _, err := store.Claim(ctx, scheduler.MaxDeadline-1, 1000, scheduler.MaxDeadline, nil)
		require.NoError(t, err)
		require.NoError(t, store.Settle(ctx, left, nil))
		if n, err := store.Len(ctx); err != nil || n == 0 {
			require.NoError(t, err)
			return
		}
	}
}
