package inject

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

const (
	container  = "curfew"
	dataVolume = "curfew-data"
	// stopSeconds is the time to stop of a pod that says none: for the application, and 10 s for Curfew.
	stopSeconds = "60"
)

//go:embed sidecar.yaml
var sidecarText []byte

// inject puts the sidecar into a pod, in the place of one that is there. claims are the claims of
// volumes that are made for the pod, or nil.
func (w *wishes) inject(pod, claims *yaml.Node) error {
	spec := child(pod, "spec", yaml.MappingNode)
	if textAt(spec, "hostNetwork") == "true" {
		return errors.New("it is on the host's network, where Curfew's ports would be the host's")
	}
	if named(at(spec, "containers"), container) >= 0 {
		return fmt.Errorf("it has a container %q already, which is no sidecar", container)
	}
	if w.volume == "" {
		put(child(spec, "volumes", yaml.SequenceNode), dataVolume, emptyDir(), false)
	} else if named(at(spec, "volumes"), w.volume) < 0 && !claimed(claims, w.volume) {
		return fmt.Errorf("it has no volume %q", w.volume)
	}
	put(child(spec, "initContainers", yaml.SequenceNode), container, w.sidecar(), true)
	if at(spec, "terminationGracePeriodSeconds") == nil {
		spec.Content = append(spec.Content, text("terminationGracePeriodSeconds"), &yaml.Node{Kind: yaml.ScalarNode, Value: stopSeconds})
	}
	set(child(child(pod, "metadata", yaml.MappingNode), "labels", yaml.MappingNode), Prefix+"injected", "true")
	return nil
}

func claimed(claims *yaml.Node, volume string) bool {
	return claims != nil && slices.ContainsFunc(claims.Content, func(c *yaml.Node) bool { return textAt(c, "metadata", "name") == volume })
}

// put replaces the element of a sequence that has the name, or adds it, first or last.
func put(list *yaml.Node, name string, element *yaml.Node, first bool) {
	switch i := named(list, name); {
	case i >= 0:
		list.Content[i] = element
	case first:
		list.Content = append([]*yaml.Node{element}, list.Content...)
	default:
		list.Content = append(list.Content, element)
	}
}

func emptyDir() *yaml.Node {
	n := mapping("name", dataVolume)
	n.Content = append(n.Content, text("emptyDir"), &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle})
	return n
}

// sidecar is the container as the annotations want it.
func (w *wishes) sidecar() *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal(sidecarText, &document); err != nil {
		panic(fmt.Sprintf("inject: sidecar.yaml: %v", err))
	}
	n := document.Content[0]
	n.HeadComment = ""
	n.Content[0].HeadComment = ""
	n.Content = append(n.Content[:2:2], append([]*yaml.Node{text("image"), text(w.image)}, n.Content[2:]...)...)
	env := child(n, "env", yaml.SequenceNode)
	for _, v := range w.env {
		put(env, v.name, mapping("name", v.name, "value", v.value), false)
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
		set(at(n, "volumeMounts").Content[0], "name", w.volume)
	}
	return n
}
