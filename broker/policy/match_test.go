package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// matches reports whether the policy alone governs what is of the class and name.
func matches(p Policy, c Class, name string) bool { return counts(Set{&p}, c, name) != nil }

// counts is the policy of a set that counts.
func counts(s Set, c Class, name string) *Policy {
	things, spent := []Thing{{Class: c, Name: name}}, [2]int{}
	if err := Rule([2]Set{User: s}, things, &spent, Budget); err != nil {
		panic(err)
	}
	return things[0].Policies[User]
}

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
			require.Equal(t, want[c], matches(p, Class(c), "a queue"), "%s, class %d", to, c)
			require.False(t, matches(p, Class(c), "other"))
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
		require.Equal(t, c.classic, matches(p, ClassicQueue, "q"), "%v", c.definition)
		require.Equal(t, c.quorum, matches(p, QuorumQueue, "q"), "%v", c.definition)
		require.True(t, matches(p, Exchange, "q"))
	}
}

func TestSet(t *testing.T) {
	var s Set
	require.Nil(t, counts(s, ClassicQueue, "q"))
	for _, p := range []Policy{
		{Name: "b", Pattern: "q"}, {Name: "z", Pattern: "q"}, {Name: "a", Pattern: "q"},
		{Name: "low", Pattern: "q", Priority: -1}, {Name: "limited", Pattern: "q", Priority: 9, Definition: Definition{"delivery-limit": int64(5)}},
		{Name: "exchanges", Pattern: ".*", Priority: 99, ApplyTo: Exchanges},
	} {
		s = s.With(checked(t, p))
	}
	require.Equal(t, "z", counts(s, ClassicQueue, "q").Name, "of equals the last name (RabbitMQ: any), and not one that a classic queue passes over")
	require.Equal(t, "limited", counts(s, QuorumQueue, "q").Name)
	require.Equal(t, "exchanges", counts(s, Exchange, "q").Name)
	less := s.Without("z")
	require.Equal(t, "b", counts(less, ClassicQueue, "q").Name)
	require.Equal(t, "z", counts(s, ClassicQueue, "q").Name, "a set is not changed")
	more := less.With(checked(t, Policy{Name: "low", Pattern: "q", Priority: 50}))
	require.Equal(t, "low", counts(more, ClassicQueue, "q").Name, "replaced")
	require.Len(t, more, 5)
}
