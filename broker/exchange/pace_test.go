package exchange

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/amqp"
)

// TestLongRoutesPause: a route that has to look at much lets others in, again and again, and still finds everything.
func TestLongRoutesPause(t *testing.T) {
	for name, c := range map[string]struct {
		kind Kind
		bind func(r Router[int])
		key  string
		h    amqp.Table
		want int
	}{
		"a '#' above many nodes": {Topic, func(r Router[int]) {
			for i := range 1 << 10 {
				words := []string{"#"}
				for bit := range 10 {
					words = append(words, []string{"a", "*"}[i>>bit&1])
				}
				r.Bind(i%3, strings.Join(words, "."), nil)
			}
		}, strings.TrimSuffix(strings.Repeat("a.", 100), "."), nil, 3},
		"many destinations of one pattern": {Topic, func(r Router[int]) {
			for i := range 100_000 {
				r.Bind(i, "#", nil)
			}
		}, "a", nil, 100_000},
		"many bindings that nearly match": {Headers, func(r Router[int]) {
			for i := range 20_000 {
				args := amqp.Table{}
				for bit := range 15 {
					if i>>bit&1 == 1 {
						args[fmt.Sprint("h", bit)] = "v"
					}
				}
				r.Bind(i%5, "", args)
			}
		}, "", amqp.Table{"h0": "v", "h1": "v", "h2": "v", "h5": "w", "h6": "v"}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			r := New[int](c.kind)
			c.bind(r)
			pauses := 0
			p := &Pace{every: 500, Pause: func() { pauses++ }}
			out := r.Route([]byte(c.key), func() amqp.Table { return c.h }, nil, p)
			assert.Len(t, out, c.want)
			assert.Equal(t, c.want, countDistinct(out))
			assert.Greater(t, pauses, 2)
		})
	}
}
