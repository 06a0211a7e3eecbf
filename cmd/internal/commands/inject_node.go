package commands

import (
	"iter"
	"slices"

	"go.yaml.in/yaml/v3"
)

// lookup returns the node below n under the keys, or nil.
func lookup(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if n = valueOf(n, key); n == nil {
			return nil
		}
	}
	return n
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	for k, v := range pairs(n) {
		if k.Value == key {
			return v
		}
	}
	return nil
}

// textAt returns a scalar below n, or "".
func textAt(n *yaml.Node, keys ...string) string {
	if n = lookup(n, keys...); n == nil {
		return ""
	}
	return n.Value
}

// pairs returns the pairs of a mapping, those too that its key << merges into it, and none for any other node. It follows an alias.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		seen := make(map[string]bool)
		for _, m := range merged(n) {
			for i := 0; i+1 < len(m.Content); i += 2 {
				key := m.Content[i]
				if key.ShortTag() == mergeTag || seen[key.Value] {
					continue
				}
				seen[key.Value] = true
				if !yield(key, resolved(m.Content[i+1])) {
					return
				}
			}
		}
	}
}

// mergeTag is the tag of the key <<.
const mergeTag = "!!merge"

// merged returns a mapping and those that are merged into it. A key that is in several has the value of the first.
func merged(n *yaml.Node) (list []*yaml.Node) {
	if n = resolved(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	list = append(list, n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != mergeTag {
			continue
		}
		from := resolved(n.Content[i+1])
		for _, m := range append(slices.Clone(elements(from)), from) { // one, or a list
			list = append(list, merged(m)...)
		}
	}
	return list
}

func resolved(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// child returns the value of a mapping under key, of the given kind. It is created if it is
// missing or null. An alias is replaced by a copy, and what is merged into the mapping is
// copied, so that the original does not change.
func child(n *yaml.Node, key string, kind yaml.Kind) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			continue
		}
		found := clone(n.Content[i+1])
		if found.Kind != kind {
			found = &yaml.Node{Kind: kind}
		}
		n.Content[i+1] = found
		return found
	}
	made := &yaml.Node{Kind: kind}
	if found := valueOf(n, key); found != nil && found.Kind == kind {
		made = deepCopy(found)
	}
	n.Content = append(n.Content, text(key), made)
	return made
}

// clone copies what an alias refers to. It returns any other node as it is.
func clone(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.AliasNode {
		return n
	}
	return deepCopy(n.Alias)
}

func deepCopy(n *yaml.Node) *yaml.Node {
	c := *n
	c.Anchor = ""
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, inner := range n.Content {
		c.Content[i] = deepCopy(inner)
	}
	return &c
}

// set sets the value under a key of a mapping.
func set(n *yaml.Node, key, value string) {
	*child(n, key, yaml.ScalarNode) = *text(value)
}

func text(value string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(value)
	return n
}

// elements returns the elements of a sequence.
func elements(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// named returns the index of the element with that name in a sequence, or -1.
func named(n *yaml.Node, name string) int {
	return slices.IndexFunc(elements(n), func(e *yaml.Node) bool { return textAt(e, "name") == name })
}

// mapping makes a mapping of text values.
func mapping(pairs ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		set(n, pairs[i], pairs[i+1])
	}
	return n
}
