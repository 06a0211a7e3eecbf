package inject

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

const (
	dataVolume = "curfew-data"
	// gone is what the manifest says of an emptyDir, and users are told in more words.
	gone = "# gone with the pod, and the messages with it"
	// group is that of the image's user.
	group = "65532"
)

// The claim that a StatefulSet gets: one for each of its pods.
//
//go:embed claim.yaml
var claimText []byte

// keep gives the pods of a workload the volume that messages are kept on. notes are what a
// person should know of it.
func (i *Injector) keep(l *workload, w *wishes) (notes []string, err error) {
	volumes, claims := at(l.podSpec, "volumes"), at(l.object, "spec", "volumeClaimTemplates")
	if w.volume != "" && w.claim != "" {
		return nil, errors.New("it names a volume and a claim to keep messages on; leave one out")
	}
	claim := w.claim
	if claim == "" && w.volume == "" && l.kind != "StatefulSet" {
		claim = i.Claim
	}
	switch own := volume(volumes, dataVolume); {
	case w.volume != "":
		if w.volume != dataVolume {
			l.dropOwn()
		}
		if claimed(claims, w.volume) {
			return nil, nil
		}
		named := volume(volumes, w.volume)
		if named == nil {
			return nil, fmt.Errorf("it has no volume %q", w.volume)
		}
		return l.told(isEmptyDir(named)), nil
	case claim != "":
		if err := i.take(l, claim); err != nil {
			return nil, err
		}
		put(child(l.podSpec, "volumes", yaml.SequenceNode), dataVolume, of(claim), false)
		return l.letWrite(claims), nil
	case own != nil && !isEmptyDir(own): // of an earlier time, or the application's
		return nil, nil
	case l.kind == "StatefulSet":
		l.dropOwn()
		if !claimed(claims, dataVolume) {
			notes = append(notes, fmt.Sprintf("%s: it has a claim template %s now, of 1Gi. Kubernetes takes no new one for a StatefulSet that is there: "+
				"delete that first, with --cascade=orphan, which leaves its pods", l.name, dataVolume))
			claims = child(child(l.object, "spec", yaml.MappingNode), "volumeClaimTemplates", yaml.SequenceNode)
			claims.Content = append(claims.Content, parsed(claimText))
		}
		return append(notes, l.letWrite(claims)...), nil
	}
	put(child(l.podSpec, "volumes", yaml.SequenceNode), dataVolume, emptyDir(), false)
	return l.told(true), nil
}

// told says of an emptyDir what becomes of its messages.
func (l *workload) told(ephemeral bool) []string {
	if !ephemeral {
		return nil
	}
	how := "name a claim (--claim, curfew.dev/claim) or a volume of the pod (curfew.dev/volume)"
	if l.kind == "Deployment" || l.kind == "ReplicaSet" {
		how += ", or make it a StatefulSet"
	}
	return []string{l.name + ": its messages are on an emptyDir, which outlives the container, not the pod: deleting the pod loses them. To keep them " + how}
}

// dropOwn takes out a volume that was made for the sidecar once.
func (l *workload) dropOwn() {
	if own := volume(at(l.podSpec, "volumes"), dataVolume); own == nil || !isEmptyDir(own) {
		return
	}
	list := child(l.podSpec, "volumes", yaml.SequenceNode)
	list.Content = slices.DeleteFunc(list.Content, func(v *yaml.Node) bool { return textAt(v, "name") == dataVolume })
}

// take gives a claim that is there to the one workload that may have it, and refuses what
// would let two pods write to one data directory.
func (i *Injector) take(l *workload, claim string) error {
	if err := l.onePod(); err != nil {
		return fmt.Errorf("claim %q: %w", claim, err)
	}
	key := textAt(l.object, "metadata", "namespace") + "/" + claim
	if other, taken := i.claims[key]; taken {
		return fmt.Errorf("claim %q: %s has it already, and two would share a data directory; name one for each (curfew.dev/claim)", claim, other)
	}
	if i.claims == nil {
		i.claims = make(map[string]string)
	}
	i.claims[key] = l.name
	return nil
}

