package schedule

import (
	"context"
	"testing"
	"time"

	"curfew/broker/deadline"
)

// benchPrimary answers at once and keeps nothing, so that what is measured is the
// monitor.
type benchPrimary struct {
	expired deadline.Stream
	told    []deadline.Expiry
	nowAt   deadline.Instant
	queued  bool // what Track is asked about is still there
}

func (p *benchPrimary) Events(ctx context.Context, _ []deadline.Event) (int, bool, error) {
	<-ctx.Done()
	return 0, false, ctx.Err()
}

func (p *benchPrimary) Track(shadows []deadline.Ref) []deadline.Ref {
	if p.queued {
		return shadows
	}
	return shadows[:0]
}

func (p *benchPrimary) Expire(shadows []deadline.Ref, path deadline.Path, _ bool, out []deadline.Answer) []deadline.Answer {
	p.told = p.told[:0]
	for _, s := range shadows {
		out = append(out, deadline.Answer{Outcome: deadline.Expired, At: p.nowAt})
		p.told = append(p.told, deadline.Expiry{Ref: s, VHost: "/", Queue: "q", Arrived: p.nowAt, Action: deadline.DeadLettered, Path: path})
	}
	p.expired.Publish(p.told)
	return out
}

func (p *benchPrimary) Expiries() *deadline.Stream { return &p.expired }

func (p *benchPrimary) Snapshot(context.Context, func([]deadline.Ref) error) error { return nil }

func (p *benchPrimary) QueueName(uint64) (vhost, name string, ok bool) { return "/", "q", true }

func (p *benchPrimary) Now() deadline.Instant { return p.nowAt }

func (p *benchPrimary) ClockOffset() time.Duration { return 0 }

func (p *benchPrimary) Survey(int, func(*deadline.Survey)) {}

func (p *benchPrimary) TimeToLive(deadline.Ref) (ttl deadline.Millis, ok bool) { return 0, false }

func benchMonitor(b *testing.B, p *benchPrimary) *Scheduler {
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
					batch.events[i] = deadline.Event{Kind: deadline.Enqueued, Ref: deadline.Ref{
						Deadline: p.nowAt + 60_000_000 + deadline.Instant(seq%5000)*1000, Queue: 1, Seq: seq,
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
	f := &firing{m: m}
	ctx, seq := context.Background(), uint64(0)
	page := make([]deadline.Ref, pageSize)
	for n := 0; n < b.N; {
		b.StopTimer()
		for range due / pageSize {
			for i := range page {
				seq++
				page[i] = deadline.Ref{Deadline: p.nowAt - 1, Queue: seq % 8, Seq: seq}
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
