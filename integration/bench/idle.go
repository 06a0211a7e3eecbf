package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"curfew/integration/bench/load"
)

// idleBroker measures a Curfew that nobody uses, started with an empty data directory.
func (b *bench) idleBroker() error {
	starts, rss, busy := stat{}, stat{}, stat{}
	watch := 5 * time.Second
	for range b.passes {
		c, took, err := b.startCurfew(b.dataDir())
		if err != nil {
			return err
		}
		starts.add(float64(took.Microseconds()))
		pid := c.cmd.Process.Pid
		<-time.After(time.Second) // work that continues after the start
		before := preciseCPU(pid)
		<-time.After(watch)
		busy.add((preciseCPU(pid) - before).Seconds() / watch.Seconds() * 100)
		own, mapped := memory(pid)
		rss.add(float64(own + mapped))
		c.stop()
	}
	file, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	mb := func(v float64) string { return fmt.Sprintf("%.1f MB", v/1e6) }
	for _, g := range []goal{
		{What: "resident memory, idle", Want: "<= 32 MB", Got: mb(rss.median()), Met: rss.median() <= 32e6},
		{What: "start to readyz", Want: "<= 100 ms", Got: micros(starts.median()), Met: starts.median() <= 100e3},
		{What: "binary", Want: "<= 40 MB", Got: mb(float64(file.Size())), Met: file.Size() <= 40e6},
		{What: "processor, idle", Want: "< 0.1% of a core", Got: fmt.Sprintf("%.3f%%", busy.median()), Met: busy.median() < 0.1},
	} {
		g.Goal = "P11"
		b.report.goal(g)
	}
	return nil
}

// idleMany opens ten thousand connections, and declares twice as many queues, and measures
// the memory of each in the second half: new, and after messages have passed through.
func (b *bench) idleMany() error {
	const half = 5_000 // twice as many use all the files that a process may have open here
	for _, w := range []struct {
		what  string
		half  load.Idle
		limit float64
	}{
		{"connections, fresh", load.Idle{Connections: half}, 20_000},
		{"connections, after 20 messages of 1 KiB", load.Idle{Connections: half, Used: 20}, 20_000},
		{"queues, fresh", load.Idle{Queues: 2 * half}, 2_000},
		{"queues, after 20 messages of 1 KiB", load.Idle{Queues: 2 * half, Used: 20}, 2_000},
	} {
		each, err := b.idleOnce(w.half)
		if err != nil {
			return err
		}
		b.report.goal(goal{
			Goal: "P12", What: short(float64(2*(w.half.Connections+w.half.Queues))) + " idle " + w.what, Want: fmt.Sprintf("<= %g KB each", w.limit/1000),
			Got: fmt.Sprintf("%.2f KB", each/1000), Met: each <= w.limit,
		})
	}
	return nil
}

// idleOnce returns the resident bytes per item of a second half, relative to the first
// half, in a new Curfew, without page cache. The first half may use memory that was already
// there: garbage, and reserve.
func (b *bench) idleOnce(d load.Idle) (each float64, err error) {
	c, _, err := b.startCurfew(b.dataDir())
	if err != nil {
		return 0, err
	}
	defer c.stop()
	pid := c.cmd.Process.Pid
	// Memory that the first messages allocate once for all others belongs to no queue and
	// no connection.
	warm := load.Spec{URL: c.url, Size: 1024, Producers: 1, Consumers: 1, Count: 50_000, Backlog: 20_000, Duration: time.Minute}
	if _, err := inProcess[load.Result]("throughput", warm); err != nil {
		return 0, err
	}
	d.URL = c.url
	var seen [2]int64
	for i := range seen {
		release, err := runIdle(d)
		if err != nil {
			return 0, err
		}
		defer release()
		seen[i] = leastMemory(pid)
	}
	return float64(seen[1]-seen[0]) / float64(d.Connections+d.Queues), nil
}

// leastMemory returns the minimum within five seconds, in which the garbage collector may
// or may not run.
func leastMemory(pid int) int64 {
	least := int64(1 << 62)
	for range 20 {
		<-time.After(250 * time.Millisecond)
		own, _ := memory(pid)
		least = min(least, own)
	}
	return least
}

// runIdle runs an idle load until release is called.
func runIdle(d load.Idle) (release func(), err error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	cmd, err := childCommand("idle", string(text))
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	release = func() {
		in.Close()
		cmd.Wait() //nolint:errcheck // its output is on this process's stderr
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		release()
		return nil, fmt.Errorf("idle load: %w, after %q", err, line)
	}
	return release, nil
}
