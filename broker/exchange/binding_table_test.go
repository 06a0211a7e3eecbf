package exchange

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/integration/testenv"
)

// manyBindings are the i-th of many bindings that have something in common.
var manyBindings = map[string]func(i int) Binding[int]{
	"arguments of one destination and key": func(i int) Binding[int] { return Binding[int]{0, "k", amqp.Table{"a": int32(i), "b": int32(i)}} },
	"one argument that is the same": func(i int) Binding[int] {
		return Binding[int]{i, "k", amqp.Table{"a": "same", "b": "same too", "c": int32(i), "x-match": "all"}}
	},
	"any of several arguments": func(i int) Binding[int] {
		return Binding[int]{i % 100, "k", amqp.Table{"a": int32(i), "b": int32(i), "x-match": "any"}}
	},
	"no arguments":            func(i int) Binding[int] { return Binding[int]{i, "k", nil} },
	"keys of one destination": func(i int) Binding[int] { return Binding[int]{0, fmt.Sprint("k.", i), nil} },
	"destinations of one key": func(i int) Binding[int] { return Binding[int]{i, "#", amqp.Table{"a": true}} },
	"arguments that are a table": func(i int) Binding[int] {
		return Binding[int]{0, "k", amqp.Table{"a": amqp.Table{"b": []any{int32(i)}}}}
	},
}

// TestManyBindings: making, listing and removing bindings takes time in proportion to their number, whatever they have in
// common.
func TestManyBindings(t *testing.T) {
	const n, more, slack = 1000, 32, 8
	for name, binding := range manyBindings {
		list := make([]Binding[int], more*n)
		for i := range list {
			list[i] = binding(i)
		}
		for _, k := range kinds {
			t.Run(name+"/"+string(k), func(t *testing.T) {
				testenv.InProportion(t, slack*more, fmt.Sprint(more, " times as many bindings"), func() { bindAndUnbind(t, k, list[:n]) }, func() { bindAndUnbind(t, k, list) })
			})
		}
	}
}

func bindAndUnbind(t *testing.T, k Kind, list []Binding[int]) {
	r := New[int](k)
	for _, b := range list {
		require.True(t, r.Bind(b.Destination, b.Key, b.Args))
	}
	for _, b := range list[:len(list)/2] {
		_, removed := r.Unbind(b.Destination, b.Key, b.Args)
		require.True(t, removed)
	}
	for _, b := range list {
		for len(r.UnbindSome(b.Destination, 256)) > 0 {
			continue
		}
	}
	require.Zero(t, r.Len())
}
