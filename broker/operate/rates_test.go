package operate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func ratesOf(all func() map[any]counted, now func() time.Time) *Rates {
	return &Rates{all: all, now: now, courses: map[any]*course{}}
}

// TestRates: a rate compares with a sample that is 5 to 10 s old while somebody looks, whoever looks and how often.
func TestRates(t *testing.T) {
	now, published := time.Unix(1000, 0), uint64(10)
	r := ratesOf(func() map[any]counted {
		return map[any]counted{QueueKey(1): Counts{"publish": published, entered: published, "messages": published}.counted(), QueueKey(2): Counts{}.counted()}
	}, func() time.Time { return now })
	of := func(key any) Rate { return r.Of(Counts{"publish": published}, key)["publish"] }
	r.Refresh()
	require.Equal(t, Rate{}, of(QueueKey(1)), "there is nothing to compare with")
	now, published = now.Add(sampleEvery), 60
	r.Refresh()
	require.Equal(t, Rate{true, 10}, of(QueueKey(1)))
	require.Equal(t, Rate{true, 12}, of(QueueKey(3)), "it counts from 0")
	require.Equal(t, Rate{true, 10}, r.Of(Counts{"publish": published}, QueueKey(1), QueueKey(2))["publish"])
	one := &Queue{}
	one.ID, one.Stats.Published, one.Stats.Died, one.Stats.Got = 1, 55, 5, 5
	in, out := r.Flow(one)
	require.Equal(t, [2]Rate{{true, 10}, {true, 1}}, [2]Rate{in, out})
	require.Zero(t, testing.AllocsPerRun(10, func() { r.Flow(one) }))
	require.Equal(t, Rate{true, 10}, r.Change([]any{QueueKey(1)}, "messages", 60))
	require.Equal(t, Rate{true, -2}, r.Change([]any{QueueKey(1)}, "messages", 0))
	require.Equal(t, Rate{}, r.Change([]any{QueueKey(3)}, "messages", 60), "how many it had is not known")
	for range 100 { // a page that is updated every second
		now, published = now.Add(time.Second), published+7
		r.Refresh()
		rate := of(QueueKey(1))
		require.True(t, rate.Known)
	}
	require.InDelta(t, 7, of(QueueKey(1)).PerSecond, 0.01)
	now = now.Add(time.Hour)
	r.Refresh()
	require.False(t, of(QueueKey(1)).Known, "nobody looked for long: it would be the rate of an hour")
	published = 0 // it began again
	require.Zero(t, of(QueueKey(1)).PerSecond)
}

// TestTheFirstRate is known a second after somebody began to look, also if nobody had looked for long.
func TestTheFirstRate(t *testing.T) {
	now, published := time.Unix(1000, 0), uint64(0)
	r := ratesOf(func() map[any]counted { return map[any]counted{TotalKey{}: Counts{"publish": published}.counted()} }, func() time.Time { return now })
	for range 2 {
		for range 3 {
			r.Refresh()
			now, published = now.Add(time.Second), published+7
		}
		r.Refresh()
		require.Equal(t, Rate{true, 7}, r.Of(Counts{"publish": published}, TotalKey{})["publish"])
		now = now.Add(time.Hour)
	}
}
