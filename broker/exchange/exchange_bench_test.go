package exchange

import (
	"fmt"
	"testing"

	"curfew/broker/amqp"
)

const benchBindings = 10_000

func BenchmarkRoute(b *testing.B) {
	for _, c := range []struct {
		name    string
		kind    Kind
		pattern string // of destination i
		args    func(i int) amqp.Table
		bound   int
	}{
		{"direct/one", Direct, "orders.%d", nil, 1},
		{"direct/10k", Direct, "orders.%d", nil, benchBindings},
		{"fanout/10", Fanout, "%d", nil, 10},
		{"topic/10k exact", Topic, "orders.%d", nil, benchBindings},
		{"topic/10k star", Topic, "*.%d", nil, benchBindings},
		{"topic/10k hash", Topic, "#.%d", nil, benchBindings},
		{"topic/10k two hashes", Topic, "#.%d.#", nil, benchBindings},
		{"headers/100", Headers, "%d", func(i int) amqp.Table { return amqp.Table{"id": int32(i)} }, 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := New[int](c.kind)
			for i := range c.bound {
				var args amqp.Table
				if c.args != nil {
					args = c.args(i)
				}
				r.Bind(i, fmt.Sprintf(c.pattern, i), args)
			}
			benchRoute(b, r, "orders.0")
		})
	}
}

func BenchmarkRouteTopicSeveralPatternsEach(b *testing.B) {
	r := New[int](Topic)
	for i := range benchBindings / 2 {
		r.Bind(i, fmt.Sprintf("orders.%d", i), nil)
		r.Bind(i, fmt.Sprintf("#.%d.#", i), nil)
	}
	benchRoute(b, r, "orders.0")
}

func benchRoute(b *testing.B, r Router[int], key string) {
	out, k, h := make([]int, 0, 16), []byte(key), amqp.Table{"id": int32(0)}
	fields := func() amqp.Table { return h }
	b.ReportAllocs()
	for b.Loop() {
		out = r.Route(k, fields, out[:0], nil)
	}
	if len(out) == 0 {
		b.Fatal("nothing routed")
	}
}

func BenchmarkBindUnbind(b *testing.B) {
	for _, k := range kinds {
		b.Run(string(k), func(b *testing.B) {
			r := New[int](k)
			for i := range benchBindings {
				r.Bind(i, fmt.Sprintf("orders.%d", i), nil)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Bind(-1, "orders.#", nil)
				r.Unbind(-1, "orders.#", nil)
			}
		})
	}
}
