package exchange

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
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
// common. The least of several times counts, since the processor may be busy; what is compared is so far apart that a cache which
// holds the few and not the many makes no difference.
func TestManyBindings(t *testing.T) {
	const n, more, slack = 1000, 32, 8
	for name, binding := range manyBindings {
		for _, k := range kinds {
			t.Run(name+"/"+string(k), func(t *testing.T) {
				few, many := bindAndUnbind(t, k, n, binding), bindAndUnbind(t, k, more*n, binding)
				for began := time.Now(); many > slack*more*few && time.Since(began) < 10*time.Second; {
					few, many = min(few, bindAndUnbind(t, k, n, binding)), min(many, bindAndUnbind(t, k, more*n, binding))
				}
				assert.LessOrEqual(t, many, slack*more*few, "%d bindings take %s, and %d times as many %s", n, few, more, many)
			})
		}
	}
}

func bindAndUnbind(t *testing.T, k Kind, n int, binding func(i int) Binding[int]) time.Duration {
	list := make([]Binding[int], n)
	for i := range list {
		list[i] = binding(i)
	}
	r, began := New[int](k), time.Now()
	for _, b := range list {
		require.True(t, r.Bind(b.Destination, b.Key, b.Args))
	}
	for _, b := range list[:n/2] {
		_, removed := r.Unbind(b.Destination, b.Key, b.Args)
		require.True(t, removed)
	}
	for _, b := range list {
		for len(r.UnbindSome(b.Destination, 256)) > 0 {
			continue
		}
	}
	require.Zero(t, r.Len())
	return time.Since(began)
}
