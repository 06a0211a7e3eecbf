package commands

import (
	_ "embed"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

const (
	container = "curfew"
	// stopSeconds is the termination grace period of a pod that sets none: for the
	// application, and 10 s for Curfew.
	stopSeconds = "60"
)

//go:embed inject_sidecar.yaml
var sidecarText []byte

// inject adds the sidecar to the pods of a workload, replacing an existing one.
func (i *Injector) inject(l *workload, w *podSettings) (notes []string, err error) {
	spec := l.podSpec
	if textAt(spec, "hostNetwork") == "true" {
		return nil, errors.New("it uses the host's network, where Curfew's ports would be the host's")
	}
	if named(lookup(spec, "containers"), container) >= 0 {
		return nil, fmt.Errorf("it already has a container %q that is not a sidecar", container)
	}
	if notes, err = i.addVolume(l, w); err != nil {
		return nil, err
	}
	putNamed(child(spec, "initContainers", yaml.SequenceNode), container, w.sidecar(), true)
	if lookup(spec, "terminationGracePeriodSeconds") == nil {
		spec.Content = append(spec.Content, text("terminationGracePeriodSeconds"), &yaml.Node{Kind: yaml.ScalarNode, Value: stopSeconds})
	}
	set(child(child(l.pod, "metadata", yaml.MappingNode), "labels", yaml.MappingNode), prefix+"injected", "true")
	return notes, nil
}

// putNamed replaces the element of a sequence with that name, or adds it as the first or
// last one.
func putNamed(list *yaml.Node, name string, element *yaml.Node, first bool) {
	switch i := named(list, name); {
	case i >= 0:
		list.Content[i] = element
	case first:
		list.Content = append([]*yaml.Node{element}, list.Content...)
	default:
		list.Content = append(list.Content, element)
	}
}

// parsed parses a mapping that belongs to this package.
func parsed(own []byte) *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal(own, &document); err != nil {
		panic(fmt.Sprintf("inject: own YAML: %v", err))
	}
	return document.Content[0]
}

// sidecar returns the container with the settings of the annotations.
func (w *podSettings) sidecar() *yaml.Node {
	n := parsed(sidecarText)
	n.HeadComment = ""
	n.Content[0].HeadComment = ""
	n.Content = append(n.Content[:2:2], append([]*yaml.Node{text("image"), text(w.image)}, n.Content[2:]...)...)
	env := child(n, "env", yaml.SequenceNode)
	for _, v := range w.env {
		putNamed(env, v.name, mapping("name", v.name, "value", v.value), false)
	}
	if w.secret != "" {
		from := &yaml.Node{Kind: yaml.MappingNode}
		from.Content = []*yaml.Node{text("secretRef"), mapping("name", w.secret)}
		child(n, "envFrom", yaml.SequenceNode).Content = []*yaml.Node{from}
	}
	for path, quantity := range w.resources {
		set(child(child(n, "resources", yaml.MappingNode), path[0], yaml.MappingNode), path[1], quantity)
	}
	if w.volume != "" {
		set(lookup(n, "volumeMounts").Content[0], "name", w.volume)
	}
	return n
}
