package monitor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// line is a queue that is really served, message by message, as a broker serves it: in order, and what is due leaves.
type line struct {
	now       deadline.Instant  // ms
	waiting   []deadline.Sample // by arrival; deadlines in ms
	delivered uint64
	missed    int
	serve     func(now deadline.Instant) float64 // messages a second at that instant
	credit    float64
	arrive    func(l *line)
	meter     Meter
}

func (l *line) add(ttlMillis int64) {
	s := deadline.Sample{}
	if ttlMillis > 0 {
		s.Ref.Deadline = l.now + deadline.Instant(ttlMillis)
	}
	l.waiting = append(l.waiting, s)
}

// millisecond lets one pass.
func (l *line) millisecond() {
	l.now++
	l.arrive(l)
	before := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(s deadline.Sample) bool { return s.Ref.Deadline != 0 && s.Ref.Deadline <= l.now })
	l.missed += before - len(l.waiting)
	l.credit += l.serve(l.now) / 1000
	n := min(int(l.credit), len(l.waiting))
	l.credit -= float64(n)
	if len(l.waiting) == n {
		l.credit = min(l.credit, 1)
	}
	l.waiting = l.waiting[n:]
	l.delivered += uint64(n)
	if l.now%1000 == 0 {
		l.meter.Observe(Observation{Now: l.now * 1000, Delivered: l.delivered, Ready: len(l.waiting), Consumers: 1})
	}
}

func (l *line) pass(millis int) {
	for range millis {
		l.millisecond()
	}
}

// survey samples the line as the broker does.
func (l *line) survey(samples int) Line {
	s := Line{Now: l.now * 1000, Ready: len(l.waiting), Step: max(1, len(l.waiting)/samples), Rate: l.meter.Rate()}
	for i := 0; i < len(l.waiting); i += s.Step {
		s.Samples = append(s.Samples, deadline.Sample{Ahead: i, Ref: deadline.Ref{Deadline: l.waiting[i].Ref.Deadline * 1000}})
	}
	return s
}

// shapes of load, each driven for a while before the forecast is made. What arrives later stands behind and changes nothing.
var shapes = []struct {
	name   string
	warm   int // ms
	serve  func(r *rand.Rand, now deadline.Instant) float64
	arrive func(r *rand.Rand, l *line)
}{
	{"overload, one time to live", 30_000,
		func(*rand.Rand, deadline.Instant) float64 { return 500 },
		func(r *rand.Rand, l *line) { l.some(r, 0.7, func() int64 { return 8000 }) }},
	{"overload, mixed times to live, some without", 30_000,
		func(*rand.Rand, deadline.Instant) float64 { return 400 },
		func(r *rand.Rand, l *line) {
			l.some(r, 0.8, func() int64 { return []int64{1000, 5000, 20_000, 3_600_000, 0}[r.IntN(5)] })
		}},
	{"a burst on an idle queue", 30_000,
		func(*rand.Rand, deadline.Instant) float64 { return 300 },
		func(r *rand.Rand, l *line) {
			l.some(r, 0.05, func() int64 { return 10_000 })
			if l.now == 27_000 {
				for range 5000 {
					l.add(5000 + r.Int64N(15_000))
				}
			}
		}},
	{"served by fits and starts", 40_000,
		func(_ *rand.Rand, now deadline.Instant) float64 {
			return map[bool]float64{true: 900, false: 0}[now/500%2 == 0]
		},
		func(r *rand.Rand, l *line) { l.some(r, 0.6, func() int64 { return 2000 + r.Int64N(10_000) }) }},
	{"slow work, a few messages a second", 200_000,
		func(*rand.Rand, deadline.Instant) float64 { return 2 },
		func(r *rand.Rand, l *line) { l.some(r, 0.003, func() int64 { return 60_000 + r.Int64N(60_000) }) }},
	{"consumers that became slower half a minute ago", 60_000,
		func(_ *rand.Rand, now deadline.Instant) float64 {
			return map[bool]float64{true: 1000, false: 250}[now < 30_000]
		},
		func(r *rand.Rand, l *line) { l.some(r, 0.5, func() int64 { return 5000 + r.Int64N(20_000) }) }},
	{"nobody there", 20_000,
		func(*rand.Rand, deadline.Instant) float64 { return 0 },
		func(r *rand.Rand, l *line) { l.some(r, 0.1, func() int64 { return 30_000 + r.Int64N(60_000) }) }},
	{"all in time", 20_000,
		func(*rand.Rand, deadline.Instant) float64 { return 1000 },
		func(r *rand.Rand, l *line) {
			l.some(r, 0.5, func() int64 { return 10_000 })
			if l.now == 17_000 {
				for range 5000 {
					l.add(9500)
				}
			}
		}},
	{"noise in arrivals and service", 60_000,
		func(r *rand.Rand, _ deadline.Instant) float64 { return 400 * r.ExpFloat64() },
		func(r *rand.Rand, l *line) {
			if r.IntN(200) == 0 {
				for range r.IntN(220) {
					l.add(int64(2000 + 8000*r.ExpFloat64()))
				}
			}
		}},
}

