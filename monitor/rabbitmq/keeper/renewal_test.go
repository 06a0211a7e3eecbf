package keeper

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// answers is a lease that is asked once a second, and answers what is next: "other" or "here" has it, or it fails.
type answers []string

func (a *answers) Acquire(context.Context) (holder string, held bool, err error) {
	answer := (*a)[0]
	*a = (*a)[1:]
	if answer == "fails" {
		return "", false, errors.New("no answer")
	}
	return answer, answer == "here", nil
}

func (*answers) Release(context.Context) error { return nil }

// TestRenewal: whoever had the lease and cannot ask goes on, and whoever had not waits.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Renewal{Lease: &answers{"fails", "other", "here", "here", "fails", "here", "other"}, Log: zap.NewNop()}
		var why []string
		waited, ok := r.Await(t.Context(), func(reason string) { why = append(why, reason) })
		require.True(t, ok)
		require.True(t, waited)
		require.Equal(t, []string{"no lease: no answer", "another Curfew keeps it"}, why)
		began := time.Now()
		lost := false
		r.Watch(t.Context(), func() { lost = true })
		require.True(t, lost)
		require.Equal(t, 4*time.Second, time.Since(began))
		var s Status
		r.Show(&s)
		require.Equal(t, "other", s.Keeper)

		none := &Renewal{Log: zap.NewNop()}
		waited, ok = none.Await(t.Context(), nil)
		require.True(t, ok)
		require.False(t, waited)
		none.Release(t.Context())
	})
}
