package keeper

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// unreachable are a lease and shadows that answer when ctx has ended.
type unreachable struct{ Shadows }

func (unreachable) Acquire(ctx context.Context) (string, bool, error) {
	<-ctx.Done()
	return "", false, ctx.Err()
}

func (unreachable) Release(context.Context) error { return nil }

func (unreachable) Load(ctx context.Context) ([]Shadow, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

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

// unreadable are shadows that fail.
type unreadable struct{ Shadows }

func (unreadable) Load(context.Context) ([]Shadow, error) { return nil, errors.New("no answer") }

// TestUnreadableShadows: it is told what follows.
func TestUnreadableShadows(t *testing.T) {
	core, warnings := observer.New(zap.WarnLevel)
	s := newSim(t, 1, plainFacts(cluster.Quorum), testConfig())
	k := &Keeper{core: s.c, log: zap.NewNop(), lease: &Renewal{Log: zap.New(core)}, o: Options{Shadows: unreadable{}, Now: func() deadline.Instant { return s.m.now }}}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		k.taken(t.Context(), false)
		require.GreaterOrEqual(t, time.Since(began), loadFor)
	})
	require.Equal(t, 1, warnings.Len())
	require.Contains(t, warnings.All()[0].Message, "given back in steps")
}

// failing are shadows that fail so many times.
type failing struct {
	Shadows
	times int
}

func (f *failing) Load(context.Context) ([]Shadow, error) {
	if f.times--; f.times >= 0 {
		return nil, errors.New("no answer")
	}
	return []Shadow{{Fingerprint: 1}}, nil
}

// TestShadowsAreReadAgain while the lease is held: Redis may fail over at that moment.
func TestShadowsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, warnings := observer.New(zap.WarnLevel)
		r := &Renewal{Log: zap.New(core), Lease: &answers{"here", "here", "here"}}
		require.Len(t, r.LoadShadows(t.Context(), &failing{times: 3}, "x"), 1)
		r.Lease = &answers{"here", "other"}
		require.Empty(t, r.LoadShadows(t.Context(), &failing{times: 3}, "x"), "another one has them now")
		require.Empty(t, warnings.All())
	})
}

// TestStopIsNoNews: what fails because it is to stop is neither told nor logged, and what was held is released.
func TestStopIsNoNews(t *testing.T) {
	quiet := func(run func(ctx context.Context, stop context.CancelFunc, log *zap.Logger)) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		core, warnings := observer.New(zap.WarnLevel)
		run(ctx, stop, zap.New(core))
		require.Empty(t, warnings.All())
	}
	lost := errors.New("connection closed")
	quiet(func(ctx context.Context, stop context.CancelFunc, log *zap.Logger) {
		(&Renewal{Log: log}).Run(ctx, Work{
			Taken:   func(bool) {},
			Session: func(context.Context) error { stop(); return lost },
			Lost:    func(err error) { t.Error(err) },
		})
	})
	quiet(func(ctx context.Context, stop context.CancelFunc, log *zap.Logger) {
		time.AfterFunc(time.Millisecond, stop)
		(&Renewal{Log: log, Lease: unreachable{}}).Run(ctx, Work{Waits: func(why string) { t.Error(why) }})
	})
	quiet(func(ctx context.Context, stop context.CancelFunc, log *zap.Logger) {
		stop()
		require.Empty(t, (&Renewal{Log: log}).LoadShadows(ctx, unreachable{}, ""))
	})

	s := newSim(t, 1, plainFacts(cluster.Quorum), testConfig())
	s.connect()
	s.pass(time.Second)
	s.m.publish(1, time.Hour)
	s.pass(time.Second)
	require.Equal(t, 1, s.c.status().Held)
	quiet(func(ctx context.Context, stop context.CancelFunc, log *zap.Logger) {
		var told []State
		k := &Keeper{core: s.c, log: log, lease: &Renewal{Log: log}, told: s.c.state, toldWhy: s.c.reason, o: Options{
			Connect: func(context.Context) (*cluster.Conn, error) { stop(); return nil, lost },
			Now:     func() deadline.Instant { return s.m.now },
			Changed: func(s Status) { told = append(told, s.State) },
		}}
		require.NoError(t, k.Run(ctx))
		require.Equal(t, []State{Stopped}, told)
		require.Zero(t, k.Status().Held)
	})
}
