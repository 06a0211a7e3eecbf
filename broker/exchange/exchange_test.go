package exchange

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/amqp"
)

var kinds = []Kind{Direct, Fanout, Topic, Headers}

func TestParseKind(t *testing.T) {
	for _, k := range kinds {
		got, ok := ParseKind(string(k))
		assert.True(t, ok)
		assert.Equal(t, k, got)
	}
	for _, name := range []string{"", "Direct", "x-delayed-message"} {
		_, ok := ParseKind(name)
		assert.False(t, ok, name)
	}
	assert.Panics(t, func() { New[string]("x-unknown") })
}

// all is for UnbindSome: more bindings than a test makes.
const all = 1 << 20

func route(r Router[string], key string, h amqp.Table) []string {
	out := r.Route([]byte(key), func() amqp.Table { return h }, nil, nil)
	slices.Sort(out)
	return out
}

func TestDirectMatchesTheWholeKey(t *testing.T) {
	r := New[string](Direct)
	r.Bind("a", "k", nil)
	r.Bind("b", "k", nil)
	r.Bind("c", "k.l", nil)
	r.Bind("d", "", nil)
	assert.Equal(t, []string{"a", "b"}, route(r, "k", nil))
	assert.Equal(t, []string{"c"}, route(r, "k.l", nil))
	assert.Equal(t, []string{"d"}, route(r, "", nil))
	assert.Empty(t, route(r, "K", nil))
}

func TestFanoutIgnoresTheKey(t *testing.T) {
	r := New[string](Fanout)
	r.Bind("a", "k", nil)
	r.Bind("a", "l", nil)
	r.Bind("b", "", nil)
	assert.Equal(t, []string{"a", "b"}, route(r, "anything", nil))
	r.Unbind("a", "k", nil)
	assert.Equal(t, []string{"a", "b"}, route(r, "", nil))
	r.Unbind("a", "l", nil)
	assert.Equal(t, []string{"b"}, route(r, "", nil))
}

// The arguments are part of a binding's identity in every type of exchange.
func TestBindingIdentity(t *testing.T) {
	red, blue := amqp.Table{"colour": "red"}, amqp.Table{"colour": "blue"}
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			r := New[string](k)
			assert.True(t, r.Bind("q", "k", red))
			assert.True(t, r.Bind("q", "k", blue))
			assert.False(t, r.Bind("q", "k", amqp.Table{"colour": []byte("red")}), "identical")
			assert.Equal(t, 2, r.Len())
			assert.Equal(t, []string{"q"}, route(r, "k", red), "once")

			for _, b := range []Binding[string]{{"q", "k", nil}, {"q", "l", red}, {"p", "k", red}} {
				_, removed := r.Unbind(b.Destination, b.Key, b.Args)
				assert.False(t, removed, "%v", b)
			}
			bound, removed := r.Unbind("q", "k", amqp.Table{"colour": []byte("red")})
			assert.True(t, removed)
			assert.Equal(t, red, bound, "as it was bound")
			_, removed = r.Unbind("q", "k", red)
			assert.False(t, removed)
			assert.Equal(t, []string{"q"}, route(r, "k", blue), "the other stays")
			assert.Equal(t, []Binding[string]{{"q", "k", blue}}, r.UnbindSome("q", all))
			assert.Empty(t, r.UnbindSome("q", all))
			assert.Empty(t, route(r, "k", blue))
			assert.Zero(t, r.Len())
		})
	}
}

func TestRouteAppends(t *testing.T) {
	for _, k := range kinds {
		r := New[string](k)
		r.Bind("q", "k", nil)
		none := func() amqp.Table { return nil }
		assert.Equal(t, []string{"q", "q"}, r.Route([]byte("k"), none, []string{"q"}, nil), "%s: what out holds is not looked at", k)
	}
}

func TestEachStopsWhenTold(t *testing.T) {
	for _, k := range kinds {
		r := New[string](k)
		args := amqp.Table{"n": int32(1)}
		r.Bind("q", "k", args)
		r.Bind("q", "l", nil)
		r.Bind("p", "k", nil)
		var found []Binding[string]
		r.Each(func(b Binding[string]) bool { found = append(found, b); return true })
		assert.ElementsMatch(t, []Binding[string]{{"q", "k", args}, {"q", "l", nil}, {"p", "k", nil}}, found)
		calls := 0
		r.Each(func(Binding[string]) bool { calls++; return false })
		assert.Equal(t, 1, calls)
	}
}

func TestRouteDoesNotAllocate(t *testing.T) {
	key := []byte("stock.nyse.ibm")
	for _, k := range []Kind{Direct, Fanout, Topic} {
		r := New[*int](k)
		for _, pattern := range []string{"stock.nyse.ibm", "stock.*.ibm", "stock.#", "#.nyse.#", "#.ibm.#", "*.*.*"} {
			r.Bind(new(int), pattern, nil)
		}
		several := new(int)
		r.Bind(several, "#", nil)
		r.Bind(several, "stock.nyse.*", nil)
		out := make([]*int, 0, 16)
		assert.Zero(t, testing.AllocsPerRun(100, func() { out = r.Route(key, nil, out[:0], nil) }), k)
		assert.NotEmpty(t, out, k)
	}
}
