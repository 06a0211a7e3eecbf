package inject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Options of Manifests.
type Options struct {
	Image string            // of the sidecar, where no annotation says otherwise
	Known func(string) bool // whether a variable may be set by annotation
}

var separator = regexp.MustCompile(`(?m)^---([ \t\r].*)?$\n?`)

// Manifests copies the YAML documents of in to out, with the sidecar in those that make pods. changed is
// how many did; an error names the document. Nothing is written then.
func Manifests(in io.Reader, out io.Writer, o Options) (changed int, err error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return 0, err
	}
	var result bytes.Buffer
	documents, separators := split(text)
	for i, document := range documents {
		injected, did, err := one(document, &o)
		if err != nil {
			return 0, fmt.Errorf("document %d: %w", i+1, err)
		}
		if did {
			changed++
		}
		result.Write(injected)
		result.Write(separators[i])
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
func one(document []byte, o *Options) (result []byte, did bool, err error) {
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
	if did, err = object(root.Content[0], o); err != nil || !did {
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
func object(n *yaml.Node, o *Options) (did bool, err error) {
	kind := textAt(n, "kind")
	if kind == "List" {
		return list(at(n, "items"), o)
	}
	path, makesPods := pods[kind]
	if !makesPods {
		return false, nil
	}
	name := kind + " " + textAt(n, "metadata", "name")
	pod := at(n, path...)
	if at(pod, "spec") == nil {
		return false, fmt.Errorf("%s has no pod's spec", name)
	}
	wishes, err := wishesOf(o, n, pod)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if wishes.none {
		return false, nil
	}
	if err := wishes.inject(pod, at(n, "spec", "volumeClaimTemplates")); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

func list(items *yaml.Node, o *Options) (did bool, err error) {
	if items == nil {
		return false, nil
	}
	for _, item := range items.Content {
		one, err := object(item, o)
		if err != nil {
			return false, err
		}
		did = did || one
	}
	return did, nil
}
