package main

import (
	"fmt"

	"curfew/integration/bench/load"
)

// curve shows how a rate depends on the size of something.
type curve struct {
	Chart  string  `json:"chart"`  // "queues"
	X      string  `json:"x"`      // what grows
	Series string  `json:"series"` // whose
	Points []point `json:"points"`
}

type point struct {
	X float64 `json:"x"`
	Y float64 `json:"perSecond"`
}

// curve adds an empty curve.
func (r *report) curve(chart, x, series string) *curve {
	added := &curve{Chart: chart, X: x, Series: series}
	r.Curves = append(r.Curves, added)
	return added
}

func (c *curve) addPoint(x, y float64) { c.Points = append(c.Points, point{x, y}) }

// curves compares Curfew with RabbitMQ's classic queues while one thing grows, with one
// pass each. It shows shapes and judges nothing.
func (b *bench) curves() error {
	c, err := b.curfew()
	if err != nil {
		return err
	}
	peers, err := b.rabbitMQ()
	if err != nil {
		return err
	}
	sides := []*side{c, peers[0]}
	defer b.setPasses(1)()
	for _, g := range growths {
		if b.quick {
			g.values = g.values[:3]
		}
		if err := b.grow(g, sides); err != nil {
			return err
		}
	}
	return b.shapes(sides)
}

// growth is a workload in which one number grows.
type growth struct {
	chart, x string
	values   []int
	peerMost int // the limit for RabbitMQ, which takes minutes to declare and delete ten thousand queues
	spec     func(n int) load.Spec
}

var growths = []growth{
	{"size", "octets of a body", []int{16, 128, 1024, 8192, 65536}, 65536, func(n int) load.Spec {
		return load.Spec{Size: n, Producers: 1, Consumers: 1, Ack: "each"}
	}},
	{"queues", "queues, one producer", []int{1, 10, 100, 1000, 10_000}, 1000, func(n int) load.Spec {
		return load.Spec{Size: 100, Producers: 1, Consumers: (n + 999) / 1000, Queues: n, Ack: "each"}
	}},
	{"connections", "connections that publish, and as many that consume", []int{1, 8, 64, 512}, 512, func(n int) load.Spec {
		return load.Spec{Size: 100, Producers: n, Consumers: n, Ack: "each"}
	}},
}

func (b *bench) grow(g growth, sides []*side) error {
	lines := make([]*curve, len(sides))
	for i, s := range sides {
		lines[i] = b.report.curve(g.chart, g.x, s.name)
	}
	for _, n := range g.values {
		if n > g.peerMost {
			sides = sides[:1]
		}
		rows, err := b.throughput("curves", fmt.Sprintf("%s %s", short(float64(n)), g.x), b.spec(g.spec(n)), sides)
		if err != nil {
			return err
		}
		for i, r := range rows {
			lines[i].addPoint(float64(n), r.Rate.median())
		}
	}
	return nil
}

// shapes runs workloads that differ in kind.
func (b *bench) shapes(sides []*side) error {
	for _, w := range []struct {
		work string
		spec load.Spec
	}{
		{"100 B, publish only", load.Spec{Producers: 1}},
		{"100 B, auto ack", load.Spec{Producers: 1, Consumers: 1, Ack: "auto"}},
		{"100 B, acks of many", load.Spec{Producers: 1, Consumers: 1, Ack: "multiple"}},
		{"100 B, fan-out to 10 queues", load.Spec{Producers: 1, Consumers: 10, Queues: 10, Ack: "each", Exchange: "fanout"}},
		{"100 B, topic, 100 patterns", load.Spec{Producers: 1, Consumers: 1, Queues: 100, Ack: "each", Exchange: "topic"}},
		{"100 B, at 1,000/s: latency", load.Spec{Producers: 1, Consumers: 1, Ack: "each", Rate: 1000}},
		{"100 B, at 10,000/s: latency", load.Spec{Producers: 1, Consumers: 1, Ack: "each", Rate: 10_000}},
	} {
		w.spec.Size = 100
		if _, err := b.throughput("shapes", w.work, b.spec(w.spec), sides); err != nil {
			return err
		}
	}
	return nil
}
