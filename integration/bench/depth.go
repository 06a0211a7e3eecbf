package main

import (
	"fmt"
	"time"

	"curfew/integration/bench/load"
)

// depthTTL is the time to live of the messages in the queue: they have deadlines, but none
// comes due.
const depthTTL = 10 * time.Hour

// shallow is the depth that the deepest queue is compared with.
const shallow = 10_000

// dueRounds is how often messages come due in one pass: it takes them 0.13 s, in which one
// interruption makes the difference.
const dueRounds = 3

// depth fills one queue step by step to ten million messages of 1 KiB with deadlines. At
// each step it measures the memory per message, and how fast other messages pass through
// the full queue: from the tail to the head, and due in the middle. The last step
// alternates with a shallow queue in another Curfew.
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
	for depth := 1000; depth < most; depth *= 10 {
		if err := d.measureAt(depth); err != nil {
			return err
		}
	}
	return d.deepest(most)
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

// base is the workload at a depth. The messages at the head are consumed, so the depth
// stays about the same.
func (d *depths) base() load.Spec {
	s := d.spec(load.Spec{Size: 1024, Producers: 1, Consumers: 1, Ack: "each", TTL: depthTTL})
	s.URL, s.Name, s.Reuse, s.Keep = d.side.broker.url, "curfew.bench.depth.", true, true
	return s
}

// warm declares the queue and sends some messages through it, so that the first step is as
// warm as the others.
func (d *depths) warm() error {
	s := d.base()
	s.Reuse = false
	_, err := inProcess[load.Result]("throughput", s)
	return err
}

// fillTo publishes until depth messages are queued, and measures the memory of each.
func (d *depths) fillTo(depth int) error {
	s := d.base()
	s.Consumers, s.Window, s.Warmup, s.Duration, s.Count = 0, 10_000, 0, 10*time.Minute, depth-d.filled
	filled, err := inProcess[load.Result]("throughput", s)
	if err != nil {
		return err
	}
	d.filled, d.fill = depth, filled.Published
	own, _ := memory(d.side.broker.cmd.Process.Pid)
	d.each = float64(own-d.empty) / float64(depth)
	return nil
}

// passages are rows of messages that pass through the queue at its present depth.
type passages struct{ through, due *row }

func (d *depths) passages(work string) passages {
	return passages{d.report.row("P9", work+": in and out", "Curfew"), d.report.row("P9", work+": due mid-queue", "Curfew")}
}

// once sends messages through the queue, and lets others come due in the middle.
func (d *depths) once(into passages) error {
	if err := pass(d.base(), d.side, into.through); err != nil {
		return err
	}
	queue := d.base()
	for range dueRounds {
		if _, err := d.dueOnce(load.Due{Count: 200_000, Lead: time.Second, Size: 1024, Queue: queue.QueueName(0)}, d.side, into.due); err != nil {
			return err
		}
	}
	return nil
}

// done prints the results at a depth.
func (d *depths) done(p passages) {
	p.through.P50, p.through.P99 = stat{}, stat{} // these messages have waited in the queue
	p.through.Note = fmt.Sprintf("filled at %s/s", short(d.fill))
	if d.filled >= 1_000_000 { // below that the process itself takes more
		_, mapped := memory(d.side.broker.cmd.Process.Pid)
		p.through.Note += fmt.Sprintf("; %.0f B each, page cache not counted (%d MiB more mapped)", d.each, (mapped-d.mapped)>>20)
	}
	fmt.Printf("%s\n%s\n", p.through, p.due)
}

func (d *depths) measureAt(depth int) error {
	if err := d.fillTo(depth); err != nil {
		return err
	}
	p := d.passages(short(float64(depth)) + " queued, 1 KiB, with TTL")
	for range d.passes {
		if err := d.once(p); err != nil {
			return err
		}
	}
	d.done(p)
	d.addToCurves(depth, p)
	return nil
}

// addToCurves adds the medians to the curves.
func (d *depths) addToCurves(depth int, p passages) {
	d.rates.addPoint(float64(depth), p.through.Rate.median())
	d.expiry.addPoint(float64(depth), p.due.Rate.median())
}

// deepest fills the queue to the last step and alternates it with a shallow one.
func (d *depths) deepest(most int) error {
	if err := d.fillTo(most); err != nil {
		return err
	}
	c, _, err := d.startCurfew(d.dataDir())
	if err != nil {
		return err
	}
	defer c.stop()
	small := &depths{bench: d.bench, side: &side{name: "Curfew", broker: c}}
	if err := small.warm(); err != nil {
		return err
	}
	if err := small.fillTo(shallow); err != nil {
		return err
	}
	deep := d.passages(short(float64(most)) + " queued, 1 KiB, with TTL")
	compared := d.passages(short(shallow) + " queued, in turn with these")
	defer d.setPasses(d.repeats)()
	once := []func() error{func() error { return small.once(compared) }, func() error { return d.once(deep) }}
	if err := d.alternate(len(once), func(i int) error { return once[i]() }); err != nil {
		return err
	}
	d.done(deep)
	small.done(compared)
	d.addToCurves(most, deep)
	d.judge(most, deep, compared)
	return nil
}

func (d *depths) judge(most int, deep, compared passages) {
	d.report.goal(goal{
		Goal: "P9", What: short(float64(most)) + " messages of 1 KiB with deadlines, memory", Want: "<= 96 B each beyond page cache",
		Got: fmt.Sprintf("%.0f B", d.each), Met: d.each <= 96,
	})
	for _, g := range []struct {
		what           string
		deep, compared *row
	}{
		{d.rates.Series, deep.through, compared.through},
		{d.expiry.Series, deep.due, compared.due},
	} {
		d.report.goal(goal{
			Goal: "P9", What: g.what + " at " + short(float64(most)), Want: ">= 0.9 of the rate at 10,000",
			Got:   fmt.Sprintf("%s/s, %s/s at 10,000", short(g.deep.Rate.median()), short(g.compared.Rate.median())),
			Ratio: ratioWithSpread(g.deep, g.compared), Met: ratio(g.deep, g.compared) >= 0.9,
		})
	}
}
