package policy

import (
	"fmt"
	"math"

	"curfew/broker/pattern"
)

// A pattern may take longer for a name than anybody can wait, so matching has a budget. It
// is in steps (package pattern) and not in time: what fits on one machine fits on every
// machine, at every start.
//
// The budget is for a virtual host, not for a policy, as a start has to match them all.
// Operator policies have a budget of their own, so that nobody else can use it up. A name
// that is cheap for a pattern (pattern.Cheap) costs nothing; ordinary patterns are cheap for
// all names.
const (
	// NameSteps is the most that one name may take of one policy: some 2 ms.
	NameSteps = 100_000

	// Budget is the most that all names in a virtual host may take of all policies
	// of a kind together: some 50 ms, so that nobody notices it in a start or in a change
	// of policies.
	Budget = 2_000_000
)

// Unbounded is a budget for what has been matched before.
const Unbounded = math.MaxInt

// Verdict is kept of a name that a pattern took long for, so that it is not matched
// with it twice.
type Verdict struct {
	Pattern string
	Steps   int
	Matched bool
}

// Ruling is what policies say of one queue or exchange.
type Ruling struct {
	Policies [2]*Policy // that count, by Kind; nil: none matches
	Verdicts []Verdict  // not changed afterwards
	Steps    [2]int     // what it takes of the budgets
}

// Thing is a queue or exchange that policies may govern.
type Thing struct {
	Class  Class
	Name   string
	Free   bool // it takes nothing of the budget
	Ruling      // before: the verdicts known

	asked Verdict   // by the policy at hand; without a pattern if that is silent about it
	kept  []Verdict // so far
}

// TooDear says that a policy cannot be matched with a name, or with all of them, in
// the steps there are.
type TooDear struct {
	Kind   Kind
	Policy string
	Name   string // "": all together
}

func (e *TooDear) Error() string {
	limit, what := Budget, "the names of all queues and exchanges together, other policies included"
	if e.Name != "" {
		limit, what = NameSteps, "the name '"+e.Name+"'"
	}
	return fmt.Sprintf("pattern of policy '%s' takes too long: more than %d steps of matching for %s; "+
		"use a simpler one, without repetition inside repetition", e.Policy, limit, what)
}

// Rule finds what governs things under these sets. spent is what other names take of
// the budgets; what things take is added. With an error, a *TooDear, things and spent
// mean nothing.
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

// RuleSaved is Rule for sets that were saved when other rules held: a policy that
// takes too long is replaced by one that is not in force. Of several those that count
// first are tried first; what one takes that fails is spent.
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

// rule has the policy match all it speaks of, whether or not another counts before it:
// so what it takes of the budget depends on no other policy, and none falls out of it
// when another goes. It counts for what it matches and nothing counts for yet.
func (p *Policy) rule(k Kind, things []Thing, spent *int, budget int) error {
	if p.NotInForce != "" {
		return nil
	}
	for i := range things {
		t := &things[i]
		t.asked = Verdict{}
		if !p.speaksOf(t.Class) || t.Policies[k] != nil && p.matcher.CheapFor(t.Name) {
			continue
		}
		limit := NameSteps
		if !t.Free {
			limit = min(limit, max(pattern.Cheap, budget-*spent))
		}
		if t.asked = p.ask(t, limit); t.asked.Steps > NameSteps {
			*spent += NameSteps
			return &TooDear{k, p.Name, t.Name}
		}
		if t.asked.Steps > pattern.Cheap && !t.Free {
			if *spent += t.asked.Steps; *spent > budget {
				return &TooDear{k, p.Name, ""}
			}
		}
	}
	for i := range things {
		things[i].settle(k, p)
	}
	return nil
}

// ask matches the name, unless that is known.
func (p *Policy) ask(t *Thing, limit int) Verdict {
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

// settle keeps what the policy said.
func (t *Thing) settle(k Kind, p *Policy) {
	v := &t.asked
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
