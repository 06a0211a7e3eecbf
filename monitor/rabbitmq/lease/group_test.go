package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/scheduler/storetest"
)

// TestGroupKnowsWhoLives: a member that leaves or stops beating is dropped, and what one lets go all know.
func TestGroupKnowsWhoLives(t *testing.T) {
	r := storetest.StartRedis(t)
	a, b := NewGroup(r.Client, "/", "left"), NewGroup(r.Client, "/", "right")
	elsewhere := NewGroup(r.Client, "other", "third")
	see := func(g *Group) View {
		v, err := g.Beat(t.Context())
		require.NoError(t, err)
		return v
	}
	require.Equal(t, []string{"left"}, see(a).Members)
	require.Equal(t, []string{"left", "right"}, see(b).Members)
	require.Equal(t, []string{"third"}, see(elsewhere).Members)
	require.Empty(t, see(a).LetGo)

	require.NoError(t, a.LetGo(t.Context(), "q", "harm"))
	require.Equal(t, map[string]string{"q": "harm"}, see(b).LetGo)
	was, err := b.Allow(t.Context(), "q")
	require.NoError(t, err)
	require.True(t, was)
	was, err = b.Allow(t.Context(), "q")
	require.NoError(t, err)
	require.False(t, was)
	require.Empty(t, see(a).LetGo)

	require.NoError(t, b.Leave(t.Context()))
	require.Equal(t, []string{"left"}, see(a).Members)
	see(b)
	require.Eventually(t, func() bool { return len(see(a).Members) == 1 }, 10*time.Second, 100*time.Millisecond, "b beats no more")

	r.Kill()
	_, err = a.Beat(t.Context())
	require.Error(t, err)
}

func TestHolderOfALease(t *testing.T) {
	r := storetest.StartRedis(t)
	a, b := New(r.Client, "/", "q", "left"), New(r.Client, "/", "q", "right")
	holder, err := b.Holder(t.Context())
	require.NoError(t, err)
	require.Empty(t, holder)
	_, held, err := a.Acquire(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	holder, err = b.Holder(t.Context())
	require.NoError(t, err)
	require.Equal(t, "left", holder)
}
