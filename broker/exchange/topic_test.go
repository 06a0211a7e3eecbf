package exchange

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTopicPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern string
		matches []string
		misses  []string
	}{
		{"", []string{""}, []string{".", "a"}},
		{"a", []string{"a"}, []string{"", "a.", ".a", "a.a", "A"}},
		{"a.b", []string{"a.b"}, []string{"a", "a.b.c", "ab"}},
		{"*", []string{"a", "*", "#"}, []string{"", ".", "a.b"}},
		{"*.*", []string{"a.b", ".", "a.", ".b"}, []string{"a", "", "a.b.c", ".."}},
		{"a.*", []string{"a.b", "a."}, []string{"a", "a.b.c", "b.a"}},
		{"a..b", []string{"a..b"}, []string{"a.b", "a...b"}},
		{"#", []string{"", "a", "a.b", ".", "a.b.c.d"}, nil},
		{"a.#", []string{"a", "a.b", "a.b.c", "a."}, []string{"", "b", "b.a", "ab"}},
		{"#.a", []string{"a", "b.a", ".a", "a.a", "b.c.a"}, []string{"", "a.b", "a."}},
		{"a.#.b", []string{"a.b", "a.x.b", "a.b.b", "a..b"}, []string{"a", "b", "a.b.c"}},
		{"#.#", []string{"", "a", "a.b"}, nil},
		{"#.*", []string{"a", "a.b", "."}, []string{""}},
		{"*.#", []string{"a", "a.b", "."}, []string{""}},
		{"#.a.#", []string{"a", "a.a.a", "x.a.y", "x.a"}, []string{"", "x", "aa"}},
		{"#.a.#.b.#", []string{"a.b", "x.a.b.a.y", "a.a.b.b"}, []string{"b.a", "a", "b"}},
		{"*.a.#.*", []string{"x.a.y", "x.a.y.z"}, []string{"x.a", "a.y"}},
		{"a*", []string{"a*"}, []string{"ab", "a"}},
		{"a.b#", []string{"a.b#"}, []string{"a.b", "a.bc"}},
	} {
		r := New[string](Topic)
		r.Bind("q", c.pattern, nil)
		for _, key := range c.matches {
			assert.Equal(t, []string{"q"}, route(r, key, nil), "%q should match %q", c.pattern, key)
		}
		for _, key := range c.misses {
			assert.Empty(t, route(r, key, nil), "%q should not match %q", c.pattern, key)
		}
	}
}

func TestTopicManyPatternsOneDestination(t *testing.T) {
	r := New[string](Topic)
	for _, pattern := range []string{"#", "a.#", "*.b", "a.b", "#.b.#", "#.#"} {
		r.Bind("q", pattern, nil)
	}
	r.Bind("p", "#.b", nil)
	assert.Equal(t, []string{"p", "q"}, route(r, "a.b", nil))
}

// Beyond stackMarks the marks are on the heap, and everything else stays the same.
func TestTopicMoreMarksThanFitTheStack(t *testing.T) {
	r := New[int](Topic)
	const n = stackMarks + 100
	for i := range n {
		r.Bind(i, fmt.Sprint(i), nil)
		r.Bind(i, "all", nil)
		r.Bind(i, "*", nil)
	}
	assert.Len(t, r.Route([]byte("all"), nil, nil, nil), n)
	assert.Equal(t, n, countDistinct(r.Route([]byte("12"), nil, nil, nil)))
	for i := range n {
		r.UnbindSome(i, all)
	}
	requireBare(t, r.(*topic[int]))
}

func countDistinct(list []int) int {
	set := make(map[int]bool)
	for _, d := range list {
		set[d] = true
	}
	return len(set)
}

// A pattern with many '#' against a key of many words takes time in proportion to nodes and
// words. Trying every split would never end.
func TestTopicManyHashes(t *testing.T) {
	r := New[string](Topic)
	r.Bind("q", strings.Repeat("#.a.", 60)+"b", nil)
	key := strings.Repeat("a.", 127)
	assert.Empty(t, route(r, key[:len(key)-1], nil))
	assert.Equal(t, []string{"q"}, route(r, key[:len(key)-1]+".b", nil))
}

func TestTopicUnbindLeavesNothing(t *testing.T) {
	r := New[string](Topic).(*topic[string])
	patterns := []string{"", "a", "a.b", "#", "#.#", "a.#.b.#", "*.*", "a.*", "#.a.#.b"}
	for _, d := range []string{"p", "q"} {
		for _, pattern := range patterns {
			require.True(t, r.Bind(d, pattern, nil))
		}
	}
	for _, pattern := range patterns {
		_, removed := r.Unbind("p", pattern, nil)
		require.True(t, removed)
	}
	require.Len(t, r.UnbindSome("q", all), len(patterns))
	requireBare(t, r)
}

func requireBare[D comparable](t require.TestingT, r *topic[D]) {
	require.Zero(t, r.Len())
	require.True(t, r.root.leaf())
	require.Empty(t, r.root.targets.list)
	require.Empty(t, r.dests)
	require.Zero(t, r.marks.next)
	require.Empty(t, r.bound)
}
