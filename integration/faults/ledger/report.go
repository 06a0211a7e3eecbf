package ledger

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Rule is a promise of a broker.
type Rule string

// The rules.
const (
	Lost      Rule = "lost"      // a confirmed persistent message ended in no way, and is not there
	Invented  Rule = "invented"  // delivered, and never published
	Altered   Rule = "altered"   // delivered with another body or other properties
	Misplaced Rule = "misplaced" // in a queue it was not published to, or dead for a reason that was not there
	Early     Rule = "early"     // expired before its deadline
	Late      Rule = "late"      // delivered to a consumer that came after its deadline
	Held      Rule = "held"      // taken from the consumer that held it
	Twice     Rule = "twice"     // in two places, or back after its end, within one life
	Durable   Rule = "durable"   // back in a later life, though its end had been made durable
	Order     Rule = "order"     // delivered before an older one of its publisher and queue
	Flag      Rule = "flag"      // delivered again and not marked redelivered
)

// Violation is one broken rule.
type Violation struct {
	Rule Rule
	Line int // of the log
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("line %d: %s: %s", v.Line, v.Rule, v.Text) }

// Report is what Check found.
type Report struct {
	Lines, Lives, Kills    int
	Published, Confirmed   int // messages
	Refused                int
	Copies                 int            // messages times queues
	Ends                   map[string]int // of copies: acked, dead-lettered and why, ...
	Unpromised             int            // copies that are gone and may be: transient, or not confirmed
	Delivered, Redelivered int
	Durable                int // ends known to be durable before their process was killed
	CameBack               int // copies whose end was not, and was undone
	Drained                bool
	Violations             []Violation

	byRule  map[Rule]int
	leftOut int // violations not kept
}

// keepViolations is how many violations of one rule are kept.
const keepViolations = 20

func (r *Report) violate(rule Rule, line int, format string, args ...any) {
	if r.byRule[rule]++; r.byRule[rule] > keepViolations {
		r.leftOut++
		return
	}
	r.Violations = append(r.Violations, Violation{Rule: rule, Line: line, Text: fmt.Sprintf(format, args...)})
}

// OK reports whether no rule is broken.
func (r *Report) OK() bool { return len(r.Violations) == 0 }

// Broken counts the violations of a rule, those not kept included.
func (r *Report) Broken(rule Rule) int { return r.byRule[rule] }

// Write writes the report for people.
func (r *Report) Write(w io.Writer) {
	fmt.Fprintf(w, "%d lines, %d lives, %d of them killed\n", r.Lines, r.Lives, r.Kills)
	fmt.Fprintf(w, "messages: %d published, %d confirmed, %d refused; %d copies\n", r.Published, r.Confirmed, r.Refused, r.Copies)
	fmt.Fprintf(w, "deliveries: %d, of them %d redelivered\n", r.Delivered, r.Redelivered)
	for _, how := range slices.Sorted(maps.Keys(r.Ends)) {
		fmt.Fprintf(w, "  %7d %s\n", r.Ends[how], how)
	}
	fmt.Fprintf(w, "  %7d gone, of which nothing was promised (transient, or not confirmed)\n", r.Unpromised)
	fmt.Fprintf(w, "ends known to be durable before a kill: %d; undone by a kill: %d\n", r.Durable, r.CameBack)
	if !r.Drained {
		fmt.Fprintln(w, "not drained at the end: what is missing cannot be told")
	}
	for _, v := range r.Violations {
		fmt.Fprintln(w, v)
	}
	if r.leftOut > 0 {
		fmt.Fprintf(w, "and %d more of the same\n", r.leftOut)
	}
	if r.OK() {
		fmt.Fprintln(w, "no rule is broken")
	}
}
