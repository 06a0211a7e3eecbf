package main

import (
	"fmt"
	"time"

	"curfew/integration/bench/load"
)

// floodAge is how old deliveries may be, at p99, from before the write: including the time
// in the sockets' buffers.
const floodAge = time.Second

// flood has producers publish without confirms as fast as they can, which a client with a
// bounded backlog does not. They alternate with producers that have a bound. Consumers must
// keep up.
func (b *bench) flood() error {
	c, err := b.curfew()
	if err != nil {
		return err
	}
	var floods []*flood
	for _, f := range []*flood{
		{work: "100 B, 1P1C", spec: load.Spec{Producers: 1, Consumers: 1}},
		{work: "100 B, 4P4C, 4 queues", spec: load.Spec{Producers: 4, Consumers: 4}},
		{work: "100 B, 16P1C, 1 queue", spec: load.Spec{Producers: 16, Consumers: 1, Queues: 1}},
	} {
		f.spec.Size, f.spec.Ack = 100, "each"
		f.spec = b.spec(f.spec)
		f.closed = b.report.row("P13", f.work+", backlog bounded", c.name)
		f.consumed = b.report.row("P13", f.work+", flood, consumed", c.name)
		f.published = b.report.row("P13", f.work+", flood, published", c.name)
		floods = append(floods, f)
	}
	err = b.alternate(2*len(floods), func(i int) error {
		f := floods[i/2]
		if i%2 == 0 {
			return pass(f.spec, c, f.closed)
		}
		return f.pass(c)
	})
	if err != nil {
		return err
	}
	for _, f := range floods {
		fmt.Printf("%s\n%s\n%s\n", f.closed, f.consumed, f.published)
		b.report.goal(f.judge())
	}
	return nil
}

type flood struct {
	work                        string
	spec                        load.Spec
	closed, consumed, published *row
}

// pass runs one flood.
func (f *flood) pass(side *side) error {
	s := f.spec
	s.URL, s.Backlog = side.broker.url, 0
	pid := side.broker.cmd.Process.Pid
	before := treeCPU(pid)
	r, err := inProcess[load.Result]("throughput", s)
	if err != nil {
		return err
	}
	f.consumed.add(r, treeCPU(pid)-before, true)
	f.published.Rate.add(r.Published)
	return nil
}

func (f *flood) judge() goal {
	kept, reached, age := ratio(f.consumed, f.published), ratio(f.consumed, f.closed), f.consumed.P99.median()
	return goal{
		Goal: "P13", What: f.work + ", flood",
		Want:  "consumed >= 0.8 of published, >= 0.5 of what a bounded backlog reaches; p99 < 1 s old",
		Got:   fmt.Sprintf("%s/s of %s/s, bounded %s/s; p99 %s", short(f.consumed.Rate.median()), short(f.published.Rate.median()), short(f.closed.Rate.median()), micros(age)),
		Ratio: fmt.Sprintf("%.2f of published, %.2f of bounded", kept, reached),
		Met:   kept >= 0.8 && reached >= 0.5 && age > 0 && age < float64(floodAge.Microseconds()),
	}
}
