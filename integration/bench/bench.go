package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"curfew/integration/bench/load"
)

// bench is a run of items. Servers are started when they are first needed, and stay: idle,
// they cost the others hardly anything.
type bench struct {
	quick   bool
	passes  int    // of each workload against each side
	repeats int    // the same, for goals so close that single passes differ by more
	dir     string // of the run's files
	binary  string // Curfew's
	report  report

	shared *broker // Curfew with default settings
	rabbit *broker
	bare   *side
	stops  []func()
}

// side is one of the things being compared.
type side struct {
	name      string
	broker    *broker
	queueType string
}

func newBench(quick bool, only string) (*bench, error) {
	b := &bench{quick: quick, passes: 3, repeats: 7}
	if quick {
		b.passes, b.repeats = 1, 1
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "curfew-bench-"); err != nil {
		return nil, err
	}
	b.binary = filepath.Join(b.dir, "curfew")
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-gcflags", "all=-dwarf=false", "-gcflags", "curfew/cmd/internal/dashboard/...=-l -dwarf=false", "-gcflags", "github.com/redis/...=-l -dwarf=false", "-ldflags", "-s -w", "-o", b.binary, "./cmd/curfew")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		b.removeFiles()
		return nil, fmt.Errorf("build Curfew: %w (run it in the module's directory)", err)
	}
	b.report.begin(quick, only)
	return b, nil
}

func (b *bench) removeFiles() { os.RemoveAll(b.dir) }

func (b *bench) close() {
	for _, stop := range b.stops {
		stop()
	}
	b.removeFiles()
}

// dataDir returns a new empty directory for a Curfew's data.
func (b *bench) dataDir() string {
	dir, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		panic(err) // this process created the directory
	}
	return dir
}

// curfew returns the side that all items share, with default settings: data on disk,
// schedule in the process.
func (b *bench) curfew() (*side, error) {
	if b.shared == nil {
		c, _, err := b.startCurfew(b.dataDir())
		if err != nil {
			return nil, err
		}
		b.shared = c
		b.stops = append(b.stops, c.stop)
	}
	return &side{name: "Curfew", broker: b.shared}, nil
}

// rabbitMQ returns the sides of the one RabbitMQ; in a quick run only classic queues.
func (b *bench) rabbitMQ() ([]*side, error) {
	if b.rabbit == nil {
		r, err := startRabbitMQ(filepath.Join(b.dir, "rabbitmq"))
		if err != nil {
			return nil, err
		}
		b.rabbit = r
		b.stops = append(b.stops, r.stop)
	}
	name := "RabbitMQ " + rabbitmqVersion()
	sides := []*side{{name: name + " classic", broker: b.rabbit, queueType: "classic"}}
	if !b.quick {
		sides = append(sides,
			&side{name: name + " classic v2", broker: b.rabbit, queueType: "classic-v2"},
			&side{name: name + " quorum", broker: b.rabbit, queueType: "quorum"})
	}
	return sides, nil
}

// relay returns the ceiling of the client.
func (b *bench) relay() (*side, error) {
	if b.bare != nil {
		return b.bare, nil
	}
	cmd, err := childCommand("relay")
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.stops = append(b.stops, func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // killed
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("bare relay: %w", err)
	}
	b.bare = &side{name: bareRelay, broker: &broker{process: &process{cmd: cmd}, url: "amqp://" + strings.TrimSpace(addr)}}
	return b.bare, nil
}

const bareRelay = "bare relay"

// all returns Curfew, RabbitMQ and the ceiling of the client, in this order.
func (b *bench) all() ([]*side, error) {
	c, err := b.curfew()
	if err != nil {
		return nil, err
	}
	peers, err := b.rabbitMQ()
	if err != nil {
		return nil, err
	}
	r, err := b.relay()
	return append(append([]*side{c}, peers...), r), err
}

// spec fills in what all throughput workloads have in common.
func (b *bench) spec(s load.Spec) load.Spec {
	s.Duration, s.Warmup, s.Prefetch = 2*time.Second, 500*time.Millisecond, 1000
	s.Backlog = min(10_000, max(100, 16<<20/max(1, s.Size))) // what is in flight, not what is stored
	if b.quick {
		s.Duration = time.Second
	}
	return s
}

// setPasses sets the number of passes, until the function that it returns is called.
func (b *bench) setPasses(passes int) func() {
	was := b.passes
	b.passes = passes
	return func() { b.passes = was }
}

// alternate runs the passes of all sides. Every other pass is in reverse order, so that
// each side follows each neighbour.
func (b *bench) alternate(sides int, do func(i int) error) error {
	for pass := range b.passes {
		for i := range sides {
			if pass%2 == 1 {
				i = sides - 1 - i
			}
			if err := do(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// throughput runs a workload against each side in turn, as often as there are passes, and
// returns a row for each side.
func (b *bench) throughput(item, work string, s load.Spec, sides []*side) ([]*row, error) {
	rows := make([]*row, len(sides))
	for i, side := range sides {
		rows[i] = b.report.row(item, work, side.name)
	}
	if err := b.alternate(len(sides), func(i int) error { return pass(s, sides[i], rows[i]) }); err != nil {
		return nil, err
	}
	for _, row := range rows {
		fmt.Println(row)
	}
	return rows, nil
}

// pass runs a workload against one side once.
func pass(s load.Spec, side *side, into *row) error {
	s.URL, s.QueueType = side.broker.url, side.queueType
	pid := side.broker.cmd.Process.Pid
	before := treeCPU(pid)
	r, err := inProcess[load.Result]("throughput", s)
	if err != nil {
		return fmt.Errorf("%s: %w", side.name, err)
	}
	into.add(r, treeCPU(pid)-before, s.Consumers > 0)
	return nil
}
