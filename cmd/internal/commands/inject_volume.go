package commands

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

const (
	dataVolume = "curfew-data"
	// emptyDirComment is the comment at an emptyDir in the manifest. Users get a longer
	// note.
	emptyDirComment = "# gone with the pod, and the messages with it"
	// sidecarGroup is the group of the image's user.
	sidecarGroup = "65532"
)

// The claim template for a StatefulSet: each of its pods gets a claim.
//
//go:embed inject_claim.yaml
var claimText []byte

// addVolume gives the pods of a workload the volume in which messages are stored.
func (i *Injector) addVolume(l *workload, w *podSettings) error {
	volumes, claims := lookup(l.podSpec, "volumes"), lookup(l.object, "spec", "volumeClaimTemplates")
	if w.volume != "" && w.claim != "" {
		return errors.New("it names both a volume and a claim for messages; remove one of them")
	}
	claim := w.claim
	if claim == "" && w.volume == "" && l.kind != "StatefulSet" {
		claim = i.Claim
	}
	switch own := volume(volumes, dataVolume); {
	case w.volume != "":
		if w.volume != dataVolume {
			l.removeOwnVolume()
		}
		if claimed(claims, w.volume) {
			return nil
		}
		named := volume(volumes, w.volume)
		if named == nil {
			return fmt.Errorf("it has no volume %q", w.volume)
		}
		if isEmptyDir(named) {
			i.noteLoss(l)
		}
	case claim != "":
		if err := i.claimVolume(l, claim); err != nil {
			return err
		}
		source := mapping("name", dataVolume)
		source.Content = append(source.Content, text("persistentVolumeClaim"), mapping("claimName", claim))
		putNamed(child(l.podSpec, "volumes", yaml.SequenceNode), dataVolume, source, false)
		i.setGroup(l, claims)
	case own != nil && !isEmptyDir(own): // from an earlier injection, or the application's
	case l.kind == "StatefulSet":
		l.removeOwnVolume()
		if !claimed(claims, dataVolume) {
			i.Notes = append(i.Notes, fmt.Sprintf("%s: it now has a claim template %s of 1Gi. Kubernetes does not add one to a StatefulSet that exists: "+
				"delete that first with --cascade=orphan, which leaves its pods running", l.name, dataVolume))
			claims = child(child(l.object, "spec", yaml.MappingNode), "volumeClaimTemplates", yaml.SequenceNode)
			claims.Content = append(claims.Content, parsed(claimText))
		}
		i.setGroup(l, claims)
	default:
		emptyDir := mapping("name", dataVolume)
		emptyDir.Content = append(emptyDir.Content, text("emptyDir"), &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, LineComment: emptyDirComment})
		putNamed(child(l.podSpec, "volumes", yaml.SequenceNode), dataVolume, emptyDir, false)
		i.noteLoss(l)
	}
	return nil
}

// noteLoss warns that an emptyDir's messages are deleted with the pod.
func (i *Injector) noteLoss(l *workload) {
	how := "name a claim (--claim, curfew.dev/claim) or a volume of the pod (curfew.dev/volume)"
	if l.kind == "Deployment" || l.kind == "ReplicaSet" {
		how += ", or make it a StatefulSet"
	}
	i.Notes = append(i.Notes, l.name+": its messages are on an emptyDir, which outlives the container but not the pod: deleting the pod loses them. To keep them, "+how)
}

// removeOwnVolume removes a volume that an earlier injection added.
func (l *workload) removeOwnVolume() {
	if own := volume(lookup(l.podSpec, "volumes"), dataVolume); own == nil || !isEmptyDir(own) {
		return
	}
	list := child(l.podSpec, "volumes", yaml.SequenceNode)
	list.Content = slices.DeleteFunc(list.Content, func(v *yaml.Node) bool { return textAt(v, "name") == dataVolume })
}

// claimVolume assigns an existing claim to the one workload that may use it. It refuses
// anything that would let two pods write to one data directory.
func (i *Injector) claimVolume(l *workload, claim string) error {
	if err := l.onePod(); err != nil {
		return fmt.Errorf("claim %q: %w", claim, err)
	}
	key := textAt(l.object, "metadata", "namespace") + "/" + claim
	if other, taken := i.claims[key]; taken {
		return fmt.Errorf("claim %q: %s already uses it, and two would share a data directory; name a claim for each (curfew.dev/claim)", claim, other)
	}
	if i.claims == nil {
		i.claims = make(map[string]string)
	}
	i.claims[key] = l.name
	return nil
}

// onePod refuses a workload that has several pods at the same time.
func (l *workload) onePod() error {
	spec := lookup(l.object, "spec")
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
		return several(lookup(spec, "jobTemplate", "spec"), "parallelism")
	case "Deployment":
		if err := several(spec, "replicas"); err != nil {
			return err
		}
		if textAt(spec, "strategy", "type") != "Recreate" {
			return errors.New("its next pod would start while this one has the claim, and wait for it forever; give it strategy: {type: Recreate}")
		}
		return nil
	case "Pod":
		return nil
	}
	return several(spec, "replicas")
}

// setGroup makes Kubernetes give the volume of a claim to the sidecar's group, unless the
// pod sets a group. The application's claims would get that group too, so if there are any,
// it only adds a note.
func (i *Injector) setGroup(l *workload, claims *yaml.Node) {
	if lookup(l.podSpec, "securityContext", "fsGroup") != nil {
		return
	}
	others := slices.ContainsFunc(elements(lookup(l.podSpec, "volumes")), func(v *yaml.Node) bool {
		return textAt(v, "name") != dataVolume && (lookup(v, "persistentVolumeClaim") != nil || lookup(v, "ephemeral") != nil)
	}) || slices.ContainsFunc(elements(claims), func(c *yaml.Node) bool { return textAt(c, "metadata", "name") != dataVolume })
	if others {
		i.Notes = append(i.Notes, l.name+": Curfew can write to its claim if the pod has a securityContext with an fsGroup, such as "+sidecarGroup+
			". None was added: it would change the group of the files on the pod's other claims too")
		return
	}
	context := child(l.podSpec, "securityContext", yaml.MappingNode)
	context.Content = append(context.Content, text("fsGroup"), &yaml.Node{Kind: yaml.ScalarNode, Value: sidecarGroup})
	if lookup(context, "fsGroupChangePolicy") == nil {
		set(context, "fsGroupChangePolicy", "OnRootMismatch")
	}
}

func claimed(claims *yaml.Node, volume string) bool {
	return slices.ContainsFunc(elements(claims), func(c *yaml.Node) bool { return textAt(c, "metadata", "name") == volume })
}

// volume returns the volume with that name, or nil.
func volume(volumes *yaml.Node, name string) *yaml.Node {
	if i := named(volumes, name); i >= 0 {
		return volumes.Content[i]
	}
	return nil
}

// isEmptyDir reports whether a volume is an emptyDir; a volume without a source is one.
func isEmptyDir(v *yaml.Node) bool {
	for key := range pairs(v) {
		if key.Value != "name" && key.Value != "emptyDir" {
			return false
		}
	}
	return true
}
