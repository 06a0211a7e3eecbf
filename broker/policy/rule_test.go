package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	endless = `^(?=(a+)+$)(a+)+$` // for longName: more than NameSteps
	dear    = `(?=a)(a|a)*b`      // for longName: some 80,000
)

func longName(i int) string { return fmt.Sprintf("%s-%d", strings.Repeat("a", 180), i) }

func longNames(n int) (things []Thing) {
	for i := range n {
		things = append(things, Thing{Class: ClassicQueue, Name: longName(i)})
	}
	return things
}

func setOf(t *testing.T, policies ...Policy) (s Set) {
	for _, p := range policies {
		s = s.With(checked(t, p))
	}
	return s
}

func TestRuleRefusesWhatTakesTooLong(t *testing.T) {
	var spent [2]int
	err := Rule([2]Set{User: setOf(t, Policy{Name: "p", Pattern: endless})}, longNames(1), &spent, Budget)
	require.Equal(t, &TooSlow{User, "p", longName(0)}, err)

	sets := [2]Set{User: setOf(t, Policy{Name: "p", Pattern: dear}), Operator: setOf(t, Policy{Name: "o", Pattern: dear})}
	few, many := longNames(10), longNames(40)
	spent = [2]int{}
	require.NoError(t, Rule(sets, few, &spent, Budget))
	require.Equal(t, spent[User], spent[Operator], "each kind has a budget of its own")
	require.Equal(t, spent[User], 10*few[0].Steps[User])
	require.Greater(t, few[0].Steps[User], Budget/40)
	spent = [2]int{}
	require.Equal(t, &TooSlow{User, "p", ""}, Rule(sets, many, &spent, Budget))
	spent = [2]int{}
	require.NoError(t, Rule(sets, many, &spent, Unbounded))
	for i := range many {
		many[i].Free = true
	}
	spent = [2]int{}
	require.NoError(t, Rule(sets, many, &spent, Budget), "free things take nothing")
	require.Zero(t, spent)
}

// TestRuleKeepsVerdicts: what is known is not matched again.
func TestRuleKeepsVerdicts(t *testing.T) {
	things := longNames(1)
	var spent [2]int
	require.NoError(t, Rule([2]Set{User: setOf(t, Policy{Name: "p", Pattern: dear})}, things, &spent, Budget))
	require.Len(t, things[0].Verdicts, 1)
	require.Nil(t, things[0].Policies[User])
	things[0].Verdicts = []Verdict{{dear, things[0].Verdicts[0].Steps, true}} // as only a kept one can be
	again := setOf(t, Policy{Name: "other", Pattern: dear, Priority: 3}, Policy{Name: "cheap", Pattern: "a"})
	require.NoError(t, Rule([2]Set{User: again}, things, &spent, Budget))
	require.Equal(t, "other", things[0].Policies[User].Name)
	require.Len(t, things[0].Verdicts, 1, "what costs nothing is not kept")
	require.NoError(t, Rule([2]Set{}, things, &spent, Budget))
	require.Empty(t, things[0].Verdicts, "nor what no policy asks any more")
}

// TestRuleDoesNotDependOnOtherPolicies: that one counts before it saves a policy
// nothing, so that none takes too long when another goes.
func TestRuleDoesNotDependOnOtherPolicies(t *testing.T) {
	sets := [2]Set{User: setOf(t, Policy{Name: "first", Pattern: "", Priority: 9}, Policy{Name: "p", Pattern: endless})}
	var spent [2]int
	require.Error(t, Rule(sets, longNames(1), &spent, Budget))
	require.NoError(t, Rule(sets, []Thing{{Class: ClassicQueue, Name: "aaa"}}, &spent, Budget))
}

// TestRuleSaved: which saved policies are in force does not depend on the order of
// names, and what one of them takes leaves nothing to those after it but what is cheap.
func TestRuleSaved(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		sets := [2]Set{
			User: setOf(t, Policy{Name: "high", Pattern: dear + "x", Priority: 9}, Policy{Name: "endless", Pattern: endless, Priority: 8},
				Policy{Name: "low", Pattern: dear, Priority: 1}, Policy{Name: "cheap", Pattern: "^(?!x)"}),
			Operator: setOf(t, Policy{Name: "o", Pattern: dear}),
		}
		things := longNames(16)
		rng.Shuffle(len(things), func(i, j int) { things[i], things[j] = things[j], things[i] })
		var spent [2]int
		RuleSaved(&sets, things, &spent)
		var idle []string
		for _, p := range slices.Concat(sets[User], sets[Operator]) {
			if p.NotInForce != "" {
				idle = append(idle, p.Name)
			}
		}
		require.Equal(t, []string{"endless", "low"}, idle)
		for i := range things {
			require.Equal(t, "cheap", things[i].Policies[User].Name)
		}
	}
}
