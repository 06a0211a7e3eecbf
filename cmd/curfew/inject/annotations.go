package inject

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Prefix of annotations and labels.
const Prefix = "curfew.dev/"

// Annotations that are read.
var annotations = []string{"inject", "image", "env", "env-from-secret", "volume", "claim", "cpu-request", "cpu-limit", "memory-request", "memory-limit"}

// wishes is what annotations say of one pod.
type wishes struct {
	none      bool // it wants no sidecar
	image     string
	env       []variable
	secret    string
	volume    string               // of the pod, for the messages; empty: one is made
	claim     string               // there is one, to make it of; empty: see Injector.keep
	resources map[[2]string]string // "requests", "cpu": quantity
}

type variable struct{ name, value string }

// wishesOf reads the annotations of an object and its pod; the pod's count more.
func (i *Injector) wishesOf(object, pod *yaml.Node) (*wishes, error) {
	w := &wishes{image: i.Image, resources: make(map[[2]string]string)}
	for _, n := range []*yaml.Node{at(object, "metadata", "annotations"), at(pod, "metadata", "annotations")} {
		for key, value := range pairs(n) {
			name, ours := strings.CutPrefix(key.Value, Prefix)
			if !ours {
				continue
			}
			if err := w.take(name, value.Value, i.Known); err != nil {
				return nil, fmt.Errorf("annotation %s: %w", key.Value, err)
			}
		}
	}
	return w, nil
}

func (w *wishes) take(name, value string, known func(string) bool) (err error) {
	switch name {
	case "inject":
		if value != "true" && value != "false" {
			return fmt.Errorf("%q is neither true nor false", value)
		}
		w.none = value == "false"
	case "image":
		w.image = value
	case "env":
		w.env, err = variables(value, known)
	case "env-from-secret":
		w.secret = value
	case "volume":
		w.volume = value
	case "claim":
		w.claim = value
	case "cpu-request", "cpu-limit", "memory-request", "memory-limit":
		resource, bound, _ := strings.Cut(name, "-")
		w.resources[[2]string{bound + "s", resource}] = value
	default:
		return fmt.Errorf("there is no such annotation; there are %s", strings.Join(annotations, ", "))
	}
	return err
}

// variables reads a mapping of names to values.
func variables(text string, known func(string) bool) (list []variable, err error) {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		return nil, err
	}
	if len(n.Content) == 0 {
		return nil, nil
	}
	if n.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%q is no YAML mapping of names to values", text)
	}
	for key, value := range pairs(n.Content[0]) {
		if !known(key.Value) {
			return nil, fmt.Errorf("there is no variable %s (curfew config lists all)", key.Value)
		}
		if value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("the value of %s is no text", key.Value)
		}
		list = append(list, variable{key.Value, value.Value})
	}
	slices.SortFunc(list, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return list, nil
}
