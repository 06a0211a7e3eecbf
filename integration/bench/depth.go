package main

import (
	"fmt"
	"time"

	"curfew/cmd/curfew/load"
)

// depthTTL is the time to live of the messages that lie there: they have deadlines, and none comes due.
const depthTTL = 10 * time.Hour

// depth fills one queue step by step to ten million messages of 1 KiB with deadlines. At each step it measures what a
// message takes of memory, and how fast others go through the full queue: in at the tail and out at the head, and due in
// its middle.
func (b *bench) depth() error {
	most := 10_000_000
	if b.quick {
		most = 1_000_000
	}
	c, _, err := b.startCurfew(b.dataDir(), "MEMORY_LIMIT=90%")
	if err != nil {
		return err
	}
	defer c.stop()
	d := &depths{bench: b, side: &side{name: "Curfew", broker: c}, rates: b.report.curve("depth", "messages of 1 KiB queued", "through the queue"),
		expiry: b.report.curve("depth", "messages of 1 KiB queued", "due mid-queue, dropped")}
	if err := d.warm(); err != nil {
		return err
	}
	d.empty, d.mapped = memory(c.cmd.Process.Pid)
	for depth := 1000; depth <= most; depth *= 10 {
		if err := d.at(depth); err != nil {
			return err
		}
	}
	d.judge(most)
	return nil
}

type depths struct {
	*bench
	side          *side
	rates, expiry *curve
	filled        int
	empty, mapped int64 // before the first message
	each          float64
	fill          float64
}

// base is the workload at a depth; what is at the head goes out, so the depth stays.
func (d *depths) base() load.Spec {
	s := d.spec(load.Spec{Size: 1024, Producers: 1, Consumers: 1, Ack: "each", TTL: depthTTL})
	s.URL, s.Reuse, s.Keep = d.side.broker.url, true, true
	return s
}

// warm makes the queue and sends some through it, so that the first step is no colder than the others.
func (d *depths) warm() error {
	s := d.base()
	s.Reuse = false
	_, err := inProcess[load.Result]("throughput", s)
	return err
}

func (d *depths) at(depth int) error {
	s := d.base()
	s.Consumers, s.Window, s.Warmup, s.Duration, s.Count = 0, 10_000, 0, 10*time.Minute, depth-d.filled
	filled, err := inProcess[load.Result]("throughput", s)
	if err != nil {
		return err
	}
	d.filled, d.fill = depth, filled.Published
	own, mapped := memory(d.side.broker.cmd.Process.Pid)
	d.each = float64(own-d.empty) / float64(depth)

	work := short(float64(depth)) + " queued, 1 KiB, with TTL"
	through, due := d.report.row("P9", work+": in and out", "Curfew"), d.report.row("P9", work+": due mid-queue", "Curfew")
	for range d.passes {
		if err := pass(d.base(), d.side, through); err != nil {
			return err
		}
		if _, err := d.dueOnce(load.Due{Count: 50_000, Lead: 2 * time.Second, Size: 1024, Queue: load.QueueName(0)}, d.side, due); err != nil {
			return err
		}
	}
	through.P50, through.P99 = stat{}, stat{} // of messages that have lain there
	through.Note = fmt.Sprintf("filled at %s/s", short(d.fill))
	if depth >= 1_000_000 { // else what the process needs anyway is more
		through.Note += fmt.Sprintf("; %.0f B each, page cache not counted (%d MiB more mapped)", d.each, (mapped-d.mapped)>>20)
	}
	d.rates.add(float64(depth), through.Rate.median())
	d.expiry.add(float64(depth), due.Rate.median())
	fmt.Printf("%s\n%s\n", through, due)
	return nil
}

func (d *depths) judge(most int) {
	d.report.goal(goal{
		Goal: "P9", What: short(float64(most)) + " messages of 1 KiB with deadlines, memory", Want: "<= 96 B each beyond page cache",
		Got: fmt.Sprintf("%.0f B", d.each), Met: d.each <= 96,
	})
	for _, c := range []*curve{d.rates, d.expiry} {
		at, base := c.at(float64(most)), c.at(10_000)
		d.report.goal(goal{
			Goal: "P9", What: c.Series + " at " + short(float64(most)), Want: ">= 0.9 of the rate at 10,000",
			Got: fmt.Sprintf("%s/s, %s/s at 10,000", short(at), short(base)), Ratio: fmt.Sprintf("%.2f", at/base), Met: at >= 0.9*base,
		})
	}
}
