package main

import (
	"fmt"
	"time"

	"curfew/integration/bench/load"
)

// shadows runs P1 with a time to live on every message: without a monitor, with the
// embedded schedule, and with Redis.
func (b *bench) shadows() error {
	defer b.setPasses(b.repeats)()
	c, err := b.curfew()
	if err != nil {
		return err
	}
	off, _, err := b.startCurfew(b.dataDir(), "MONITOR=false")
	if err != nil {
		return err
	}
	defer off.stop()
	onRedis, stop, err := b.redisSide()
	if err != nil {
		return err
	}
	defer stop()
	sides := []*side{{name: "Curfew, MONITOR=false", broker: off}, c, onRedis}
	for _, n := range []int{1, 4} {
		work := fmt.Sprintf("100 B with TTL, %dP%dC", n, n)
		rows, err := b.throughput("P8", work, b.spec(load.Spec{
			Size: 100, Producers: n, Consumers: n, Ack: "each", TTL: time.Minute,
		}), sides)
		if err != nil {
			return err
		}
		for i, want := range map[int]float64{1: 0.9, 2: 0.7} {
			b.report.goal(goal{
				Goal: "P8", What: work + ", " + sides[i].name, Want: fmt.Sprintf(">= %g of MONITOR=false", want),
				Got:   fmt.Sprintf("%s/s, %s/s without", short(rows[i].Rate.median()), short(rows[0].Rate.median())),
				Ratio: ratioWithSpread(rows[i], rows[0]), Met: ratio(rows[i], rows[0]) >= want,
			})
		}
	}
	return nil
}
