package telemetry

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// late is a message that was dead-lettered 1.5 ms after its deadline.
func late() Expiry {
	deadline := time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)
	return Expiry{
		Deadline: deadline, Left: deadline.Add(1500 * time.Microsecond), VHost: "/", Queue: "orders", MessageID: []byte("m-1"), Path: "eager",
		Outcome: "dead_lettered", Exchange: "dlx", RoutingKey: []byte("late"), To: []string{"dead", "copy"},
		TraceParent: []byte(sampledParent), TraceState: []byte("rojo=00f067aa0ba902b7"),
	}
}

func TestSpanOfADeadLetter(t *testing.T) {
	inBubble(t, Options{Version: "1.2", Resource: map[string]string{"service.name": "curfew"}}, func(t *testing.T, x *bench) {
		x.Add([]Expiry{late()})
		time.Sleep(sendAfter)
		synctest.Wait()
		require.Len(t, x.collector.spans, 1)
		sent := x.collector.spans[0]
		assert.Equal(t, map[string]any{"service.name": "curfew"}, attributesOf(sent.Resource.Attributes))
		assert.Equal(t, []string{"curfew", "1.2"}, []string{sent.ScopeSpans[0].Scope.Name, sent.ScopeSpans[0].Scope.Version})
		require.Len(t, sent.ScopeSpans[0].Spans, 1)
		span := sent.ScopeSpans[0].Spans[0]
		assert.Equal(t, "dead_letter orders", span.Name)
		assert.Equal(t, tracepb.Span_SPAN_KIND_INTERNAL, span.Kind)
		assert.Equal(t, uint64(late().Deadline.UnixNano()), span.StartTimeUnixNano)
		assert.Equal(t, uint64(late().Left.UnixNano()), span.EndTimeUnixNano)
		assert.Equal(t, uint32(0x101), span.Flags)
		assert.Empty(t, span.ParentSpanId)
		assert.Equal(t, map[string]any{
			"messaging.system": "rabbitmq", "messaging.operation.name": "dead_letter", "messaging.destination.name": "orders",
			"messaging.message.id": "m-1", "curfew.vhost": "/", "curfew.deadline": "2026-03-01T12:00:00.250000Z", "curfew.lateness_ms": 1.5,
			"curfew.path": "eager", "curfew.outcome": "dead_lettered", "curfew.dead_letter.exchange": "dlx", "curfew.dead_letter.routing_key": "late",
			"curfew.dead_letter.queues": []any{"dead", "copy"},
		}, attributesOf(span.Attributes))
		require.Len(t, span.Links, 1)
		link := span.Links[0]
		assert.Equal(t, "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331", hex.EncodeToString(link.TraceId)+" "+hex.EncodeToString(link.SpanId))
		assert.Equal(t, "rojo=00f067aa0ba902b7", link.TraceState)
		assert.Equal(t, uint32(0x301), link.Flags)
		assert.NotEqual(t, link.TraceId, span.TraceId, "a trace of its own")
		assert.Equal(t, []int{16, 8}, []int{len(span.TraceId), len(span.SpanId)})
		assert.Equal(t, 1, x.count(x.spansSender(), exportedOf))
	})
}

func TestSpanOfWhatWasDropped(t *testing.T) {
	e := Expiry{Deadline: time.Unix(10, 0), Left: time.Unix(9, 0), VHost: "v", Queue: "q", Path: "manual", Outcome: "dropped"}
	span := newSpan(&e)
	assert.Equal(t, "expire q", span.Name)
	assert.Empty(t, span.Links)
	assert.Equal(t, []uint64{9e9, 9e9}, []uint64{span.StartTimeUnixNano, span.EndTimeUnixNano}, "somebody had it fire early")
	assert.Equal(t, map[string]any{
		"messaging.system": "rabbitmq", "messaging.operation.name": "expire", "messaging.destination.name": "q", "curfew.vhost": "v",
		"curfew.deadline": "1970-01-01T00:00:10.000000Z", "curfew.lateness_ms": 0.0, "curfew.path": "manual", "curfew.outcome": "dropped",
	}, attributesOf(span.Attributes))
}

