package commands

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// prefix is the prefix of annotations and labels.
const prefix = "curfew.dev/"

// annotations are the annotations that are read.
var annotations = []string{"inject", "image", "env", "env-from-secret", "volume", "claim", "cpu-request", "cpu-limit", "memory-request", "memory-limit"}

// podSettings are the settings that the annotations of one pod make.
type podSettings struct {
	none      bool // the pod gets no sidecar
	image     string
	env       []variable
	secret    string
	volume    string               // volume of the pod for the messages; empty: one is added
	claim     string               // an existing claim for that volume; empty: see Injector.addVolume
	resources map[[2]string]string // "requests", "cpu": quantity
}

type variable struct{ name, value string }

// readAnnotations reads the annotations of an object and of its pod; the pod's take
// precedence.
func (i *Injector) readAnnotations(object, pod *yaml.Node) (*podSettings, error) {
	w := &podSettings{image: i.Image, resources: make(map[[2]string]string)}
	for _, n := range []*yaml.Node{lookup(object, "metadata", "annotations"), lookup(pod, "metadata", "annotations")} {
		for key, value := range pairs(n) {
			name, ours := strings.CutPrefix(key.Value, prefix)
			if !ours {
				continue
			}
			if err := w.apply(name, value.Value, i.Known); err != nil {
				return nil, fmt.Errorf("annotation %s: %w", key.Value, err)
			}
		}
	}
	return w, nil
}

func (w *podSettings) apply(name, value string, known func(string) bool) (err error) {
	switch name {
	case "inject":
		if value != "true" && value != "false" {
			return fmt.Errorf("%q must be true or false", value)
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
		return fmt.Errorf("no such annotation; the annotations are %s", strings.Join(annotations, ", "))
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
		return nil, fmt.Errorf("%q is not a YAML mapping of names to values", text)
	}
	for key, value := range pairs(n.Content[0]) {
		if !known(key.Value) {
			return nil, fmt.Errorf("there is no variable %s (curfew config lists all)", key.Value)
		}
		if value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("the value of %s is not text", key.Value)
		}
		list = append(list, variable{key.Value, value.Value})
	}
	slices.SortFunc(list, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return list, nil
}
