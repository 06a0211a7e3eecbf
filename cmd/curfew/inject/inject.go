package inject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Injector puts the sidecar into manifests. For one goroutine.
type Injector struct {
	Image string            // of the sidecar, where no annotation says otherwise
	Claim string            // a PersistentVolumeClaim for the messages of a workload that has no volume for them; empty: an emptyDir
	Known func(string) bool // whether a variable may be set by annotation
	// Notes are what a person should know of what was made, above all whose messages go
	// with the pod. Manifests adds to them.
	Notes []string

	claims map[string]string // namespace/claim: the workload that has it
}

// workload is an object of Kubernetes that makes pods, or is one.
type workload struct {
	kind, name           string // the name with the kind before it
	object, pod, podSpec *yaml.Node
}

var separator = regexp.MustCompile(`(?m)^---([ \t\r].*)?$\n?`)

// Manifests copies the YAML documents of in to out, with the sidecar in those that make pods. changed is
// how many did; an error names the document. Nothing is written then.
func (i *Injector) Manifests(in io.Reader, out io.Writer) (changed int, err error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return 0, err
	}
	var result bytes.Buffer
	documents, separators := split(text)
	for n, document := range documents {
		injected, did, err := i.one(document)
		if err != nil {
			return 0, fmt.Errorf("document %d: %w", n+1, err)
		}
		if did {
			changed++
		}
		result.Write(injected)
		result.Write(separators[n])
	}
	_, err = out.Write(result.Bytes())
	return changed, err
}

// split cuts text into documents and what stands behind each.
func split(text []byte) (documents, separators [][]byte) {
	begin := 0
	for _, at := range separator.FindAllIndex(text, -1) {
		documents = append(documents, text[begin:at[0]])
		separators = append(separators, text[at[0]:at[1]])
		begin = at[1]
	}
	return append(documents, text[begin:]), append(separators, nil)
}

// one injects into a document. did is false if it has no pod, or wants none.
func (i *Injector) one(document []byte) (result []byte, did bool, err error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, false, err
	}
	if len(root.Content) == 0 {
		return document, false, nil
	}
	var value any // which finds keys that are there twice, and an alias that holds itself
	if err := root.Decode(&value); err != nil {
		return nil, false, err
	}
	if did, err = i.object(root.Content[0]); err != nil || !did {
		return document, false, err
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&root), encoder.Close()); err != nil {
		return nil, false, err
	}
	return b.Bytes(), true, nil
}

// pods says where each kind has its pod.
var pods = map[string][]string{
	"Pod":         {},
	"Deployment":  {"spec", "template"},
	"StatefulSet": {"spec", "template"},
	"DaemonSet":   {"spec", "template"},
	"ReplicaSet":  {"spec", "template"},
	"Job":         {"spec", "template"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template"},
}

// object injects into an object of Kubernetes, or into those of a List.
func (i *Injector) object(n *yaml.Node) (did bool, err error) {
	kind := textAt(n, "kind")
	if kind == "List" {
		return i.list(at(n, "items"))
	}
	path, makesPods := pods[kind]
	if !makesPods {
		return false, nil
	}
	l := &workload{kind: kind, name: kind + " " + textAt(n, "metadata", "name"), object: n, pod: at(n, path...)}
	if at(l.pod, "spec") == nil {
		return false, fmt.Errorf("%s has no pod's spec", l.name)
	}
	wishes, err := i.wishesOf(n, l.pod)
	if err != nil {
		return false, fmt.Errorf("%s: %w", l.name, err)
	}
	if wishes.none {
		return false, nil
	}
	l.podSpec = child(l.pod, "spec", yaml.MappingNode)
	notes, err := i.inject(l, wishes)
	if err != nil {
		return false, fmt.Errorf("%s: %w", l.name, err)
	}
	i.Notes = append(i.Notes, notes...)
	return true, nil
}

func (i *Injector) list(items *yaml.Node) (did bool, err error) {
	for _, item := range elements(items) {
		one, err := i.object(item)
		if err != nil {
			return false, err
		}
		did = did || one
	}
	return did, nil
}