// Whatever a publisher writes, the spans beside its own arrive.
func TestHostileMessagesCostNoOtherSpan(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, x *bench) {
		for _, text := range append(hostileParents, "\xff\xfe\x00", strings.Repeat("\xff", 70_000)) {
			e := late()
			e.Queue, e.VHost, e.Exchange, e.To = text[:min(len(text), 255)], text, text, []string{text}
			e.MessageID, e.RoutingKey, e.TraceParent, e.TraceState = []byte(text), []byte(text), []byte(text), []byte(text)
			x.Add([]Expiry{e})
		}
		x.Add([]Expiry{late()})
		x.stop()
		spans := x.allSpans()
		require.Len(t, spans, len(hostileParents)+3)
		for _, s := range spans[:len(spans)-1] {
			assert.Empty(t, s.Links)
		}
		assert.Equal(t, "dead_letter orders", spans[len(spans)-1].Name)
		assert.Zero(t, x.count(x.spansSender(), droppedOf))
	})
}

func TestManyTargetsAreCutOff(t *testing.T) {
	var b buffer
	e := late()
	e.To = slices.Repeat([]string{"dead"}, 1000)
	e.TraceState = []byte(strings.Repeat("a", maxState+1))
	b.add(&e)
	assert.Len(t, b.expiries[0].To, maxTargets)
	assert.Empty(t, b.expiries[0].TraceState)
}

func TestSpansGoInBatches(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, x *bench) {
		for range 3 {
			x.Add(slices.Repeat([]Expiry{late()}, maxBatch/4))
		}
		synctest.Wait()
		assert.Empty(t, x.allSpans(), "there is time")
		x.Add(slices.Repeat([]Expiry{late()}, maxBatch))
		synctest.Wait()
		assert.Len(t, x.allSpans(), maxBatch*7/4, "a batch does not wait")
		assert.Equal(t, 2, x.requests())
	})
}

// A collector that hangs costs spans and nothing else.
func TestWhatFindsNoRoomIsCounted(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, x *bench) {
		hanging := make(chan struct{})
		x.answer = func(http.ResponseWriter, *http.Request) bool {
			<-hanging
			return false
		}
		x.Add(slices.Repeat([]Expiry{late()}, maxWaiting)) // is taken
		synctest.Wait()
		e := late()
		e.Queue = "second"
		x.Add(slices.Repeat([]Expiry{e}, maxWaiting-1)) // waits
		x.Add(slices.Repeat([]Expiry{e}, 1000))
		synctest.Wait()
		assert.Equal(t, 999, x.count(x.spansSender(), droppedOf))
		close(hanging)
		x.stop()
		assert.Len(t, x.allSpans(), 2*maxWaiting)
		assert.Equal(t, 2*maxWaiting, x.count(x.spansSender(), exportedOf))
		assert.Equal(t, "dead_letter second", x.allSpans()[maxWaiting].Name)
	})
}

func TestAddCopiesAndAllocatesNothing(t *testing.T) {
	x, err := New(Options{Spans: Signal{URL: "http://c/"}, Sampler: Samplers(1)["parentbased_always_off"]})
	require.NoError(t, err)
	e := late()
	batch := slices.Repeat([]Expiry{e}, 64)
	var taken buffer
	round := func() {
		for i := range batch {
			require.True(t, x.Samples(batch[i].TraceParent))
		}
		x.Add(batch)
		taken, x.waiting = x.waiting, taken
		taken.reset()
	}
	round()
	round()
	assert.Zero(t, testing.AllocsPerRun(100, round))

	x.Add([]Expiry{e})
	for _, text := range [][]byte{e.MessageID, e.RoutingKey, e.TraceParent, e.TraceState} {
		clear(text)
	}
	e.To[0] = ""
	kept := x.waiting.expiries[0]
	assert.Equal(t, fmt.Sprint("m-1 late ", sampledParent, " rojo=00f067aa0ba902b7 dead"),
		fmt.Sprintf("%s %s %s %s %s", kept.MessageID, kept.RoutingKey, kept.TraceParent, kept.TraceState, kept.To[0]))
}

func BenchmarkAdd(b *testing.B) {
	x, err := New(Options{Spans: Signal{URL: "http://c/"}, Sampler: Sampler{Sampled: 1}})
	require.NoError(b, err)
	batch := []Expiry{late()}
	b.ReportAllocs()
	for b.Loop() {
		if x.Samples(batch[0].TraceParent) {
			x.Add(batch)
		}
		if len(x.waiting.expiries) == maxWaiting {
			x.waiting.reset()
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	x, err := New(Options{})
	require.NoError(b, err)
	batch := slices.Repeat([]Expiry{late()}, maxBatch)
	b.ReportAllocs()
	for b.Loop() {
		body, err := proto.Marshal(x.spanRequest(batch))
		require.NoError(b, err)
		b.SetBytes(int64(len(body)))
	}
}
