package storetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// counter is a Store that counts what reaches it.
type counter struct{ calls int }

func (c *counter) Apply(context.Context, []deadline.Ref, []deadline.Ref) error {
	c.calls++
	return nil
}

func (c *counter) Claim(_ context.Context, _ deadline.Instant, _ int, _ deadline.Instant, out []deadline.Ref) ([]deadline.Ref, deadline.Instant, error) {
	c.calls++
	return append(out, deadline.Ref{Deadline: 1}), 7, nil
}

func (c *counter) Settle(context.Context, []deadline.Ref, []scheduler.Later) error {
	c.calls++
	return nil
}

func (c *counter) Len(context.Context) (int64, error) { c.calls++; return 3, nil }
func (c *counter) Close() error                       { return nil }

func TestFaulty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lost := context.Background(), errors.New("lost")
		inner := &counter{}
		f := &Faulty{Store: inner}
		claimed, next, err := f.Claim(ctx, 1, 1, 2, nil)
		require.NoError(t, err)
		require.Len(t, claimed, 1)
		require.EqualValues(t, 7, next)
		n, err := f.Len(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		require.Equal(t, 2, inner.calls)

		f.Fail(lost)
		require.ErrorIs(t, f.Apply(ctx, nil, nil), lost)
		require.Equal(t, 2, inner.calls)
		f.FailAfter(lost)
		claimed, _, err = f.Claim(ctx, 1, 1, 2, nil)
		require.ErrorIs(t, err, lost)
		require.Empty(t, claimed)
		require.Equal(t, 3, inner.calls, "the reply was lost, not the request")

		f.Heal()
		f.Delay(time.Second)
		began := time.Now()
		require.NoError(t, f.Settle(ctx, nil, nil))
		require.Equal(t, time.Second, time.Since(began))

		f.Heal()
		f.Block()
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		require.ErrorIs(t, f.Apply(short, nil, nil), context.DeadlineExceeded)
		done := make(chan error)
		go func() { done <- f.Apply(ctx, nil, nil) }()
		synctest.Wait()
		f.Heal()
		require.NoError(t, <-done)
		require.Equal(t, 5, inner.calls)
		require.Equal(t, 7, f.Calls())
	})
}
