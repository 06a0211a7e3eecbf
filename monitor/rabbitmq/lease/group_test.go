package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

// TestGroupKnowsWhoLives: a member that leaves or stops beating is dropped with its report, and all know which queues one has let go of.
// Another virtual host, or one in another cluster, sees nothing of it.
func TestGroupKnowsWhoLives(t *testing.T) {
	r := testenv.StartRedis(t)
	at := Space{Cluster: "rabbit", VHost: "/"}
	a, b := NewGroup(r.Client, at, "left"), NewGroup(r.Client, at, "right")
	elsewhere := []*Group{NewGroup(r.Client, Space{Cluster: "rabbit", VHost: "other"}, "third"), NewGroup(r.Client, Space{Cluster: "hare", VHost: "/"}, "third")}
	see := func(g *Group, report string) View {
		v, err := g.Beat(t.Context(), report)
		require.NoError(t, err)
		return v
	}
	hold := func(g *Group) { // on a busy machine it may beat too late
		require.NoError(t, r.Client.ZIncrBy(t.Context(), g.members, 3_600_000, g.token).Err())
	}
	require.Equal(t, []string{"left"}, see(a, "").Members)
	hold(a)
	v := see(b, "right keeps q")
	hold(b)
	require.Equal(t, []string{"left", "right"}, v.Members)
	require.Equal(t, []Report{{"left", ""}}, v.Reports, "not its own")
	require.Equal(t, []Report{{"right", "right keeps q"}}, see(a, "").Reports)
	for _, g := range elsewhere {
		v := see(g, "")
		require.Equal(t, []string{"third"}, v.Members)
		require.Empty(t, v.Reports)
	}
	require.Empty(t, see(a, "").Pause)

	pause := func(g *Group, to, last Pause) {
		was, err := g.SetPause(t.Context(), to)
		require.NoError(t, err)
		require.Equal(t, last, was)
	}
	pause(a, Paused, "")
	require.Equal(t, Paused, see(b, "").Pause)
	for _, g := range elsewhere {
		require.Empty(t, see(g, "").Pause)
	}
	pause(b, Resumed, Paused)
	pause(b, Resumed, Resumed)
	require.Equal(t, Resumed, see(a, "").Pause)

	require.NoError(t, b.Leave(t.Context()))
	v = see(a, "")
	require.Equal(t, []string{"left"}, v.Members)
	require.Empty(t, v.Reports)
	see(b, "again")
	require.Eventually(t, func() bool { v = see(a, ""); return len(v.Members) == 1 }, time.Minute, 100*time.Millisecond, "b beats no more")
	require.Empty(t, v.Reports)
	for _, key := range r.Client.Keys(t.Context(), "*").Val() {
		require.Positive(t, r.Client.TTL(t.Context(), key).Val(), "%s ends by itself", key)
	}

	r.Kill()
	_, err := a.Beat(t.Context(), "")
	require.Error(t, err)
}

func TestHolderOfALease(t *testing.T) {
	r := testenv.StartRedis(t)
	a, b := New(r.Client, Space{VHost: "/"}, "q", "left"), New(r.Client, Space{VHost: "/"}, "q", "right")
	holder, err := b.Holder(t.Context())
	require.NoError(t, err)
	require.Empty(t, holder)
	_, held, err := a.Acquire(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	require.NoError(t, r.Client.Expire(t.Context(), a.key, time.Hour).Err())
	holder, err = b.Holder(t.Context())
	require.NoError(t, err)
	require.Equal(t, "left", holder)
}
