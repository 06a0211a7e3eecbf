package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// looked is a queue that a test changes, with a look at it each second.
type looked struct {
	Waits
	WaitLook
}

func (l *looked) seconds(n int, change func()) {
	for range n {
		l.Now += second
		change()
		l.Observe(l.WaitLook)
	}
}

// waits keeps the head that old.
func (l *looked) waits(seconds int64) { l.Head = l.Now - deadline.Instant(seconds*second) }

func objective(t *testing.T, text string) deadline.Objective {
	o, err := deadline.ParseObjective(text)
	require.NoError(t, err)
	return o
}

// TestWaits: a queue that is consumed at once, one that lags by a minute, one that nobody consumes, and one whose messages expire.
func TestWaits(t *testing.T) {
	within30 := objective(t, "99% within 30s")
	quick := looked{WaitLook: WaitLook{Now: 3600 * second, Objective: within30}}
	quick.seconds(60, func() { quick.Delivered += 100 })
	require.Equal(t, deadline.Wait{P50: 1000, P99: 1000, Objective: within30}, quick.Wait())

	slow := looked{WaitLook: WaitLook{Now: 3600 * second, Ready: 6000, Objective: within30}}
	slow.seconds(120, func() { slow.Delivered += 100; slow.waits(60) })
	is := slow.Wait()
	require.Equal(t, deadline.Millis(60_000), is.Oldest)
	require.InDelta(t, 60_000, float64(is.P50), 31_000)
	require.InDelta(t, 60_000, float64(is.P99), 31_000)
	require.InDelta(t, 100, is.Burn, 0.1)
	require.True(t, is.Burns)
	slow.seconds(60*6, func() { slow.Delivered += 100; slow.waits(0) })
	require.False(t, slow.Wait().Burns, "it is over when the last minutes are well")

	stuck := looked{WaitLook: WaitLook{Now: 3600 * second, Ready: 10, Objective: within30}}
	stuck.waits(0)
	stuck.seconds(29, func() {})
	require.False(t, stuck.Wait().Burns)
	require.Zero(t, stuck.Wait().P50, "nothing was consumed, which is not to say quickly")
	stuck.seconds(2, func() { stuck.Over = 10 })
	require.True(t, stuck.Wait().Burns, "what waits too long counts before it is consumed")
	stuck.seconds(1, func() { stuck.Over, stuck.Ready, stuck.Head = 0, 0, 0 })
	require.False(t, stuck.Wait().Burns, "a purge")

	dying := looked{WaitLook: WaitLook{Now: 3600 * second, Objective: within30}}
	dying.seconds(60, func() { dying.Delivered += 80; dying.Expired += 20 })
	require.InDelta(t, 0.2, dying.Wait().Missed, 0.001)
	require.True(t, dying.Wait().Burns)

	half := objective(t, "50% within 1s")
	lax := looked{WaitLook: WaitLook{Now: 3600 * second, Objective: half}}
	lax.seconds(60, func() { lax.Delivered += 40; lax.Expired += 60 })
	require.False(t, lax.Wait().Burns)
	lax.seconds(360, func() { lax.Expired += 60 })
	require.True(t, lax.Wait().Burns, "an objective that allows much can be missed, too")
}
