package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"curfew/integration/bench/load"
)

// against returns Curfew's row and the best row of the named peer.
func against(rows []*row, sides []*side, queueTypes ...string) (own, peer *row) {
	own = rows[0]
	for i, s := range sides {
		for _, t := range queueTypes {
			if s.queueType == t && (peer == nil || rows[i].Rate.median() > peer.Rate.median()) {
				peer = rows[i]
			}
		}
	}
	return own, peer
}

// judgeRatio judges a workload by its ratio to the faster of RabbitMQ's classic queues and
// by the broker's processor time per message. It also shows what the client reaches without
// a broker.
func (b *bench) judgeRatio(name, work string, s load.Spec, wantRatio, wantCPU float64) error {
	sides, err := b.all()
	if err != nil {
		return err
	}
	rows, err := b.throughput(name, work, b.spec(s), sides)
	if err != nil {
		return err
	}
	own, peer := against(rows, sides, "classic", "classic-v2")
	g := goal{
		Goal: name, What: work, Want: fmt.Sprintf(">= %gx RabbitMQ", wantRatio),
		Got:   short(own.Rate.median()) + "/s",
		Ratio: fmt.Sprintf("%.1fx %s", ratio(own, peer), peer.Side),
		Met:   ratio(own, peer) >= wantRatio,
	}
	if wantCPU > 0 {
		g.Want += fmt.Sprintf(", CPU <= %g us", wantCPU)
		g.Got += fmt.Sprintf(", %.2f us", own.CPU.median())
		g.Met = g.Met && own.CPU.median() <= wantCPU
	}
	g.Got += fmt.Sprintf(" (%s %s/s)", bareRelay, short(rows[len(rows)-1].Rate.median()))
	b.report.goal(g)
	return nil
}

func (b *bench) transientSmall() error {
	one := load.Spec{Size: 100, Producers: 1, Consumers: 1, Ack: "each"}
	if err := b.judgeRatio("P1", "100 B, 1P1C", one, 12, 1.5); err != nil {
		return err
	}
	four := load.Spec{Size: 100, Producers: 4, Consumers: 4, Ack: "each"}
	return b.judgeRatio("P1", "100 B, 4P4C", four, 12, 1.5)
}

func (b *bench) transientLarge() error {
	return b.judgeRatio("P2", "1 KiB, 1P1C", load.Spec{Size: 1024, Producers: 1, Consumers: 1, Ack: "each"}, 8, 3.5)
}

func (b *bench) persistent() error {
	s := load.Spec{Size: 100, Producers: 4, Consumers: 4, Ack: "each", Persist: true, Window: 1000}
	if err := b.judgeRatio("P3", "100 B, 4P4C, synced", s, 8, 2.3); err != nil {
		return err
	}
	sides, err := b.all()
	if err != nil {
		return err
	}
	s.Producers, s.Consumers = 1, 1
	_, err = b.throughput("P3", "100 B, 1P1C, synced", b.spec(s), sides)
	return err
}

func (b *bench) library() error {
	return b.judgeRatio("P5", "100 B, 1P1C, amqp091-go", load.Spec{Client: "amqp091", Size: 100, Producers: 1, Consumers: 1, Ack: "each"}, 3, 0)
}

// confirmEach compares the wait for a confirm with a bare write and sync of the same disk,
// in turn.
func (b *bench) confirmEach() error {
	sides, err := b.all()
	if err != nil {
		return err
	}
	sides = sides[:len(sides)-1]
	bare := b.report.row("P4", "write of 4 KiB and fdatasync", "bare disk")
	s := b.spec(load.Spec{Size: 100, Producers: 1, Consumers: 1, Ack: "each", Persist: true, Window: 1})
	rows := []*row{bare}
	for _, side := range sides {
		rows = append(rows, b.report.row("P4", "100 B, confirm each", side.name))
	}
	err = b.alternate(len(rows), func(i int) error {
		if i == 0 {
			return bareSync(filepath.Join(b.dir, "bare"), s.Duration, bare)
		}
		return pass(s, sides[i-1], rows[i])
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		fmt.Println(r)
	}
	got, floor := rows[1].Confirm.median(), bare.P50.median()
	b.report.goal(goal{
		Goal: "P4", What: "confirm of a persistent message, p50", Want: "<= 1.5x a bare fdatasync",
		Got: fmt.Sprintf("%s, bare %s", micros(got), micros(floor)), Ratio: fmt.Sprintf("%.2fx bare", got/floor), Met: got <= 1.5*floor,
	})
	return nil
}

// bareSync appends and syncs for a while, one write after the other, in a file with
// allocated blocks, as a careful broker prepares it.
func bareSync(path string, d time.Duration, into *row) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 64<<20); err != nil {
		return err
	}
	var h load.Histogram
	block := make([]byte, 4096)
	n := 0
	for start := time.Now(); time.Since(start) < d; n++ {
		before := time.Now()
		if _, err := f.WriteAt(block, int64(n%(16<<10))*4096); err != nil {
			return err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return err
		}
		h.Record(time.Since(before))
	}
	into.Rate.add(float64(n) / d.Seconds())
	sum := h.Summary()
	into.P50.add(sum.P50)
	into.P99.add(sum.P99)
	return nil
}
