package monitor

import (
	"context"
	"testing"
	"time"

	"curfew/scheduler"
)

// benchPrimary answers at once and keeps nothing, so that what is measured is the
// monitor.
type benchPrimary struct {
	expired func([]Expiry)
	told    []Expiry
	nowAt   int64
	queued  bool // what Track is asked about is still there
}

func (p *benchPrimary) Events(ctx context.Context, _ []Event) (int, bool, error) {
	<-ctx.Done()
	return 0, false, ctx.Err()
}

func (p *benchPrimary) Track(shadows []scheduler.Shadow) []scheduler.Shadow {
	if p.queued {
		return shadows
	}
	return shadows[:0]
}

func (p *benchPrimary) Expire(shadows []scheduler.Shadow, path Path, out []Result) []Result {
	p.told = p.told[:0]
	for _, s := range shadows {
		out = append(out, Result{Outcome: Expired, At: p.nowAt})
		p.told = append(p.told, Expiry{Shadow: s, At: p.nowAt, Action: DeadLettered, Path: path})
	}
	p.expired(p.told)
	return out
}

func (p *benchPrimary) Expiries(fn func([]Expiry)) { p.expired = fn }

func (p *benchPrimary) Snapshot(context.Context, func([]scheduler.Shadow) error) error { return nil }

func (p *benchPrimary) QueueName(uint64) (vhost, name string, ok bool) { return "/", "q", true }

func (p *benchPrimary) Now() int64 { return p.nowAt }

func (p *benchPrimary) ClockOffset() time.Duration { return 0 }

func benchMonitor(b *testing.B, p *benchPrimary) *Monitor {
	m, err := New(Options{Primary: p})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	return m
}

// BenchmarkIngest is one message enqueued: settled within the window, or indexed and
// settled later.
func BenchmarkIngest(b *testing.B) {
	for name, queued := range map[string]bool{"settled-in-window": false, "indexed": true} {
		b.Run(name, func(b *testing.B) {
			p := &benchPrimary{nowAt: 1_800_000_000_000_000, queued: queued}
			m := benchMonitor(b, p)
			in := &ingest{m: m, window: window{span: 20_000}}
			ctx, seq := context.Background(), uint64(0)
			for n := 0; n < b.N; n += feedBatch {
				batch := <-m.free
				batch.n = min(feedBatch, b.N-n)
				for i := range batch.events[:batch.n] {
					seq++
					batch.events[i] = Event{Kind: Enqueued, Shadow: scheduler.Shadow{
						Deadline: p.nowAt + 60_000_000 + int64(seq%5000)*1000, Queue: 1, Seq: seq,
					}}
				}
				if err := in.batch(ctx, batch); err != nil {
					b.Fatal(err)
				}
				p.nowAt++
				if _, err := in.open(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFire is one message of a million that are due at once.
func BenchmarkFire(b *testing.B) {
	const due = 1_000_000
	p := &benchPrimary{nowAt: 1_800_000_000_000_000, queued: true}
	m := benchMonitor(b, p)
	f := &firing{m: m, ledger: m.newLedger()}
	ctx, seq := context.Background(), uint64(0)
	page := make([]scheduler.Shadow, pageSize)
	for n := 0; n < b.N; {
		b.StopTimer()
		for range due / pageSize {
			for i := range page {
				seq++
				page[i] = scheduler.Shadow{Deadline: p.nowAt - 1, Queue: seq % 8, Seq: seq}
			}
			if err := m.index.Apply(ctx, page, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		for fired := true; fired && n < b.N; n += len(f.batch) {
			nextAt, err := f.round(ctx)
			if err != nil {
				b.Fatal(err)
			}
			fired = nextAt != 0
		}
	}
}
