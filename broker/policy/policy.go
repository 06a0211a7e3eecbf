package policy

import (
	"maps"
	"slices"
	"strings"
)

// Kind tells policies from operator policies.
type Kind uint8

const (
	// User policies are set by whoever manages a virtual host.
	User Kind = iota
	// Operator policies are set by whoever runs the broker, and bound the others.
	Operator
)

// String is the component RabbitMQ stores the kind under.
func (k Kind) String() string { return [...]string{"policy", "operator_policy"}[k] }

// What a policy may apply to.
const (
	All           = "all"
	Queues        = "queues"
	ClassicQueues = "classic_queues"
	QuorumQueues  = "quorum_queues"
	Streams       = "streams"
	Exchanges     = "exchanges"
)

// Policy is one policy of a virtual host.
type Policy struct {
	Name       string     `json:"name"`
	Pattern    string     `json:"pattern"`  // regular expression (Pattern)
	ApplyTo    string     `json:"apply-to"` // one of the above; "" is All
	Priority   int64      `json:"priority"` // the highest that matches counts
	Definition Definition `json:"definition"`

	// NotInForce says why the policy applies to nothing although it is saved: another version
	// saved it, and this one refuses it. "": it is in force.
	NotInForce string `json:"not_in_force,omitempty"`

	matcher *Pattern // nil: not checked
	passes  scope    // the classes that it does not apply to, whatever their names
}

// Invalid is RabbitMQ's answer to a policy that it does not accept.
type Invalid struct{ Problems []string }

func (e *Invalid) Error() string {
	return "Validation failed\n\n" + strings.Join(e.Problems, "\n") + "\n"
}

// MissingKeys is RabbitMQ's answer to a request without a field it needs.
type MissingKeys []string

func (e MissingKeys) Error() string {
	items := make([]string, len(e))
	for i, key := range e {
		items[i] = "{key_missing," + key + "}"
	}
	return "[" + strings.Join(items, ",") + "]"
}

// Decode reads a policy from the fields of a JSON object. It ignores fields that a policy does
// not have. Errors: MissingKeys, *Invalid.
func Decode(k Kind, name string, fields map[string]any) (Policy, error) {
	var missing MissingKeys
	for _, key := range []string{"pattern", "definition"} {
		if _, ok := fields[key]; !ok {
			missing = append(missing, key)
		}
	}
	if missing != nil {
		return Policy{}, missing
	}
	p, problems := decode(k, fields)
	if problems != nil {
		return Policy{}, &Invalid{problems}
	}
	p.Name, p.passes = name, passes(p.ApplyTo, p.Definition)
	return p, nil
}

// passes returns the classes that a policy does not apply to.
func passes(to string, d Definition) (none scope) {
	const everything = noClassic | noQuorum | noStream | noExchange
	none = everything &^ map[string]scope{All: everything, Queues: everything &^ noExchange,
		ClassicQueues: noClassic, QuorumQueues: noQuorum, Streams: noStream, Exchanges: noExchange}[to]
	for name := range d {
		none |= keyNamed(name).scope & (noClassic | noQuorum | noStream)
	}
	return none
}

// Check returns the policy ready for use, with its defaults. Error: *Invalid.
func Check(k Kind, p Policy) (Policy, error) {
	if p.matcher != nil {
		return p, nil
	}
	fields := map[string]any{"pattern": p.Pattern, "priority": p.Priority, "definition": p.Definition}
	if p.ApplyTo != "" {
		fields["apply-to"] = p.ApplyTo
	}
	return Decode(k, p.Name, fields)
}

// decode collects the problems in RabbitMQ's order, the definition's first.
func decode(k Kind, fields map[string]any) (p Policy, problems []string) {
	fields = Whole(fields).(map[string]any)
	p.ApplyTo = All
	note := func(problem string) {
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	p.Definition, _ = fields["definition"].(map[string]any)
	note(checkDefinition(k, fields["definition"]))
	if to, ok := fields["apply-to"]; ok {
		p.ApplyTo, _ = to.(string)
		note(checkApplyTo(to))
		note(checkScope(p.ApplyTo, p.Definition))
	}
	p.Pattern, _ = fields["pattern"].(string)
	var problem string
	p.matcher, problem = checkPattern(fields["pattern"])
	note(problem)
	if priority, ok := fields["priority"]; ok {
		if p.Priority, ok = priority.(int64); !ok {
			note("priority should be a number, actually was " + term(priority))
		}
	}
	return p, problems
}

func checkApplyTo(v any) string {
	to, isText := v.(string)
	if !isText {
		to = term(v)
	} else if slices.Contains([]string{All, Queues, ClassicQueues, QuorumQueues, Streams, Exchanges}, to) {
		return ""
	}
	return "apply-to '" + to + "' unrecognised; should be one of: 'queues', 'classic_queues', 'quorum_queues', 'streams', 'exchanges', or 'all'"
}

// checkScope refuses a setting for queues in a policy that applies only to exchanges.
func checkScope(to string, d Definition) string {
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if k := keyNamed(name); k != nil && k.scope&queuesOnly != 0 && to == Exchanges {
			return name + " is not a setting of exchanges"
		}
	}
	return ""
}

func checkPattern(v any) (*Pattern, string) {
	expr, isText := v.(string)
	if !isText {
		return nil, "pattern should be a binary but was " + term(v)
	}
	matcher, err := CompilePattern(expr)
	if err != nil {
		return nil, "pattern should be regular expression but is invalid: " + err.Error()
	}
	return matcher, ""
}
