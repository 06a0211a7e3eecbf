package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"curfew/integration/bench/load"
)

// floodAge is how old deliveries may be, at p99, from before the write: including the time
// in the sockets' buffers.
const floodAge = time.Second

// flood has producers publish without confirms as fast as they can, which a client with a
// bounded backlog does not. They alternate with producers that have a bound. Consumers must
// keep up in every pass, beside processes that keep each processor busy as well.
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
		busy := &flood{work: f.work + ", busy machine", spec: f.spec, busy: true}
		for _, f := range []*flood{f, busy} {
			f.closed = b.report.row("P13", f.work+", backlog bounded", c.name)
			f.consumed = b.report.row("P13", f.work+", flood, consumed", c.name)
			f.published = b.report.row("P13", f.work+", flood, published", c.name)
			floods = append(floods, f)
		}
	}
	err = b.alternate(2*len(floods), func(i int) error {
		f := floods[i/2]
		if f.busy {
			idle, err := keepBusy()
			defer idle()
			if err != nil {
				return err
			}
		}
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
	busy                        bool
	closed, consumed, published *row
}

// keepBusy runs a process on each processor that does nothing else, until idle is called.
func keepBusy() (idle func(), err error) {
	var running []*exec.Cmd
	idle = func() {
		for _, cmd := range running {
			cmd.Process.Kill() //nolint:errcheck // it has not ended
			cmd.Wait()         //nolint:errcheck // killed
		}
	}
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return idle, err
		}
		running = append(running, cmd)
	}
	return idle, nil
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
	ratios := f.consumed.Rate.ratios(&f.published.Rate)
	kept, _ := ratios.spread()
	reached, age := ratio(f.consumed, f.closed), f.consumed.P99.median()
	return goal{
		Goal: "P13", What: f.work + ", flood",
		Want:  "consumed >= 0.8 of published in every pass, >= 0.5 of what a bounded backlog reaches; p99 < 1 s old",
		Got:   fmt.Sprintf("%s/s of %s/s, bounded %s/s; p99 %s", short(f.consumed.Rate.median()), short(f.published.Rate.median()), short(f.closed.Rate.median()), micros(age)),
		Ratio: fmt.Sprintf("at worst %.2f of published, %.2f of bounded", kept, reached),
		Met:   kept >= 0.8 && reached >= 0.5 && age > 0 && (f.busy || age < float64(floodAge.Microseconds())),
	}
}
