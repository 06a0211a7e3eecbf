package exchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"curfew/broker/amqp"
)

// naive is a list of bindings that are matched one by one.
type naive struct {
	kind     Kind
	bindings []Binding[int]
}

func (m *naive) find(d int, key string, args amqp.Table) int {
	return slices.IndexFunc(m.bindings, func(b Binding[int]) bool {
		return b.Destination == d && b.Key == key && fmt.Sprintf("%#v", b.Args) == fmt.Sprintf("%#v", args)
	})
}

func (m *naive) route(key string, h amqp.Table) []int {
	var out []int
	for _, b := range m.bindings {
		if m.matches(b, key, h) && !slices.Contains(out, b.Destination) {
			out = append(out, b.Destination)
		}
	}
	slices.Sort(out)
	return out
}

func (m *naive) matches(b Binding[int], key string, h amqp.Table) bool {
	switch m.kind {
	case Direct:
		return b.Key == key
	case Topic:
		return matchWords(words(b.Key), words(key))
	case Headers:
		return matchHeaders(b.Args, h)
	}
	return true
}

func words(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(key, ".")
}

func matchWords(pattern, key []string) bool {
	switch {
	case len(pattern) == 0:
		return len(key) == 0
	case pattern[0] == "#":
		return matchWords(pattern[1:], key) || len(key) > 0 && matchWords(pattern, key[1:])
	case len(key) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == key[0]) && matchWords(pattern[1:], key[1:])
}

func matchHeaders(args, h amqp.Table) bool {
	mode, _ := args["x-match"].(string)
	asked, met := 0, 0
	for name, value := range args {
		if name == "x-match" || strings.HasPrefix(name, "x-") && !strings.HasSuffix(mode, "with-x") {
			continue
		}
		asked++
		if got, ok := h[name]; ok && (value == nil || value == got) {
			met++
		}
	}
	if strings.HasPrefix(mode, "any") {
		return met > 0
	}
	return met == asked
}

var (
	patternWord = rapid.SampledFrom([]string{"a", "b", "", "*", "#"})
	keyWord     = rapid.SampledFrom([]string{"a", "b", "", "c"})
	pattern     = rapid.Map(rapid.SliceOfN(patternWord, 0, 5), join)
	routingKey  = rapid.Map(rapid.SliceOfN(keyWord, 0, 6), join)
	value       = rapid.SampledFrom([]any{"1", "2", int32(1), true, nil})
	name        = rapid.SampledFrom([]string{"a", "b", "x-a"})
	table       = rapid.Map(rapid.MapOfN(name, value, 0, 3), func(m map[string]any) amqp.Table { return m })
	mode        = rapid.SampledFrom([]string{"", "all", "any", "all-with-x", "any-with-x"})
)

func join(words []string) string { return strings.Join(words, ".") }

func bindArgs(t *rapid.T) amqp.Table {
	args := table.Draw(t, "args")
	if m := mode.Draw(t, "mode"); m != "" {
		args["x-match"] = m
	}
	return args
}

func TestRoutersAgreeWithTheNaiveMatcher(t *testing.T) {
	for _, k := range kinds {
		t.Run(string(k), rapid.MakeCheck(func(t *rapid.T) { checkModel(t, k) }))
	}
}

func FuzzTopic(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkModel(t, Topic) }))
}

func checkModel(t *rapid.T, k Kind) {
	r, m := New[int](k), &naive{kind: k}
	dest := rapid.IntRange(0, 3)
	t.Repeat(map[string]func(*rapid.T){
		"bind": func(t *rapid.T) {
			d, key, args := dest.Draw(t, "d"), pattern.Draw(t, "key"), bindArgs(t)
			added := m.find(d, key, args) < 0
			require.Equal(t, added, r.Bind(d, key, args))
			if added {
				m.bindings = append(m.bindings, Binding[int]{d, key, args})
			}
		},
		"unbind": func(t *rapid.T) {
			if len(m.bindings) == 0 {
				_, removed := r.Unbind(0, "", nil)
				require.False(t, removed)
				return
			}
			i := rapid.IntRange(0, len(m.bindings)-1).Draw(t, "i")
			b := m.bindings[i]
			bound, removed := r.Unbind(b.Destination, b.Key, b.Args)
			require.True(t, removed)
			require.Equal(t, b.Args, bound)
			m.bindings = slices.Delete(m.bindings, i, i+1)
		},
		"unbind all": func(t *rapid.T) {
			d, before := dest.Draw(t, "d"), len(m.bindings)
			m.bindings = slices.DeleteFunc(m.bindings, func(b Binding[int]) bool { return b.Destination == d })
			removed := r.UnbindAll(d)
			require.Len(t, removed, before-len(m.bindings))
			for _, b := range removed {
				require.Equal(t, d, b.Destination)
				require.Less(t, m.find(d, b.Key, b.Args), 0)
			}
		},
		"route": func(t *rapid.T) {
			key, h := routingKey.Draw(t, "key"), table.Draw(t, "headers")
			got := r.Route([]byte(key), func() amqp.Table { return h }, nil)
			slices.Sort(got)
			require.Equal(t, m.route(key, h), got, "key %q headers %v bindings %v", key, h, m.bindings)
		},
		"": func(t *rapid.T) {
			require.Equal(t, len(m.bindings), r.Len())
			n := 0
			r.Each(func(b Binding[int]) bool {
				require.GreaterOrEqual(t, m.find(b.Destination, b.Key, b.Args), 0)
				n++
				return true
			})
			require.Equal(t, len(m.bindings), n)
		},
	})
	for _, b := range m.bindings {
		_, removed := r.Unbind(b.Destination, b.Key, b.Args)
		require.True(t, removed)
	}
	require.Zero(t, r.Len())
	if trie, ok := r.(*topic[int]); ok {
		requireBare(t, trie)
	}
}