func (l *line) some(r *rand.Rand, perMillisecond float64, ttl func() int64) {
	if r.Float64() < perMillisecond {
		l.add(ttl())
	}
}

// TestPredictionsComeTrue: what the forecast says of the messages that wait is within 10% of what then happens to them (or a few
// messages, where they are few), exact and from a sample; and so is when the first one misses.
func TestPredictionsComeTrue(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 7))
			l := &line{
				serve:  func(now deadline.Instant) float64 { return shape.serve(random, now) },
				arrive: func(l *line) { shape.arrive(random, l) },
			}
			l.pass(shape.warm)
			exact, sampled := Predict(l.survey(math.MaxInt)), Predict(l.survey(500))
			firstMiss := deadline.Instant(0)
			if exact.First >= 0 {
				firstMiss = l.waiting[exact.First].Ref.Deadline
			}
			start := l.now
			missed, first := l.runOut()
			t.Logf("%.1f messages a second, will miss %d (sampled %d) of %d, did %d; the first after %d ms, did after %d ms",
				l.meter.Rate(), exact.Miss, sampled.Miss, exact.Deadlines, missed, firstMiss-start, first-start)
			allowed := max(0.1*float64(missed), 10)
			assert.InDelta(t, missed, exact.Miss, allowed)
			assert.InDelta(t, missed, sampled.Miss, allowed)
			if missed > 100 {
				assert.InDelta(t, int64(first-start), int64(firstMiss-start), max(0.1*float64(first-start), 500))
			}
		})
	}
}

// runOut serves what is there now, and nothing that comes later, and says how many missed, and the first when.
func (l *line) runOut() (missed int, firstAt deadline.Instant) {
	l.arrive = func(*line) {}
	l.missed = 0
	for deadlines := true; deadlines; {
		l.millisecond()
		if l.missed > 0 && firstAt == 0 {
			firstAt = l.now
		}
		deadlines = slices.ContainsFunc(l.waiting, func(s deadline.Sample) bool { return s.Ref.Deadline != 0 && s.Ref.Deadline < l.now+7_200_000 })
	}
	return l.missed, firstAt
}

// samples are pairs of how many are before and the deadline, in ms.
func samples(pairs ...int64) (all []deadline.Sample) {
	for p := range slices.Chunk(pairs, 2) {
		all = append(all, deadline.Sample{Ahead: int(p[0]), Ref: deadline.Ref{Deadline: deadline.FromUnixMilli(p[1])}})
	}
	return all
}

func TestPredictExactly(t *testing.T) {
	l := Line{Now: 1_000_000, Ready: 4, Step: 1, Rate: 1, Samples: samples(0, 9000, 1, 2000, 2, 0, 3, 3000)}
	assert.Equal(t, Prediction{Deadlines: 3, Miss: 2, First: 1, Last: 3_000_000, Drained: 3_000_000}, Predict(l), "the second is due as it is reached")
	l.Rate = 0
	assert.Equal(t, Prediction{Deadlines: 3, Miss: 3, First: 1, Last: 9_000_000}, Predict(l), "nobody serves")
	assert.Equal(t, Prediction{First: -1, Drained: 1_000_000}, Predict(Line{Now: 1_000_000, Rate: 5}))
	l = Line{Now: 0, Ready: 10, Step: 4, Rate: 1000, Samples: samples(0, 1, 4, 1, 8, 9000)}
	assert.Equal(t, Prediction{Deadlines: 10, Miss: 4, First: 1, Last: 1000, Drained: 6000}, Predict(l), "the last sample is for two")
}

