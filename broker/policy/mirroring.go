package policy

import "fmt"

// Curfew has one copy of a queue. The keys of mirrored classic queues are checked and remembered, so
// that policies written for RabbitMQ are accepted.

// checkMirroring returns what RabbitMQ objects to among the ha- keys, or "".
func checkMirroring(d map[string]any) string {
	mode, has := d["ha-mode"]
	if !has {
		for name := range d {
			if k := keyNamed(name); k != nil && k.scope&mirroring != 0 {
				return "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
			}
		}
		return ""
	}
	if problem := checkMirrorMode(mode, d); problem != "" {
		return problem
	}
	if n, set := d["ha-sync-batch-size"]; set && !atLeast(1)(n) {
		return "ha-sync-batch-size takes an integer greater than 0, " + term(n) + " given"
	}
	for _, choice := range []struct{ name, first, second string }{
		{"ha-sync-mode", "manual", "automatic"},
		{"ha-promote-on-shutdown", "always", "when-synced"},
		{"ha-promote-on-failure", "always", "when-synced"},
	} {
		if v, set := d[choice.name]; set && !oneOf(choice.first, choice.second)(v) {
			return fmt.Sprintf("%s must be %q or %q, got %s", choice.name, choice.first, choice.second, term(v))
		}
	}
	return ""
}

func checkMirrorMode(mode any, d map[string]any) string {
	params, has := d["ha-params"]
	switch mode {
	case "all":
		if has {
			return `ha-mode="all" does not take parameters`
		}
	case "exactly":
		if !has {
			return `ha-mode="exactly" takes an integer, none given`
		}
		if !atLeast(1)(params) {
			return `ha-mode="exactly" takes an integer, ` + term(params) + " given"
		}
	case "nodes":
		return checkMirrorNodes(params, has)
	default:
		return term(mode) + " is not a valid ha-mode value"
	}
	return ""
}

func checkMirrorNodes(params any, has bool) string {
	nodes, isList := params.([]any)
	switch {
	case !has:
		return `ha-mode="nodes" expects a list of nodes, none given`
	case !isList:
		return `ha-mode="nodes" takes a list of strings, ` + term(params) + " given"
	case len(nodes) == 0:
		return `ha-mode="nodes" list must be non-empty`
	}
	for _, node := range nodes {
		if !is[string](node) {
			return `ha-mode="nodes" takes a list of strings, ` + term(params) + " given"
		}
	}
	return ""
}
