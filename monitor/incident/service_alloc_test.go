package incident

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/stretchr/testify/require"
)

// stuck is a receiver that takes a connection and never answers.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// stormy runs alerts whose every sink hangs, telling as often as they can.
func stormy(t testing.TB) *Incidents {
	t.Helper()
	a, err := New(Options{
		URLs: []string{"webhook+http://a.example/", "alertmanager+http://e.example", "generic+http://b.example/"},
	})
	require.NoError(t, err)
	for _, o := range a.delivery.outboxes {
		switch sink := o.sink.(type) {
		case *manager:
			sink.client.Transport = stuck{}
		case *webhook:
			sink.client.Transport = stuck{}
		case *service:
			sink.open = func() (types.Service, error) { return stuckService{end: t.Context().Done()}, nil }
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return a
}

// stuckService is a service that does not come back before the test has ended.
type stuckService struct {
	types.Service
	end <-chan struct{}
}

func (s stuckService) Send(string, *types.Params) error {
	<-s.end
	return nil
}

// TestStormTakesLittleMemory: a million misses in ten thousand queues with every sink
// hanging leave a bounded heap behind, and whoever records never waits for a sink.
func TestStormTakesLittleMemory(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	a := stormy(t)
	before := heap()
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("queue-%d", i)
	}
	for i := range 1_000_000 {
		a.Record(Event{Kind: Expired, VHost: "/", Queue: names[i%len(names)], Action: "dropped", Stats: Stats{Count: 1, FirstDeadlineAt: 1}})
	}
	require.Less(t, int64(heap())-int64(before), int64(32<<20))
	require.LessOrEqual(t, len(a.tallies.all), maxTallies+int(LockHeld)+1)
	require.LessOrEqual(t, len(a.List()), maxOpen)
	for _, c := range a.delivery.outboxes {
		require.LessOrEqual(t, c.status().Queued, maxQueued)
	}
}

// BenchmarkRecordInAStorm records while a thousand queues are reported to sinks that hang.
func BenchmarkRecordInAStorm(b *testing.B) {
	a := stormy(b)
	events := make([]Event, maxTallies)
	for i := range events {
		events[i] = missed(fmt.Sprint(i), 1)
		a.Record(events[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		a.Record(events[i%len(events)])
		i++
	}
}
