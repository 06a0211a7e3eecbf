package integration

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// doze is one sleep of a millisecond: when it was over, in microseconds of the wall clock, and how much too late.
type doze struct {
	at   int64
	late time.Duration
}

// watchMachine keeps one imaginary deadline per millisecond with bare sleeps on each processor, beside a run, until stop: that tells how
// late the machine lets anybody be. stop returns the lateness of these deadlines between two instants, in microseconds, on the processor
// where it was worst, sorted. A stall of 100 ms makes a hundred of them late. A processor of its own for each, since a virtual machine may
// be given one and not the other; and the time of the run alone, since the start of a client takes longer than that.
func watchMachine() (stop func(from, to int64) []time.Duration) {
	over := make(chan struct{})
	var watchers []func() []doze
	var allowed unix.CPUSet
	_ = unix.SchedGetaffinity(0, &allowed)
	for cpu := range 1024 {
		if allowed.IsSet(cpu) {
			watchers = append(watchers, inBackground(func() []doze { return dozeOn(cpu, allowed, over) }))
		}
	}
	return func(from, to int64) (worst []time.Duration) {
		close(over)
		for _, watched := range watchers {
			var late []time.Duration
			for _, d := range watched() {
				if from <= d.at && d.at <= to {
					late = append(late, d.late)
				}
			}
			slices.Sort(late)
			if len(worst) == 0 || len(late) > 0 && quantile(late, lateQuantile) > quantile(worst, lateQuantile) {
				worst = late
			}
		}
		return worst
	}
}

// dozeOn sleeps on one of the allowed processors until over is closed. A stall is as many late deadlines as it had milliseconds. It gives
// its thread back as it was: were that to end, the processes that were started on it would be killed (see Pdeathsig).
func dozeOn(cpu int, allowed unix.CPUSet, over <-chan struct{}) (dozes []doze) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var one unix.CPUSet
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one) // without it the thread could sleep on either
	defer func() { _ = unix.SchedSetaffinity(0, &allowed) }()
	millisecond := unix.NsecToTimespec(int64(time.Millisecond))
	last := time.Now()
	for {
		select {
		case <-over:
			return dozes
		default:
		}
		_ = unix.Nanosleep(&millisecond, nil)
		now := time.Now()
		for ; last.Before(now); last = last.Add(time.Millisecond) {
			dozes = append(dozes, doze{last.UnixMicro(), max(0, now.Sub(last)-time.Millisecond)})
		}
	}
}

// cpuPressure is for how long, since the start of the machine, some process was ready and waited for a processor (Linux, Documentation/accounting/psi.rst);
// 0 where the kernel does not count it. A sleeper is scheduled at once where a process that computes, as a client in Python does, waits its turn.
func cpuPressure() time.Duration {
	text, _ := os.ReadFile("/proc/pressure/cpu")
	var micros int64
	if _, total, found := strings.Cut(string(text), "total="); found {
		_, _ = fmt.Sscan(total, &micros)
	}
	return time.Duration(micros) * time.Microsecond
}
