package commands

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Injector adds the sidecar to manifests. It is for one goroutine.
type Injector struct {
	Image string            // of the sidecar, unless an annotation names another one
	Claim string            // a PersistentVolumeClaim for the messages of a workload without a volume for them; empty: an emptyDir
	Known func(string) bool // reports whether a variable may be set by annotation
	// Notes are remarks for people about the result, above all about messages that are
	// deleted with their pod. Manifests appends to them.
	Notes []string

	claims map[string]string // namespace/claim: the workload that uses it
}

// workload is a Kubernetes object that makes pods, or is one.
type workload struct {
	kind, name           string // the name begins with the kind
	object, pod, podSpec *yaml.Node
}

var separator = regexp.MustCompile(`(?m)^---([ \t\r].*)?$\n?`)

// Manifests copies the YAML documents of in to out and adds the sidecar to those that make
// pods. It returns the number of changed documents. An error names the document; nothing is
// written then.
func (i *Injector) Manifests(in io.Reader, out io.Writer) (changed int, err error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return 0, err
	}
	var result bytes.Buffer
	documents, separators := split(text)
	for n, document := range documents {
		injected, did, err := i.injectDocument(document)
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

// split cuts text into documents, and what follows each of them.
func split(text []byte) (documents, separators [][]byte) {
	begin := 0
	for _, at := range separator.FindAllIndex(text, -1) {
		documents = append(documents, text[begin:at[0]])
		separators = append(separators, text[at[0]:at[1]])
		begin = at[1]
	}
	return append(documents, text[begin:]), append(separators, nil)
}

// injectDocument injects into a document. did is false if it has no pod, or must not get a
// sidecar.
func (i *Injector) injectDocument(document []byte) (result []byte, did bool, err error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, false, err
	}
	if len(root.Content) == 0 {
		return document, false, nil
	}
	var value any // decoding detects duplicate keys and an alias that contains itself
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

// pods is the path to the pod in each kind of object.
var pods = map[string][]string{
	"Pod":         {},
	"Deployment":  {"spec", "template"},
	"StatefulSet": {"spec", "template"},
	"DaemonSet":   {"spec", "template"},
	"ReplicaSet":  {"spec", "template"},
	"Job":         {"spec", "template"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template"},
}

// object injects into a Kubernetes object, or into the objects of a List.
func (i *Injector) object(n *yaml.Node) (did bool, err error) {
	kind := textAt(n, "kind")
	if kind == "List" {
		for _, item := range elements(lookup(n, "items")) {
			one, err := i.object(item)
			if err != nil {
				return false, err
			}
			did = did || one
		}
		return did, nil
	}
	path, makesPods := pods[kind]
	if !makesPods {
		return false, nil
	}
	l := &workload{kind: kind, name: kind + " " + textAt(n, "metadata", "name"), object: n, pod: lookup(n, path...)}
	if lookup(l.pod, "spec") == nil {
		return false, fmt.Errorf("%s has no pod spec", l.name)
	}
	wishes, err := i.readAnnotations(n, l.pod)
	if err != nil {
		return false, fmt.Errorf("%s: %w", l.name, err)
	}
	if wishes.none {
		return false, nil
	}
	l.pod = n
	for _, key := range path {
		l.pod = child(l.pod, key, yaml.MappingNode)
	}
	l.podSpec = child(l.pod, "spec", yaml.MappingNode)
	if err := i.inject(l, wishes); err != nil {
		return false, fmt.Errorf("%s: %w", l.name, err)
	}
	return true, nil
}
