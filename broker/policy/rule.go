package policy

import (
	"fmt"
	"math"

	"curfew/broker/pattern"
)

// Matching a pattern may take longer than anybody can wait, so it has a budget. The budget is
// in steps (package pattern), not in time: what fits on one machine fits on every machine, at
// every start.
//
// The budget is for a virtual host, not for a policy, since a start has to match them all.
// Operator policies have a budget of their own, so that nobody else can use it up. A name
// that is cheap for a pattern (pattern.Cheap) costs nothing; ordinary patterns are cheap for
// all names.
const (
	// NameSteps is the most that matching one name with one policy may take: some 2 ms.
	NameSteps = 100_000

	// Budget is the most that matching all names in a virtual host with all policies of a kind
	// may take: some 50 ms, so that nobody notices it at a start or at a change of policies.
	Budget = 2_000_000
)

// Unbounded is a budget for names and policies that were matched before.
const Unbounded = math.MaxInt

// Verdict is the result for a pattern that took long to match with a name. It is kept so that
// the two are not matched again.
type Verdict struct {
	Pattern string
	Steps   int
	Matched bool
}

// Ruling is the result of all policies for one queue or exchange.
type Ruling struct {
	Policies [2]*Policy // the policies that apply, by Kind; nil: none matches
	Verdicts []Verdict  // never changed afterwards
	Steps    [2]int     // that it takes from the budgets, by Kind
}

// Thing is a queue or exchange that policies may govern.
type Thing struct {
	Class  Class
	Name   string
	Free   bool // it takes nothing from the budget
	Ruling      // the result; before that, the verdicts that are known

	current Verdict   // of the policy being matched; without a pattern if that does not apply
	kept    []Verdict // so far
}

// TooSlow means that matching a policy with a name, or with all names, takes more steps than
// the budget has.
type TooSlow struct {
	Kind   Kind
	Policy string
	Name   string // "": all together
}

func (e *TooSlow) Error() string {
	limit, what := Budget, "the names of all queues and exchanges together, other policies included"
	if e.Name != "" {
		limit, what = NameSteps, "the name '"+e.Name+"'"
	}
	return fmt.Sprintf("pattern of policy '%s' takes too long: more than %d steps of matching for %s; "+
		"use a simpler one, without repetition inside repetition", e.Policy, limit, what)
}

// Rule finds the policies in these sets that apply to each of things. spent is what other
// names take from the budgets; Rule adds what things take. After an error, a *TooSlow, things
// and spent mean nothing.
func Rule(sets [2]Set, things []Thing, spent *[2]int, budget int) error {
	begin(things)
	for k, set := range sets {
		for _, p := range set {
			if err := p.rule(Kind(k), things, &spent[k], budget); err != nil {
				return err
			}
		}
	}
	end(things)
	return nil
}

// RuleSaved is Rule for sets that were saved under other rules: a policy that takes too long
// is replaced by one that is not in force. Policies with precedence are tried first; the
// steps of one that fails count as spent.
func RuleSaved(sets *[2]Set, things []Thing, spent *[2]int) {
	begin(things)
	for k := range sets {
		for i, p := range sets[k] {
			if err := p.rule(Kind(k), things, &spent[k], Budget); err != nil {
				idle := *p
				idle.NotInForce = err.Error()
				sets[k][i] = &idle
			}
		}
	}
	end(things)
}

func begin(things []Thing) {
	for i := range things {
		t := &things[i]
		t.Policies, t.Steps, t.kept = [2]*Policy{}, [2]int{}, nil
	}
}

func end(things []Thing) {
	for i := range things {
		t := &things[i]
		t.Verdicts, t.kept = t.kept, nil
	}
}

// rule matches the policy with all things it may apply to, even if another policy takes
// precedence: so what it takes from the budget does not depend on other policies, and none
// exceeds the budget when another is deleted. The policy applies to what it matches, unless
// another already does.
func (p *Policy) rule(k Kind, things []Thing, spent *int, budget int) error {
	if p.NotInForce != "" {
		return nil
	}
	for i := range things {
		t := &things[i]
		t.current = Verdict{}
		if !p.mayApplyTo(t.Class) || t.Policies[k] != nil && p.matcher.CheapFor(t.Name) {
			continue
		}
		limit := NameSteps
		if !t.Free {
			limit = min(limit, max(pattern.Cheap, budget-*spent))
		}
		if t.current = p.match(t, limit); t.current.Steps > NameSteps {
			*spent += NameSteps
			return &TooSlow{k, p.Name, t.Name}
		}
		if t.current.Steps > pattern.Cheap && !t.Free {
			if *spent += t.current.Steps; *spent > budget {
				return &TooSlow{k, p.Name, ""}
			}
		}
	}
	for i := range things {
		things[i].apply(k, p)
	}
	return nil
}

// match matches the name, unless the result is known.
func (p *Policy) match(t *Thing, limit int) Verdict {
	for _, list := range [2][]Verdict{t.Verdicts, t.kept} {
		for _, v := range list {
			if v.Pattern == p.Pattern {
				return v
			}
		}
	}
	matched, steps := p.matcher.MatchWithin(t.Name, limit)
	return Verdict{p.Pattern, steps, matched}
}

// apply records the policy's verdict.
func (t *Thing) apply(k Kind, p *Policy) {
	v := &t.current
	if v.Steps > pattern.Cheap {
		if !t.Free {
			t.Steps[k] += v.Steps
		}
		t.kept = append(t.kept, *v)
	}
	if v.Matched && t.Policies[k] == nil {
		t.Policies[k] = p
	}
}
