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

// change makes or removes a binding in both, at random.
func change(t *rapid.T, r Router[int], m *naive, dest *rapid.Generator[int]) {
	if len(m.bindings) > 0 && rapid.Bool().Draw(t, "unbind") {
		i := rapid.IntRange(0, len(m.bindings)-1).Draw(t, "i")
		b := m.bindings[i]
		bound, removed := r.Unbind(b.Destination, b.Key, b.Args)
		require.True(t, removed)
		require.Equal(t, b.Args, bound)
		m.bindings = slices.Delete(slices.Clone(m.bindings), i, i+1)
		return
	}
	d, key, args := dest.Draw(t, "d"), pattern.Draw(t, "key"), bindArgs(t)
	added := m.find(d, key, args) < 0
	require.Equal(t, added, r.Bind(d, key, args))
	if added {
		m.bindings = append(slices.Clone(m.bindings), Binding[int]{d, key, args})
	}
}

func checkModel(t *rapid.T, k Kind) {
	r, m := New[int](k), &naive{kind: k}
	dest := rapid.IntRange(0, rapid.SampledFrom([]int{3, 60}).Draw(t, "destinations"))
	t.Repeat(map[string]func(*rapid.T){
		"change": func(t *rapid.T) {
			for range rapid.IntRange(1, 10).Draw(t, "changes") {
				change(t, r, m, dest)
			}
		},
		"unbind what is not bound": func(t *rapid.T) {
			_, removed := r.Unbind(-1, "", nil)
			require.False(t, removed)
			require.Empty(t, r.UnbindSome(-1, all))
		},
		"unbind some": func(t *rapid.T) {
			d, most := dest.Draw(t, "d"), rapid.IntRange(1, 5).Draw(t, "most")
			has := 0
			for _, b := range m.bindings {
				if b.Destination == d {
					has++
				}
			}
			removed := r.UnbindSome(d, most)
			require.Len(t, removed, min(most, has))
			for _, b := range removed {
				i := m.find(b.Destination, b.Key, b.Args)
				require.Equal(t, d, m.bindings[i].Destination)
				m.bindings = slices.Delete(m.bindings, i, i+1)
			}
		},
		"route": func(t *rapid.T) {
			key, h := routingKey.Draw(t, "key"), table.Draw(t, "headers")
			got := r.Route([]byte(key), func() amqp.Table { return h }, nil, nil)
			slices.Sort(got)
			require.Equal(t, m.route(key, h), got, "key %q headers %v bindings %v", key, h, m.bindings)
		},
		"route with pauses": func(t *rapid.T) { checkPauses(t, r, m, dest) },
		"": func(t *rapid.T) {
			require.Equal(t, len(m.bindings), r.Len())
			n := 0
			r.Each(func(b Binding[int]) bool {
				require.GreaterOrEqual(t, m.find(b.Destination, b.Key, b.Args), 0)
				n++
				return true
			})
			require.Equal(t, len(m.bindings), n)
			to, n := dest.Draw(t, "to"), 0
			require.True(t, r.EachTo(to, func(b Binding[int]) bool {
				require.Equal(t, to, b.Destination)
				n++
				return true
			}))
			for _, b := range m.bindings {
				if b.Destination == to {
					n--
				}
			}
			require.Zero(t, n)
		},
	})
	for _, b := range m.bindings {
		_, removed := r.Unbind(b.Destination, b.Key, b.Args)
		require.True(t, removed)
	}
	require.Zero(t, r.Len())
	switch r := r.(type) {
	case *topic[int]:
		requireBare(t, r)
	case *headers[int]:
		require.Empty(t, r.dests)
		require.Empty(t, r.under)
		require.Empty(t, r.always.list)
		require.Zero(t, r.marks.next)
	}
}

// checkPauses routes with a pause every few steps, in which bindings may change. What is bound all the time is found,
// and nothing that was not bound at any time. Without changes, each destination is found once.
func checkPauses(t *rapid.T, r Router[int], m *naive, dest *rapid.Generator[int]) {
	key, h := routingKey.Draw(t, "key"), table.Draw(t, "headers")
	always, ever := slices.Clone(m.bindings), slices.Clone(m.bindings)
	changes := rapid.IntRange(0, 5).Draw(t, "changes")
	pace := &Pace{every: rapid.IntRange(1, 6).Draw(t, "every"), Pause: func() {
		if changes--; changes < 0 {
			return
		}
		change(t, r, m, dest)
		ever = append(ever, m.bindings...)
		always = slices.DeleteFunc(always, func(b Binding[int]) bool { return m.find(b.Destination, b.Key, b.Args) < 0 })
	}}
	unchanged := changes == 0
	got := r.Route([]byte(key), func() amqp.Table { return h }, nil, pace)
	slices.Sort(got)
	if unchanged {
		require.Equal(t, m.route(key, h), got)
	}
	require.Subset(t, got, (&naive{m.kind, always}).route(key, h), "key %q headers %v bindings %v", key, h, always)
	require.Subset(t, (&naive{m.kind, ever}).route(key, h), got, "key %q headers %v bindings %v", key, h, ever)
}