func TestMeterSeesTheRateOnlyWhileMessagesWait(t *testing.T) {
	var m Meter
	require.Zero(t, m.Rate())
	delivered := uint64(0)
	observe := func(second int64, n uint64, ready, consumers int) {
		delivered += n
		m.Observe(Observation{Now: deadline.FromUnixMilli(second * 1000), Delivered: delivered, Ready: ready, Consumers: consumers})
	}
	observe(1, 5000, 0, 1)
	assert.Zero(t, m.Rate(), "what was before the first look says nothing")
	observe(2, 10, 0, 1)
	assert.InDelta(t, 10, m.Rate(), 1e-9, "at least as fast as it came")
	observe(3, 2, 0, 1)
	assert.InDelta(t, 10, m.Rate(), 1e-9, "less came")
	for s := range int64(60) {
		observe(4+s, 100, 500, 1)
	}
	assert.InDelta(t, 100, m.Rate(), 1, "messages wait")
	observe(64, 0, 500, 0)
	assert.Zero(t, m.Rate(), "nobody is there")
	observe(65, 0, 500, 2)
	assert.InDelta(t, 85, m.Rate(), 10, "and somebody is")
}

// TestConsumersAreStuckAfterAWhile: a consumer that has just come, or has just got its first messages, is not yet one that takes nothing.
func TestConsumersAreStuckAfterAWhile(t *testing.T) {
	var m Meter
	second, delivered := int64(0), uint64(0)
	stuck := func(n uint64, ready, consumers int) bool {
		second, delivered = second+1, delivered+n
		m.Observe(Observation{Now: deadline.FromUnixMilli(second * 1000), Delivered: delivered, Ready: ready, Consumers: consumers})
		return m.Stuck()
	}
	for range 60 {
		require.False(t, stuck(0, 40, 0), "nobody is there")
	}
	for range 3 {
		require.False(t, stuck(0, 40, 1), "it has just come")
	}
	require.True(t, stuck(0, 40, 1))
	require.True(t, stuck(0, 40, 2), "another comes")
	require.False(t, stuck(1, 39, 2), "and takes one")

	m = Meter{}
	require.False(t, stuck(0, 0, 1))
	require.False(t, stuck(10, 30, 1), "it has what it prefetches")
	for range 2 {
		require.False(t, stuck(0, 30, 1))
	}
	require.True(t, stuck(0, 30, 1), "and takes no more")
	require.False(t, stuck(0, 0, 1), "nothing waits")
}

func TestMeterKnowsPollers(t *testing.T) {
	var m Meter
	for s := range int64(100) {
		m.Observe(Observation{Now: deadline.FromUnixMilli((1 + s) * 1000), Delivered: uint64(s / 5), Polled: uint64(s / 5), Ready: 10})
	}
	assert.InDelta(t, 0.2, m.Rate(), 0.05)
	m.Observe(Observation{Now: 200_000_000, Delivered: 19, Polled: 19, Ready: 10})
	assert.Zero(t, m.Rate(), "the poller has not come for long")
}

func BenchmarkPredict(b *testing.B) {
	l := Line{Ready: 2048 * 100, Step: 100, Rate: 1000}
	for i := range 2048 {
		l.Samples = append(l.Samples, deadline.Sample{Ahead: i * 100, Ref: deadline.Ref{Deadline: deadline.Instant(i * 37 % 1000 * 100_000)}})
	}
	b.ReportAllocs()
	for b.Loop() {
		if Predict(l).Miss == 0 {
			b.Fatal(fmt.Sprint("nothing is missed of ", l.Ready))
		}
	}
}
