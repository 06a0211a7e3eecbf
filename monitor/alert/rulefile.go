package alert

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxRuleFile bounds the file of rules, in bytes.
const maxRuleFile = 1 << 20

// ruleReader reads a file of rules; what a rule does not say is as in initial.
type ruleReader struct {
	path    string
	initial rule
	sinks   []string // that are configured
	errs    []error
	names   map[string]int // of rules, and the line they stand in
}

// readRules reads path, YAML or JSON (which is YAML). Its error names every mistake by
// line and field, with what is allowed there.
func readRules(path string, initial rule, sinks []string) (rules []*rule, content string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("alert: rules: %w", err)
	}
	if len(data) > maxRuleFile {
		return nil, string(data), fmt.Errorf("alert: rules: %s is larger than %d bytes", path, maxRuleFile)
	}
	r := &ruleReader{path: path, initial: initial, sinks: sinks, names: make(map[string]int)}
	rules = r.read(data)
	if len(r.errs) > 0 {
		return nil, string(data), errors.Join(r.errs...)
	}
	return rules, string(data), nil
}

func (r *ruleReader) read(data []byte) (rules []*rule) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", r.path, err))
		return nil
	}
	if len(doc.Content) == 0 {
		r.refuse(&doc, "", "nothing is in it; it takes a mapping with the field rules")
		return nil
	}
	top := doc.Content[0]
	r.fields(top, "", func(field string, _, value *yaml.Node) bool {
		if field != "rules" {
			return false
		}
		if value.Kind != yaml.SequenceNode {
			r.refuse(value, field, "it takes a list of rules")
			return true
		}
		for i, n := range value.Content {
			rules = append(rules, r.rule(n, i))
		}
		return true
	}, "rules")
	return rules
}

var ruleFields = []string{"name", "events", "vhost", "queue", "to", "severity", "group", "count", "lateness", "wait", "interval", "repeat"}

// rule reads the rule at place i of the list.
func (r *ruleReader) rule(n *yaml.Node, i int) *rule {
	out := r.initial
	out.name, out.everywhere = fmt.Sprintf("rule-%d", i+1), true
	where := fmt.Sprintf("rules[%d]", i)
	r.fields(n, where, func(field string, _, value *yaml.Node) bool {
		return r.field(&out, field, where+"."+field, value)
	}, ruleFields...)
	if line, taken := r.names[out.name]; taken {
		r.refuse(n, where+".name", "%q is the name of the rule in line %d, too", out.name, line)
	}
	r.names[out.name] = n.Line
	return &out
}

// field reads one field of a rule; false if there is no such field.
func (r *ruleReader) field(out *rule, field, where string, n *yaml.Node) bool {
	switch field {
	case "name":
		out.name = r.text(n, where)
	case "events":
		for _, event := range r.list(n, where) {
			kind, ok := kindOf(event)
			if !ok {
				r.refuse(n, where, "there is no event %q; it takes %s", event, eventNames())
			}
			out.kinds = append(out.kinds, kind)
		}
	case "vhost":
		out.vhost = newPattern(r.text(n, where))
	case "queue":
		out.queue = newPattern(r.text(n, where))
	case "to":
		out.everywhere, out.to = false, r.list(n, where)
		for _, sink := range out.to {
			r.sink(n, where, sink)
		}
	case "severity":
		out.severity = r.oneOf(n, where, severities)
	case "group":
		out.group, _ = groupingOf(r.oneOf(n, where, groupings[:]))
	case "count":
		out.count = r.number(n, where)
	case "lateness":
		out.lateness = r.duration(n, where, 0)
	case "wait":
		out.wait = r.duration(n, where, time.Millisecond)
	case "interval":
		out.interval = r.duration(n, where, time.Second)
	case "repeat":
		out.repeat = r.duration(n, where, time.Second)
	default:
		return false
	}
	return true
}

// fields calls fn for each field of a mapping; fn says whether it knows it.
func (r *ruleReader) fields(n *yaml.Node, where string, fn func(field string, key, value *yaml.Node) bool, known ...string) {
	if n.Kind != yaml.MappingNode {
		r.refuse(n, where, "it takes a mapping with the fields %s", strings.Join(known, ", "))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		switch {
		case seen[key.Value]:
			r.refuse(key, join(where, key.Value), "it is there twice")
		case !fn(key.Value, key, value):
			r.refuse(key, join(where, key.Value), "there is no such field; there are %s", strings.Join(known, ", "))
		}
		seen[key.Value] = true
	}
}

func join(where, field string) string {
	if where == "" {
		return field
	}
	return where + "." + field
}

func (r *ruleReader) refuse(n *yaml.Node, where, format string, args ...any) {
	if where != "" {
		where += ": "
	}
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s%s", r.path, n.Line, where, fmt.Sprintf(format, args...)))
}

func (r *ruleReader) text(n *yaml.Node, where string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.refuse(n, where, "it takes text")
	}
	return n.Value
}

// list reads a list of texts, or one text.
func (r *ruleReader) list(n *yaml.Node, where string) []string {
	if n.Kind == yaml.ScalarNode {
		return []string{r.text(n, where)}
	}
	if n.Kind != yaml.SequenceNode {
		r.refuse(n, where, "it takes a list")
	}
	list := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		list = append(list, r.text(item, where))
	}
	return list
}

func (r *ruleReader) oneOf(n *yaml.Node, where string, allowed []string) string {
	if n.Kind != yaml.ScalarNode || !slices.Contains(allowed, n.Value) {
		r.refuse(n, where, "%q is not allowed; it takes %s", n.Value, strings.Join(allowed, " or "))
	}
	return n.Value
}

func (r *ruleReader) number(n *yaml.Node, where string) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		r.refuse(n, where, "%q is not allowed; it takes a number from 1", n.Value)
	}
	return v
}

func (r *ruleReader) duration(n *yaml.Node, where string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < least {
		r.refuse(n, where, "%q is not allowed; it takes a duration such as 500ms, 10s, 4h, %s at least", n.Value, least)
	}
	return d
}

func (r *ruleReader) sink(n *yaml.Node, where, sink string) {
	switch {
	case !slices.Contains(sinkNames, sink):
		r.refuse(n, where, "there is no sink %q; it takes %s", sink, strings.Join(sinkNames, ", "))
	case !slices.Contains(r.sinks, sink):
		r.refuse(n, where, "the sink %s is not configured; set %s", sink, sinkSettings[sink])
	}
}
