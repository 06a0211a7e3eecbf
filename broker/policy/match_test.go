package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func checked(t *testing.T, p Policy) Policy {
	t.Helper()
	if p.Definition == nil {
		p.Definition = Definition{"max-length": int64(5)}
	}
	p, err := Check(User, p)
	require.NoError(t, err)
	return p
}

func TestApplyTo(t *testing.T) {
	for to, want := range map[string][4]bool{ // classic, quorum, stream, exchange
		All: {true, true, true, true}, Queues: {true, true, true, false}, ClassicQueues: {true, false, false, false},
		QuorumQueues: {false, true, false, false}, Streams: {false, false, true, false}, Exchanges: {false, false, false, true},
	} {
		p := checked(t, Policy{Pattern: "q", ApplyTo: to, Definition: Definition{"alternate-exchange": "x"}})
		for c := range want {
			require.Equal(t, want[c], p.governs(Class(c), "a queue"), "%s, class %d", to, c)
			require.False(t, p.governs(Class(c), "other"))
		}
	}
}

// TestKeysOfOtherTypes: as in RabbitMQ 3.10.8, a key that a queue type does not have keeps the whole policy from it.
func TestKeysOfOtherTypes(t *testing.T) {
	for _, c := range []struct {
		definition      Definition
		classic, quorum bool
	}{
		{Definition{"delivery-limit": int64(5), "max-length": int64(5)}, false, true},
		{Definition{"queue-mode": "lazy", "max-length": int64(5)}, true, false},
		{Definition{"dead-letter-strategy": "at-least-once"}, false, true},
		{Definition{"max-in-memory-length": int64(5)}, true, true},
		{Definition{"queue-version": int64(2)}, true, true},
		{Definition{"alternate-exchange": "x"}, true, true},
		{Definition{"ha-mode": "all"}, true, false},
	} {
		p := checked(t, Policy{Pattern: "q", Definition: c.definition})
		require.Equal(t, c.classic, p.governs(ClassicQueue, "q"), "%v", c.definition)
		require.Equal(t, c.quorum, p.governs(QuorumQueue, "q"), "%v", c.definition)
		require.True(t, p.governs(Exchange, "q"))
	}
}

func TestSet(t *testing.T) {
	var s Set
	require.Nil(t, s.Governing(ClassicQueue, "q"))
	for _, p := range []Policy{
		{Name: "b", Pattern: "q"}, {Name: "z", Pattern: "q"}, {Name: "a", Pattern: "q"},
		{Name: "low", Pattern: "q", Priority: -1}, {Name: "limited", Pattern: "q", Priority: 9, Definition: Definition{"delivery-limit": int64(5)}},
		{Name: "exchanges", Pattern: ".*", Priority: 99, ApplyTo: Exchanges},
	} {
		s = s.With(checked(t, p))
	}
	require.Equal(t, "z", s.Governing(ClassicQueue, "q").Name, "of equals the last name (RabbitMQ: any), and not one that a classic queue passes over")
	require.Equal(t, "limited", s.Governing(QuorumQueue, "q").Name)
	require.Equal(t, "exchanges", s.Governing(Exchange, "q").Name)
	less := s.Without("z")
	require.Equal(t, "b", less.Governing(ClassicQueue, "q").Name)
	require.Equal(t, "z", s.Governing(ClassicQueue, "q").Name, "a set is not changed")
	more := less.With(checked(t, Policy{Name: "low", Pattern: "q", Priority: 50}))
	require.Equal(t, "low", more.Governing(ClassicQueue, "q").Name, "replaced")
	require.Len(t, more, 5)
}

// TestEachNameIsMatchedOnce: what a change costs does not depend on the policies that stay.
func TestEachNameIsMatchedOnce(t *testing.T) {
	const names = 500
	var all Set
	for i := range 100 {
		all = all.With(checked(t, Policy{Name: fmt.Sprint(i), Pattern: fmt.Sprintf(`^(?!x)q-.*%d$`, i), Priority: int64(i % 7)}))
	}
	was := make([]*Policy, names)
	govern := func(from, to Set) (matches int) {
		c := NewChange(from, to)
		for i := range was {
			was[i] = c.Governing(was[i], ClassicQueue, fmt.Sprintf("q-%03d", i))
			require.Same(t, to.Governing(ClassicQueue, fmt.Sprintf("q-%03d", i)), was[i])
		}
		return c.matches
	}
	govern(nil, all)
	for name, priority := range map[string]int64{"new": 0, "low": -1, "high": 9, "50": 3, "3": 9} {
		with := all.With(checked(t, Policy{Name: name, Pattern: "^q-4[0-9]7$", Priority: priority}))
		governed := 0
		for i := range was {
			if was[i] != nil && was[i].Name == name {
				governed++
			}
		}
		require.LessOrEqual(t, govern(all, with), names+governed*len(all), "set %s: only names that it governed are matched with others", name)
		require.LessOrEqual(t, govern(with, all), names+10*len(all), "put back %s", name)
	}
	require.Zero(t, govern(all, all.Without("none")))
}

// TestChangesAgainstModel: after any changes each name has the policy that it would have at a start.
func TestChangesAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	names := []string{"a", "b", "ab", "ba", "abc", "orders.eu", "orders.dead"}
	patterns := []string{"a", "^b", "", "^(?!a)", `^orders\.(?!dead$)`, "c$", "nothing"}
	for range 200 {
		var s Set
		was := make([]*Policy, len(names))
		for range 30 {
			next := s
			for range 1 + rng.IntN(3) {
				if name := fmt.Sprint(rng.IntN(6)); rng.IntN(3) == 0 {
					next = next.Without(name)
				} else {
					next = next.With(checked(t, Policy{Name: name, Pattern: patterns[rng.IntN(len(patterns))], Priority: int64(rng.IntN(3))}))
				}
			}
			require.True(t, slices.IsSortedFunc(next, compare))
			c := NewChange(s, next)
			for i, name := range names {
				was[i] = c.Governing(was[i], QuorumQueue, name)
				require.Same(t, next.Governing(QuorumQueue, name), was[i])
			}
			s = next
		}
	}
}