// onePod refuses a workload that has several pods at once.
func (l *workload) onePod() error {
	spec := at(l.object, "spec")
	several := func(n *yaml.Node, field string) error {
		if count := textAt(n, field); count != "" && count != "0" && count != "1" {
			return fmt.Errorf("with %s: %s its pods would share a data directory; it can be 1, or make it a StatefulSet, whose pods get a claim each", field, count)
		}
		return nil
	}
	switch l.kind {
	case "DaemonSet":
		return errors.New("its pods, one on each node, would share a data directory")
	case "Job":
		return several(spec, "parallelism")
	case "CronJob":
		if policy := textAt(spec, "concurrencyPolicy"); policy != "Forbid" && policy != "Replace" {
			return errors.New("two of its jobs may run at once and would share a data directory; give it concurrencyPolicy: Forbid")
		}
		return several(at(spec, "jobTemplate", "spec"), "parallelism")
	case "Deployment":
		if err := several(spec, "replicas"); err != nil {
			return err
		}
		if textAt(spec, "strategy", "type") != "Recreate" {
			return errors.New("its next pod would start while this one has the claim, and wait for it for ever; give it strategy: {type: Recreate}")
		}
		return nil
	case "Pod":
		return nil
	}
	return several(spec, "replicas")
}

// letWrite has Kubernetes give the volume of a claim to a group of the sidecar's, unless
// the pod says which. Claims of the application would get that group too, so with some it
// is left to a person.
func (l *workload) letWrite(claims *yaml.Node) (notes []string) {
	if at(l.podSpec, "securityContext", "fsGroup") != nil {
		return nil
	}
	if othersClaims(at(l.podSpec, "volumes"), claims) {
		return []string{l.name + ": Curfew can write to its claim if the pod has a securityContext with an fsGroup, such as " + group +
			". None was added: it would change the group of the files on the pod's other claims too"}
	}
	context := child(l.podSpec, "securityContext", yaml.MappingNode)
	context.Content = append(context.Content, text("fsGroup"), &yaml.Node{Kind: yaml.ScalarNode, Value: group})
	if at(context, "fsGroupChangePolicy") == nil {
		set(context, "fsGroupChangePolicy", "OnRootMismatch")
	}
	return nil
}

func othersClaims(volumes, claims *yaml.Node) bool {
	return slices.ContainsFunc(elements(volumes), func(v *yaml.Node) bool {
		return textAt(v, "name") != dataVolume && (at(v, "persistentVolumeClaim") != nil || at(v, "ephemeral") != nil)
	}) || slices.ContainsFunc(elements(claims), func(c *yaml.Node) bool { return textAt(c, "metadata", "name") != dataVolume })
}

func claimed(claims *yaml.Node, volume string) bool {
	return slices.ContainsFunc(elements(claims), func(c *yaml.Node) bool { return textAt(c, "metadata", "name") == volume })
}

// volume is the one of that name, or nil.
func volume(volumes *yaml.Node, name string) *yaml.Node {
	if i := named(volumes, name); i >= 0 {
		return volumes.Content[i]
	}
	return nil
}

// isEmptyDir says whether a volume is one; that is what a volume is that says nothing.
func isEmptyDir(v *yaml.Node) bool {
	for key := range pairs(v) {
		if key.Value != "name" && key.Value != "emptyDir" {
			return false
		}
	}
	return true
}

func emptyDir() *yaml.Node {
	n := mapping("name", dataVolume)
	n.Content = append(n.Content, text("emptyDir"), &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, LineComment: gone})
	return n
}

// of is the volume of a claim.
func of(claim string) *yaml.Node {
	n := mapping("name", dataVolume)
	n.Content = append(n.Content, text("persistentVolumeClaim"), mapping("claimName", claim))
	return n
}
