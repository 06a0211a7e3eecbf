package history

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
	Lost      Rule = "lost"      // a confirmed persistent message is gone without an end
	Invented  Rule = "invented"  // delivered but never published
	Altered   Rule = "altered"   // delivered with another body or other properties
	Misplaced Rule = "misplaced" // in a queue it was not published to, or a dead letter for a reason that did not exist
	Early     Rule = "early"     // expired before its deadline
	Late      Rule = "late"      // delivered to a consumer that came after its deadline
	Held      Rule = "held"      // delivered again while a consumer held it
	Twice     Rule = "twice"     // in two places, or delivered after its end, within one life
	Durable   Rule = "durable"   // delivered in a later life, although its end was durable
	Order     Rule = "order"     // delivered before an older message of the same publisher and queue
	Flag      Rule = "flag"      // delivered again but not marked redelivered
)

// Violation is one broken rule.
type Violation struct {
	Rule Rule
	Line int // of the log
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("line %d: %s: %s", v.Line, v.Rule, v.Text) }

// Report is the result of Check.
type Report struct {
	Lines, Lives, Kills    int
	Published, Confirmed   int // messages
	Refused                int
	Copies                 int            // messages times queues
	Ends                   map[string]int // of copies: acked, dead-lettered with its reason, ...
	Unpromised             int            // lost copies that may be lost: transient, not confirmed, or of a queue that was purged or deleted
	Delivered, Redelivered int
	Durable                int // ends that were known to be durable before the process was killed
	CameBack               int // copies whose end was not durable, and was undone
	Drained                bool
	Violations             []Violation

	byRule  map[Rule]int
	omitted int // violations that were not stored
}

// maxViolations is how many violations of one rule are stored.
const maxViolations = 20

func (r *Report) violate(rule Rule, line int, format string, args ...any) {
	if r.byRule[rule]++; r.byRule[rule] > maxViolations {
		r.omitted++
		return
	}
	r.Violations = append(r.Violations, Violation{Rule: rule, Line: line, Text: fmt.Sprintf(format, args...)})
}

// OK reports whether no rule is broken.
func (r *Report) OK() bool { return len(r.Violations) == 0 }

// Broken returns the number of violations of a rule, including those that were not stored.
func (r *Report) Broken(rule Rule) int { return r.byRule[rule] }

// Write writes the report for people.
func (r *Report) Write(w io.Writer) {
	fmt.Fprintf(w, "%d lines, %d lives, %d of them killed\n", r.Lines, r.Lives, r.Kills)
	fmt.Fprintf(w, "messages: %d published, %d confirmed, %d refused; %d copies\n", r.Published, r.Confirmed, r.Refused, r.Copies)
	fmt.Fprintf(w, "deliveries: %d, of them %d redelivered\n", r.Delivered, r.Redelivered)
	for _, how := range slices.Sorted(maps.Keys(r.Ends)) {
		fmt.Fprintf(w, "  %7d %s\n", r.Ends[how], how)
	}
	fmt.Fprintf(w, "  %7d gone, of which nothing was promised (transient, not confirmed, purged or deleted)\n", r.Unpromised)
	fmt.Fprintf(w, "ends known to be durable before a kill: %d; undone by a kill: %d\n", r.Durable, r.CameBack)
	if !r.Drained {
		fmt.Fprintln(w, "not drained at the end: what is missing is unknown")
	}
	for _, v := range r.Violations {
		fmt.Fprintln(w, v)
	}
	if r.omitted > 0 {
		fmt.Fprintf(w, "and %d more of the same\n", r.omitted)
	}
	if r.OK() {
		fmt.Fprintln(w, "no rule is broken")
	}
}
