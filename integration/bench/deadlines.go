package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"curfew/integration/bench/load"
)

// redisSide starts a Curfew with its schedule in its own Redis; stop ends both.
func (b *bench) redisSide() (s *side, stop func(), err error) {
	r, url, err := startRedis(b.dir)
	if err != nil {
		return nil, nil, err
	}
	c, _, err := b.startCurfew(b.dataDir(), "REDIS_URL="+url, "INSTANCE=bench")
	if err != nil {
		r.stop()
		return nil, nil, err
	}
	return &side{name: "Curfew, Redis", broker: c}, func() { c.stop(); r.stop() }, nil
}

// deadlinesBehindHead runs the same deadlines on the embedded schedule and on Redis, and
// once on RabbitMQ, which keeps no deadline behind a long head. The goal is judged by the
// lateness from the confirm. The lateness from the write, which includes the way to the
// broker, and Curfew's own histogram are shown as well.
func (b *bench) deadlinesBehindHead() error {
	c, err := b.curfew()
	if err != nil {
		return err
	}
	onRedis, stop, err := b.redisSide()
	if err != nil {
		return err
	}
	defer stop()
	for _, rate := range []int{1000, 10_000, 50_000} {
		d := load.Deadlines{
			Rate: rate, Duration: 3 * time.Second, MinTTL: 500 * time.Millisecond, MaxTTL: 2 * time.Second, Head: time.Hour, Size: 100,
			MaxWait: 10 * time.Second,
		}
		if b.quick {
			d.Duration = time.Second
		}
		if err := b.latenessAt(d, []*side{c, onRedis}); err != nil {
			return err
		}
	}
	return b.latenessOfPeers()
}

func (b *bench) latenessAt(d load.Deadlines, sides []*side) error {
	work := short(float64(d.Rate)) + " deadlines/s"
	rows, own := make([]*row, len(sides)), make([]*lateness, len(sides))
	for i, side := range sides {
		rows[i], own[i] = b.report.row("P6", work, side.name), newLateness(side.broker)
	}
	stop := watchMachine()
	early, missing := make([]int, len(sides)), make([]int, len(sides))
	fromWrite := make([]stat, 2*len(sides))
	err := b.alternate(len(sides), func(i int) error {
		r, err := b.deadlinesOnce(d, sides[i], rows[i])
		if err != nil {
			return err
		}
		rows[i].Rate.add(r.Rate)
		early[i], missing[i] = early[i]+r.Early, missing[i]+r.Published-r.Arrived
		if r.FromWrite != nil {
			fromWrite[2*i].add(r.FromWrite.P50)
			fromWrite[2*i+1].add(r.FromWrite.P99)
		}
		return nil
	})
	bare := stop()
	if err != nil {
		return err
	}
	for i, r := range rows {
		p50, p99 := fromWrite[2*i].median(), fromWrite[2*i+1].median()
		r.Note = fmt.Sprintf("from the write %s / %s; Curfew's own histogram %s; a bare timer beside %s / %s",
			micros(p50), micros(p99), own[i].quantiles(), micros(bare.P50), micros(bare.P99))
		fmt.Println(r)
		want50, want99 := 500.0, 3000.0
		if i > 0 {
			want50, want99 = 1000, 5000
		}
		b.report.goal(goal{
			Goal: "P6", What: work + ", " + r.Side,
			Want: fmt.Sprintf("p50 <= %s, p99 <= %s, none early", micros(want50), micros(want99)),
			Got: fmt.Sprintf("%s / %s, %d early, %d missing; a bare timer beside %s / %s",
				micros(r.P50.median()), micros(r.P99.median()), early[i], missing[i], micros(bare.P50), micros(bare.P99)),
			Met: r.P50.median() <= want50 && r.P99.median() <= want99 && early[i]+missing[i] == 0 && r.Rate.median() >= 0.95*float64(d.Rate),
		})
	}
	return nil
}

// deadlinesOnce runs one pass. Its lateness from the confirm goes into the row.
func (b *bench) deadlinesOnce(d load.Deadlines, s *side, into *row) (load.DeadlinesResult, error) {
	d.URL, d.QueueType = s.broker.url, s.queueType
	pid := s.broker.cmd.Process.Pid
	before := treeCPU(pid)
	r, err := inProcess[load.DeadlinesResult]("deadlines", d)
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.name, err)
	}
	into.CPU.add((treeCPU(pid) - before).Seconds() * 1e6 / float64(max(1, r.Published)))
	if r.FromConfirm != nil {
		into.P50.add(r.FromConfirm.P50)
		into.P99.add(r.FromConfirm.P99)
	}
	return r, nil
}

// latenessOfPeers shows what RabbitMQ does with such messages, behind a long head and
// without one.
func (b *bench) latenessOfPeers() error {
	peers, err := b.rabbitMQ()
	if err != nil {
		return err
	}
	for _, head := range []time.Duration{time.Hour, 0} {
		for _, side := range peers {
			work := "1k deadlines/s"
			if head == 0 {
				work += ", no long head"
			}
			row := b.report.row("P6", work, side.name)
			r, err := b.deadlinesOnce(load.Deadlines{
				Rate: 1000, Duration: time.Second, MinTTL: 500 * time.Millisecond, MaxTTL: 2 * time.Second, Head: head, Size: 100,
				MaxWait: 2 * time.Second,
			}, side, row)
			if err != nil {
				return err
			}
			row.Note = fmt.Sprintf("%d of %d dead-lettered within 2 s of the last deadline", r.Arrived, r.Published)
			fmt.Println(row)
		}
	}
	return nil
}

// lateness reads Curfew's own histogram for a period of time.
type lateness struct {
	broker *broker
	before []bucket
}

type bucket struct{ le, count float64 }

func newLateness(c *broker) *lateness { return &lateness{broker: c, before: latenessBuckets(c)} }

// latenessBuckets sums curfew_deadline_lateness_seconds over its labels. It returns nil if
// the metric cannot be read.
func latenessBuckets(c *broker) (buckets []bucket) {
	text, _ := c.metrics() //nolint:errcheck // nil says so
	at := map[float64]int{}
	for line := range strings.Lines(text) {
		labels, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "curfew_deadline_lateness_seconds_bucket{"), "} ")
		if !ok || !strings.HasPrefix(line, "curfew_deadline_lateness_seconds_bucket{") {
			continue
		}
		_, le, _ := strings.Cut(labels, `le="`)
		le, _, _ = strings.Cut(le, `"`)
		limit, err := strconv.ParseFloat(le, 64)
		count, failed := strconv.ParseFloat(value, 64)
		if err != nil || failed != nil {
			continue
		}
		i, known := at[limit]
		if !known {
			i = len(buckets)
			at[limit] = i
			buckets = append(buckets, bucket{le: limit})
		}
		buckets[i].count += count
	}
	return buckets
}

// quantiles returns p50 and p99 since the start, as the bounds of their buckets.
func (l *lateness) quantiles() string {
	now := latenessBuckets(l.broker)
	if len(now) == 0 || len(now) != len(l.before) {
		return "not there"
	}
	total := now[len(now)-1].count - l.before[len(now)-1].count
	bound := func(q float64) string {
		for i, b := range now {
			if b.count-l.before[i].count >= q*total {
				return fmt.Sprintf("<= %g ms", b.le*1e3)
			}
		}
		return "?"
	}
	return bound(0.5) + " / " + bound(0.99)
}
