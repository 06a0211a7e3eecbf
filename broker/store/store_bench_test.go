package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoAllocationPerDurableMessage(t *testing.T) {
	s, _ := openDisk(t, Options{Dir: t.TempDir()})
	defer s.Close()
	m, seq := text(1, 100), uint64(0)
	enqueue, settle := make([]Enqueue, 1), make([]Settle, 1)
	allocs := testing.AllocsPerRun(5000, func() {
		seq++
		p, _ := s.Put(m, true, 1)
		enqueue[0] = Enqueue{Queue: 1, Seq: seq, Pos: p, Durable: true}
		s.Enqueued(enqueue)
		s.View(p)
		settle[0] = Settle{Queue: 1, Seq: seq, Pos: p, Durable: true}
		s.Settled(settle)
	})
	require.Zero(t, allocs)
}

func benchSizes(b *testing.B, fn func(b *testing.B, m Message)) {
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			fn(b, text(1, size))
		})
	}
}

func BenchmarkPut(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Message) {
		s := openMemory(b, Options{})
		for b.Loop() {
			p, err := s.Put(m, false, 1)
			if err != nil {
				b.Fatal(err)
			}
			s.Release(p)
		}
	})
}

// BenchmarkPutter puts batches of 100 from two publishers at the same time.
func BenchmarkPutter(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Message) {
		s := openMemory(b, Options{})
		b.SetParallelism(1)
		b.RunParallel(func(pb *testing.PB) {
			putter := s.NewPutter()
			batch := make([]Settle, 0, 100)
			for pb.Next() {
				p, err := putter.Put(&m, false, 1)
				if err != nil {
					b.Error(err)
					return
				}
				if batch = append(batch, Settle{Queue: 1, Seq: 1, Pos: p}); len(batch) == cap(batch) {
					putter.End()
					s.Settled(batch)
					batch = batch[:0]
				}
			}
			putter.End()
			s.Settled(batch)
		})
	})
}

func BenchmarkPutEnqueuedSettled(b *testing.B) {
	for _, durable := range []bool{false, true} {
		b.Run(fmt.Sprintf("durable=%v", durable), func(b *testing.B) {
			benchSizes(b, func(b *testing.B, m Message) {
				s, _ := openDisk(b, Options{Dir: b.TempDir()})
				enqueue, settle := make([]Enqueue, 1), make([]Settle, 1)
				for seq := uint64(1); b.Loop(); seq++ {
					p, err := s.Put(m, durable, 1)
					if err != nil {
						b.Fatal(err)
					}
					enqueue[0] = Enqueue{Queue: 1, Seq: seq, Pos: p, Durable: durable}
					s.Enqueued(enqueue)
					settle[0] = Settle{Queue: 1, Seq: seq, Pos: p, Durable: durable}
					s.Settled(settle)
				}
				b.StopTimer()
				s.Close()
			})
		})
	}
}

func BenchmarkView(b *testing.B) {
	s := openMemory(b, Options{})
	p, err := s.Put(text(1, 100), false, 1)
	require.NoError(b, err)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n += len(s.View(p).Body)
	}
}

// BenchmarkBareSync measures a small write and its sync: the least that BenchmarkCommit/1
// can take.
func BenchmarkBareSync(b *testing.B) {
	disk, err := openDir(b.TempDir())
	require.NoError(b, err)
	f, err := disk.Create("bare", 64*mib)
	require.NoError(b, err)
	defer f.Close()
	record := make([]byte, 200)
	for at := int64(0); b.Loop(); at += int64(len(record)) {
		if _, err := f.WriteAt(record, at%(63*mib)); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommit measures one durable message and its commit, with a number of goroutines
// that each wait for their own.
func BenchmarkCommit(b *testing.B) {
	for _, waiters := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			b.ReportAllocs()
			s, _ := openDisk(b, Options{Dir: b.TempDir()})
			m := text(1, 100)
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for range waiters {
				wg.Go(func() {
					done := make(chan error, 1)
					fn := func(err error) { done <- err }
					for left.Add(-1) >= 0 {
						p, err := s.Put(m, true, 0)
						if err != nil {
							b.Error(err)
							return
						}
						s.Release(p)
						s.Commit(fn)
						<-done
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			s.Close()
		})
	}
}

// BenchmarkRecovery reads a million messages of 1 KiB.
func BenchmarkRecovery(b *testing.B) {
	const messages = 1_000_000
	o := Options{Dir: b.TempDir()}
	s, _ := openDisk(b, o)
	m := text(1, 1024)
	for seq := uint64(1); seq <= messages; seq++ {
		p, err := s.Put(m, true, 1)
		if err != nil {
			b.Fatal(err)
		}
		s.Enqueued([]Enqueue{{Queue: 1 + seq%10, Seq: seq, Pos: p, Durable: true}})
	}
	require.NoError(b, s.Close())
	b.ReportAllocs()
	for b.Loop() {
		s, r := openDisk(b, o)
		b.StopTimer()
		require.Len(b, r.Queues, 10)
		require.NoError(b, s.Close())
		b.StartTimer()
	}
}
