package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	runtime.LockOSThread() // servers end with the thread that started them
	if len(os.Args) > 1 && os.Args[1] == "load" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		command := loadCommand()
		command.SetArgs(os.Args[2:])
		exit(command.ExecuteContext(ctx))
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		spec := ""
		if len(os.Args) > 2 {
			spec = os.Args[2]
		}
		exit(runChild(os.Args[1], spec))
	}
	quick := flag.Bool("quick", os.Getenv("BENCH") == "quick", "less of everything, some two minutes (BENCH=quick)")
	only := flag.String("only", os.Getenv("BENCH_ONLY"), "items to run, with commas between (BENCH_ONLY)")
	out := flag.String("out", "", "directory of the results; empty: "+results+", or a temporary one unless everything is run")
	flag.Parse()
	if *out == "" && (*quick || *only != "") {
		*out = filepath.Join(os.TempDir(), "curfew-bench-results")
	}
	exit(measure(*quick, *only, cmp.Or(*out, results)))
}

const results = "integration/bench/results"

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measure runs the chosen items and reports. An item that fails is reported; the others
// still run.
func measure(quick bool, only, out string) error {
	b, err := newBench(quick, only)
	if err != nil {
		return err
	}
	defer b.close()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		killAll()
		b.removeFiles()
		os.Exit(1) // load processes end with this process
	}()
	chosen, err := chooseItems(only)
	if err != nil {
		return err
	}
	for _, it := range chosen {
		start, before := time.Now(), processorsNow()
		fmt.Printf("\n== %s: %s\n", it.name, it.title)
		if err := it.run(b); err != nil {
			fmt.Printf("FAILED: %v\n", err)
			b.report.Failed = append(b.report.Failed, fmt.Sprintf("%s: %v", it.name, err))
		}
		fmt.Printf("(%v; the host took %s of the processors)\n", time.Since(start).Round(time.Second), before.stolenShare())
	}
	b.report.finish()
	fmt.Printf("\n%s", b.report.goalsMarkdown())
	return b.report.save(out)
}

// item is one measurement; most items are goals.
type item struct {
	name, title string
	run         func(*bench) error
}

var items = []item{
	{"P1", "transient messages of 100 B", (*bench).transientSmall},
	{"P2", "transient messages of 1 KiB", (*bench).transientLarge},
	{"P3", "persistent messages, confirm window 1000", (*bench).persistent},
	{"P4", "persistent messages, each confirmed before the next", (*bench).confirmEach},
	{"P5", "amqp091-go as the client", (*bench).library},
	{"P6", "lateness of deadlines behind a long head", (*bench).deadlinesBehindHead},
	{"P7", "messages due in one instant", (*bench).dueTogether},
	{"P8", "what the monitor costs", (*bench).shadows},
	{"P9", "ten million queued messages", (*bench).depth},
	{"P10", "recovery of a million messages", (*bench).recovery},
	{"P11", "an idle Curfew", (*bench).idleBroker},
	{"P12", "idle connections and queues", (*bench).idleMany},
	{"P13", "producers at full speed beside consumers", (*bench).flood},
	{"curves", "sizes, acks, queues, connections, exchanges", (*bench).curves},
}

func chooseItems(only string) (chosen []item, err error) {
	if only == "" {
		return items, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		found := false
		for _, it := range items {
			if strings.EqualFold(it.name, strings.TrimSpace(name)) {
				chosen, found = append(chosen, it), true
			}
		}
		if !found {
			return nil, fmt.Errorf("bench: no item %q; the items are P1 to P13 and curves", name)
		}
	}
	return chosen, nil
}
