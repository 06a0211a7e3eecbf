package main

import (
	"fmt"
	"time"

	"curfew/integration/bench/load"
)

// recovery fills a queue with persistent messages and then kills and starts Curfew again
// and again.
func (b *bench) recovery() error {
	count := 1_000_000
	dir := b.dataDir()
	c, _, err := b.startCurfew(dir)
	if err != nil {
		return err
	}
	fill := load.Spec{
		URL: c.url, Name: "curfew.bench.kept.", Size: 1024, Producers: 1, Persist: true, Window: 10_000, Count: count, Keep: true, Duration: 5 * time.Minute,
	}
	_, err = inProcess[load.Result]("throughput", fill)
	c.stop()
	if err != nil {
		return err
	}
	row := b.report.row("P10", "1M persistent, 1 KiB: killed, started", "Curfew")
	for range b.passes {
		c, took, err := b.startCurfew(dir)
		if err != nil {
			return err
		}
		n, err := load.QueueLength(c.url, fill.QueueName(0))
		c.stop()
		if err == nil && n != count {
			err = fmt.Errorf("%d of %d messages came back", n, count)
		}
		if err != nil {
			return err
		}
		row.P50.add(float64(took.Microseconds()))
		row.P99.add(float64(took.Microseconds()))
	}
	took := row.P50.median()
	_, most := row.P50.spread()
	row.P99 = stat{Values: []float64{most}}
	row.Note = "to readyz, median and longest; page cache warm"
	fmt.Println(row)
	b.report.goal(goal{Goal: "P10", What: "recovery of 1M persistent messages of 1 KiB", Want: "<= 3 s to serving", Got: micros(took), Met: took <= 3e6})
	return nil
}
