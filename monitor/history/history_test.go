package history

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker/deadline"
)

// fake is a source with what a test puts in.
type fake struct {
	queues []Queue
	totals Stats
	state  State
	meant  string // the queue in which an expiry is no loss
	slow   time.Duration
	rounds int
}

func (f *fake) Meant(_, queue string) bool { return queue == f.meant }

func (f *fake) Queues(fn func(*Queue)) Stats {
	f.rounds++
	time.Sleep(f.slow)
	for i := range f.queues {
		fn(&f.queues[i])
	}
	return f.totals
}

func (f *fake) State() State { return f.state }

// start is the first second of an hour, of the present day.
func start() time.Time { return time.Now().Truncate(time.Hour).Add(-time.Hour) }

// day is a history that is sampled by the test, at times of its own.
func day(t testing.TB, o Options) (*History, *fake) {
	t.Helper()
	f := &fake{}
	o.Queues, o.Meant, o.State = f.Queues, f.Meant, f.State
	h := New(o)
	h.now = start
	return h, f
}

// sampled samples seconds from one on, up to another; each may change the source first.
func sampled(h *History, from time.Time, seconds int, each func(n int)) {
	for n := range seconds {
		each(n)
		h.sample(from.Add(time.Duration(n) * time.Second))
	}
}

func expiry(queue string, late time.Duration, path deadline.Path) deadline.Expiry {
	due := deadline.FromUnixMilli(1000)
	return deadline.Expiry{Ref: deadline.Ref{Deadline: due}, VHost: "/", Queue: queue, Arrived: due.Add(late), Path: path}
}

func TestNumbersAreExactOrNear(t *testing.T) {
	for n := int64(0); n < 1<<40; n += 1 + n/97 {
		got := large(small(n))
		if n <= 256 {
			require.Equal(t, n, got)
		} else {
			require.InEpsilon(t, n, got, 0.004)
		}
	}
	p := Point{Known: true, Depth: 1_000_000, AtRisk: 3, Published: 200, Delivered: 0, Toll: deadline.Toll{Expired: 77, Meant: 70, Dropped: 6}, Late: 1, Lateness: 1200 * time.Microsecond}
	r := recordOf(&p)
	got := r.point()
	require.InEpsilon(t, p.Depth, got.Depth, 0.004)
	p.Depth, p.Lateness = got.Depth, got.Lateness
	require.InEpsilon(t, 1200*time.Microsecond, got.Lateness, 0.004)
	require.Equal(t, p, got)
	r = recordOf(&Point{})
	require.Equal(t, record{}, r)
	require.Equal(t, Point{}, r.point())
}

// TestADay: what happens is in each ring, added up.
func TestADay(t *testing.T) {
	h, f := day(t, Options{Traffic: true})
	from := start()
	sampled(h, from, 600, func(n int) {
		depth := 10
		if n == 5 {
			depth = 5000 // a peak of one second
		}
		f.queues = []Queue{{VHost: "/", Name: "q", Depth: depth, AtRisk: 2, Published: uint64(3 * (n + 1)), Delivered: uint64(n + 1)}, {VHost: "/", Name: "idle"}}
		f.totals = Stats{Published: uint64(3 * (n + 1)), Delivered: uint64(n + 1)}
		h.Expired([]deadline.Expiry{expiry("q", 2*time.Millisecond, deadline.Eager), expiry("q", 3*time.Second, deadline.Requeued)})
	})
	h.now = func() time.Time { return from.Add(599 * time.Second) }
	seconds := h.Read(Request{Span: 10 * time.Minute})
	require.EqualValues(t, 1, seconds.Step)
	require.Len(t, seconds.Points, 600)
	require.Equal(t, from.Unix(), seconds.From)
	require.Equal(t, Point{Known: true, Depth: 10, AtRisk: 2, Published: 3, Delivered: 1, Toll: deadline.Toll{Expired: 2, Dropped: 2}, Lateness: 2 * time.Millisecond}, seconds.Points[7])
	tens := h.Read(Request{VHost: "/", Queue: "q", Span: 15 * time.Minute})
	require.EqualValues(t, 10, tens.Step)
	require.Len(t, tens.Points, 90)
	require.False(t, tens.Points[0].Known, "before the start")
	require.InEpsilon(t, 5000, tens.Points[30].Depth, 0.004, "the peak is kept")
	require.EqualValues(t, 30, tens.Points[31].Published)
	require.EqualValues(t, 20, tens.Points[31].Expired)
	minutes := h.Read(Request{VHost: "/", Queue: "q", Span: 24 * time.Hour})
	require.Len(t, minutes.Points, 24*60)
	require.EqualValues(t, 180, minutes.Points[24*60-1].Published)
	merged := h.Read(Request{VHost: "/", Queue: "q", Span: 24 * time.Hour, Points: 100, Partial: true})
	require.EqualValues(t, 15*60, merged.Step)
	require.Len(t, merged.Points, 96)
	require.Zero(t, merged.From%merged.Step, "round times")
	require.EqualValues(t, 10*180, merged.Points[95].Published)
	whole := h.Read(Request{VHost: "/", Queue: "q", Span: 24 * time.Hour, Points: 100})
	require.Len(t, whole.Points, 95, "the last has not ended")
	require.False(t, h.Read(Request{VHost: "/", Queue: "idle"}).Known, "nothing has happened there")
	depths := h.Depths("/", "q", 60)
	require.Len(t, depths, 60)
	require.EqualValues(t, -1, depths[0])
	require.EqualValues(t, 10, depths[58])
	require.Nil(t, h.Depths("/", "idle", 60))
}

// TestBeforeTheFirstSample: a queue in which a message expired has a history, of which nothing is known yet.
func TestBeforeTheFirstSample(t *testing.T) {
	h, _ := day(t, Options{})
	h.Expired([]deadline.Expiry{expiry("q", 0, deadline.Eager)})
	require.EqualValues(t, -1, h.Depths("/", "q", 60)[0])
	require.True(t, h.Read(Request{VHost: "/", Queue: "q", Span: time.Hour}).Known)
}

// TestOnePoint has the whole span in it, which need not begin at a round time.
func TestOnePoint(t *testing.T) {
	h, _ := day(t, Options{})
	sampled(h, start(), 100, func(int) { h.Expired([]deadline.Expiry{expiry("q", 0, deadline.Eager)}) })
	one := h.Read(Request{Span: time.Minute, Points: 1})
	require.Len(t, one.Points, 1)
	require.EqualValues(t, 60, one.Step)
	require.EqualValues(t, 60, one.Points[0].Expired)
}

// TestExpiredInADay counts up to the present moment, whatever has been added up to minutes by then.
func TestExpiredInADay(t *testing.T) {
	h, _ := day(t, Options{})
	require.Zero(t, h.ExpiredInADay())
	from, n := start(), 0
	for _, seconds := range []int{1, 6, 58, 83, 3600} {
		sampled(h, from.Add(time.Duration(n)*time.Second), seconds, func(int) { h.Expired([]deadline.Expiry{expiry("q", 0, deadline.Eager)}) })
		n += seconds
		require.EqualValues(t, n, h.ExpiredInADay().Expired)
		h.Expired([]deadline.Expiry{expiry("q", 0, deadline.Eager)})
		n++
		require.EqualValues(t, n, h.ExpiredInADay().Expired, "what the next sample will write")
		h.sample(from.Add(time.Duration(n-1) * time.Second))
	}
}

// TestExpiredInAnHour counts exactly, as the day does, also after a restart, and forgets what expired more than an hour ago, to the minute.
func TestExpiredInAnHour(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h, _ := day(t, Options{File: file})
	require.Empty(t, h.ExpiredInAnHour())
	queue, from := [2]string{"/", "q"}, start()
	sampled(h, from, 120, func(second int) {
		if second < 60 {
			saved := expiry("q", 0, deadline.Eager)
			saved.Action = deadline.DeadLettered
			for range 301 {
				h.Expired([]deadline.Expiry{expiry("q", 0, deadline.Eager), saved})
			}
		}
	})
	gone := deadline.Hour{queue: {Expired: 2 * 60 * 301, Dropped: 60 * 301}}
	require.Equal(t, gone, h.ExpiredInAnHour())
	require.NoError(t, h.write())
	again, _ := day(t, Options{File: file})
	require.Equal(t, gone, again.ExpiredInAnHour())
	require.Equal(t, gone[queue], again.ExpiredInADay())
	h.Expired([]deadline.Expiry{expiry("q", 0, deadline.Eager)})
	require.NoError(t, h.write(), "before the next sample")
	again, _ = day(t, Options{File: file})
	require.EqualValues(t, gone[queue].Expired+1, again.ExpiredInAnHour()[queue].Expired)
	require.EqualValues(t, gone[queue].Expired+1, again.ExpiredInADay().Expired)
	h, _ = day(t, Options{File: file})
	gone = h.ExpiredInAnHour()
	sampled(h, from.Add(2*time.Minute), 57*60, func(int) {})
	require.Equal(t, gone, h.ExpiredInAnHour())
	sampled(h, from.Add(59*time.Minute), 240, func(int) {})
	require.Zero(t, h.ExpiredInAnHour()[queue])
}

// TestMeantToExpire: what a queue was for when its messages expired decides whether that was meant, in the numbers of all queues, too, and is remembered.
func TestMeantToExpire(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h, f := day(t, Options{File: file})
	f.meant = "readings"
	each := func(int) {
		h.Expired([]deadline.Expiry{expiry("readings", 0, deadline.Eager), expiry("orders", 0, deadline.Eager), expiry("readings", 0, deadline.Eager)})
	}
	sampled(h, start(), 120, each)
	f.meant = "" // it is for work from now on
	sampled(h, start().Add(2*time.Minute), 60, each)
	require.Equal(t, deadline.Hour{{"/", "readings"}: {Expired: 360, Meant: 240, Dropped: 120}, {"/", "orders"}: {Expired: 180, Dropped: 180}}, h.ExpiredInAnHour())
	require.Equal(t, deadline.Toll{Expired: 540, Meant: 240, Dropped: 300}, h.ExpiredInADay())
	require.EqualValues(t, 120, h.Read(Request{VHost: "/", Queue: "readings", Span: time.Hour}).Points[58].Meant)
	require.NoError(t, h.write())
	again, _ := day(t, Options{File: file})
	require.EqualValues(t, 240, again.ExpiredInADay().Meant)
	require.EqualValues(t, 240, again.ExpiredInAnHour()[[2]string{"/", "readings"}].Meant)
}

// TestRingsGrow: a ring that grows reads as one that has its full length from the start, whatever gaps it has.
func TestRingsGrow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 4 {
		short, full := newRings(shortest), newRings(queueLengths)
		last := start().Unix() + random.Int64N(600)
		for range 100 {
			if random.IntN(20) == 0 {
				to := last + 1 + random.Int64N(1<<random.IntN(18))
				short.skip(last+1, to)
				full.skip(last+1, to)
				last = to - 1
			}
			for range random.IntN(90) {
				last++
				p := Point{Known: random.IntN(9) > 0, Depth: random.Int64N(100), Published: 1}
				short.write(last, &p)
				full.write(last, &p)
			}
			for level, step := range steps {
				from, to := last/step-int64(queueLengths[level])-1, (last+1)/step
				require.Equal(t, full.read(level, from, to, last, nil), short.read(level, from, to, last, nil))
			}
		}
	}
}

// TestDeletedQueues: a queue is remembered for as long as it existed, for two hours at least, and what a short one has lost counts for an hour.
func TestDeletedQueues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h, f := day(t, Options{File: file})
	from := start().Add(-10 * time.Hour)
	h.now = func() time.Time { return from }
	f.queues = []Queue{{VHost: "/", Name: "short", Depth: 1}, {VHost: "/", Name: "long", Depth: 1}}
	sampled(h, from, 60, func(int) {})
	h.Expired([]deadline.Expiry{expiry("short", 0, deadline.Eager)})
	size := 0
	for _, ring := range h.queues[[2]string{"/", "short"}].rings {
		size += 18 * len(ring)
	}
	require.Less(t, size, 1500)
	f.queues = f.queues[1:]
	h.sample(from.Add(time.Hour))
	require.EqualValues(t, 1, h.ExpiredInAnHour()[[2]string{"/", "short"}].Expired)
	h.sample(from.Add(5 * time.Hour))
	require.False(t, h.Read(Request{VHost: "/", Queue: "short"}).Known)
	f.queues = nil
	h.sample(from.Add(9 * time.Hour))
	require.NoError(t, h.write())
	again, _ := day(t, Options{File: file})
	require.Equal(t, h.queues[[2]string{"/", "long"}].rings, again.queues[[2]string{"/", "long"}].rings)
	require.True(t, h.Read(Request{VHost: "/", Queue: "long"}).Known)
	h.sample(from.Add(10*time.Hour + 5*time.Minute))
	require.False(t, h.Read(Request{VHost: "/", Queue: "long"}).Known)
}

// TestLateSamplesAreSpread: a sample that comes late is not a peak, and after a long pause there is a gap.
func TestLateSamplesAreSpread(t *testing.T) {
	h, f := day(t, Options{})
	from := start()
	f.totals.Published = 100
	h.sample(from)
	f.totals.Published = 150
	h.sample(from.Add(5 * time.Second))
	f.totals.Published = 150 + 7200
	h.sample(from.Add(2 * time.Hour))
	points := h.total.read(0, h.last-100, h.last+1, h.last, nil)
	for i, p := range points {
		if i <= 100-maxSpread {
			require.False(t, p.Known, i)
		} else {
			require.EqualValues(t, 7200/maxSpread, p.Published, i)
		}
	}
	minutes := h.total.read(2, from.Unix()/60, h.last/60, h.last, nil)
	require.EqualValues(t, 150, minutes[0].Published, "what was there before the pause is kept")
	require.False(t, minutes[1].Known)
	h.sample(from) // a clock that goes back writes nothing
	require.Equal(t, from.Add(2*time.Hour).Unix(), h.last)
}

func TestLateness(t *testing.T) {
	p := series{tolls: make(tolls, hourLong)}
	left := func(late time.Duration) *deadline.Expiry {
		return &deadline.Expiry{Ref: deadline.Ref{Deadline: 1}, Arrived: deadline.Instant(1).Add(late)}
	}
	require.Zero(t, p.most())
	for i := range 1000 {
		late := 300 * time.Microsecond
		if i >= 995 {
			late = 3 * time.Second
		}
		p.expire(left(late), 0)
	}
	p.expire(&deadline.Expiry{Ref: deadline.Ref{Deadline: 1}, Arrived: 90_000_000, Path: deadline.Requeued}, 0)
	require.Equal(t, 500*time.Microsecond, p.most())
	require.EqualValues(t, 1001, p.Expired)
	require.EqualValues(t, 5, p.late)
	p = series{tolls: p.tolls}
	p.expire(left(20*time.Second), 0)
	require.Equal(t, 20*time.Second, p.most(), "no later than the worst")
	p.expire(left(time.Minute), 0)
	require.Equal(t, time.Minute, p.most())
}

// busyDay has n queues in which everything happens all the time.
func busyDay(t testing.TB, n int) (*History, *fake) {
	t.Helper()
	h, f := day(t, Options{Traffic: true})
	for i := range n {
		f.queues = append(f.queues, Queue{VHost: "/", Name: fmt.Sprintf("queue %05d", i), Depth: i, AtRisk: i / 2})
	}
	return h, f
}

// traffic is a second of it.
func (f *fake) traffic(h *History, second int) {
	for i := range f.queues {
		q := &f.queues[i]
		q.Published, q.Delivered, q.Depth = q.Published+uint64(i*second%911), q.Delivered+uint64(i*second%877), i*second%50_021
		if i%50 == second%50 {
			h.Expired([]deadline.Expiry{expiry(q.Name, time.Duration(second)*time.Microsecond, deadline.Eager)})
		}
	}
}

// TestMemory: 1,000 queues in which everything happens take less than 32 MiB, however long.
func TestMemory(t *testing.T) {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	h, f := busyDay(t, maxQueues)
	for range maxMarks + 10 {
		h.marks.add(Mark{Kind: AlertFired, Text: fmt.Sprintf("%0200d", 1)})
	}
	sampled(h, start(), 130, func(n int) { f.traffic(h, n) })
	names := int64(maxQueues * 48) // those and the queues are the broker's
	took := inUse() - before - names - int64(cap(f.queues))*64
	require.Len(t, h.queues, maxQueues)
	t.Logf("%d queues: %.2f MiB", maxQueues, float64(took)/(1<<20))
	require.Less(t, took, int64(32<<20))
	runtime.KeepAlive(h)
}

// BenchmarkSample takes a second of 1,000 and of 10,000 busy queues. A hundredth of a core is 10 ms.
func BenchmarkSample(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h, f := busyDay(b, n)
			at, second := start(), 0
			b.ReportAllocs()
			for b.Loop() {
				second++
				f.traffic(h, second)
				h.sample(at.Add(time.Duration(second) * time.Second))
			}
		})
	}
}

// TestTooManyQueues: another queue gets the rings of one that is gone, or idle for long; others count in the whole.
func TestTooManyQueues(t *testing.T) {
	h, f := busyDay(t, maxQueues)
	from := start()
	for i := range f.queues {
		f.queues[i].Depth = 1
	}
	h.sample(from)
	require.Len(t, h.queues, maxQueues)
	f.queues = append(f.queues, Queue{VHost: "/", Name: "one more", Depth: 7, Published: 500})
	h.sample(from.Add(time.Second))
	read := h.Read(Request{VHost: "/", Queue: "one more"})
	require.False(t, read.Known)
	require.True(t, read.Full)
	p := h.total.read(0, h.last, h.last+1, h.last, nil)[0]
	require.InEpsilon(t, 1007, p.Depth, 0.004, "it counts in all")

	f.queues[3].Depth = 0 // idle from now on
	h.sample(from.Add(2 * time.Second))
	h.sample(from.Add(time.Hour - time.Second))
	require.Nil(t, h.queues[[2]string{"/", "one more"}])
	h.sample(from.Add(time.Hour + 20*time.Second))
	require.NotNil(t, h.queues[[2]string{"/", "one more"}])
	require.Nil(t, h.queues[[2]string{"/", "queue 00003"}])
	p = h.queues[[2]string{"/", "one more"}].read(0, h.last, h.last+1, h.last, nil)[0]
	require.EqualValues(t, 7, p.Depth)
	require.Zero(t, p.Published, "of a time in which it had no rings")

	f.queues = append(f.queues[5:], Queue{VHost: "/", Name: "another", Depth: 1})
	h.sample(from.Add(time.Hour + 30*time.Second))
	require.Nil(t, h.queues[[2]string{"/", "another"}], "the five may only be missing for a moment")
	h.sample(from.Add(time.Hour + 200*time.Second))
	require.NotNil(t, h.queues[[2]string{"/", "another"}])
	require.Len(t, h.queues, maxQueues)
	f.queues = nil
	h.sample(from.Add(time.Hour + 201*time.Second))
	h.sample(from.Add(26 * time.Hour))
	require.Empty(t, h.queues, "after a day nobody remembers them")
}

func TestMarks(t *testing.T) {
	h, _ := day(t, Options{Version: "1.2"})
	at := start()
	a := Alert{Key: "a", Text: "late", VHost: "/", Queue: "q", Since: at}
	h.watch(State{Schedule: "up", Firing: []Alert{a}}, at)
	h.watch(State{Schedule: "up", Firing: []Alert{a}}, at)
	h.watch(State{Schedule: "down", Since: at.Add(-time.Second)}, at)
	require.Equal(t, at.Add(-time.Second).UnixMilli(), h.marks.list[2].At, "when it began")
	h.watch(State{Schedule: "rebuilding"}, at)
	h.watch(State{Schedule: "up"}, at.Add(time.Second))
	h.watch(State{}, at) // a start: it is not known yet
	h.watch(State{Schedule: "up"}, at)
	storm := State{}
	for i := range 30 {
		storm.Firing = append(storm.Firing, Alert{Key: fmt.Sprint(i), Text: fmt.Sprint(i), Since: at})
	}
	h.watch(storm, at)
	var kinds []string
	for _, m := range h.marks.list {
		kinds = append(kinds, string(m.Kind)+" "+m.Text)
	}
	require.Equal(t, []string{"started Curfew 1.2 started", "alert late", "redis_lost Redis was lost", "alert_over Over: late", "redis_back Redis came back after 2 s"}, kinds[:5])
	require.Len(t, kinds, 5+marksAtOnce+1)
	require.Equal(t, "alert 22 more incidents", kinds[len(kinds)-1])
	h.marks.add(Mark{At: at.UnixMilli(), Kind: PolicyChanged, Text: "p", VHost: "other"})
	h.sample(at)
	for _, m := range h.Read(Request{VHost: "/", Queue: "r", Span: 24 * time.Hour}).Marks {
		require.NotEqual(t, "q", m.Queue)
		require.NotEqual(t, "other", m.VHost)
	}
	for range 2 * maxMarks {
		h.marks.add(Mark{Text: "x"})
	}
	require.Len(t, h.marks.list, maxMarks)
	require.Equal(t, PolicyChanged, h.marks.list[5+marksAtOnce+1].Kind, "what is rare is kept")
}

// TestChanges: the last ones come first, without incidents, and what is older than the span is not among them.
func TestChanges(t *testing.T) {
	h, _ := day(t, Options{Version: "1.2"})
	at := h.now()
	h.marks.add(Mark{At: at.Add(-2 * time.Hour).UnixMilli(), Kind: PolicyChanged, Text: "old"})
	h.watch(State{Schedule: "up", Firing: []Alert{{Key: "a", Text: "late", Since: at}}}, at)
	h.watch(State{Schedule: "down"}, at.Add(-4*time.Minute))
	h.watch(State{Schedule: "up"}, at)
	h.AddNow(Mark{Kind: PolicyChanged, Text: "p"})
	var texts []string
	for _, m := range h.Changes(time.Hour, 3, nil) {
		texts = append(texts, m.Text+" "+m.Page)
	}
	require.ElementsMatch(t, []string{"Redis came back after 4 min /incidents", "Curfew 1.2 started /#parts", "p /policies"}, texts)
	require.Len(t, h.Changes(3*time.Hour, 9, nil), 5)
	require.Equal(t, "old", h.Changes(3*time.Hour, 9, nil)[4].Text)

	// What is about the queues of incidents is among them, however much came after it.
	h.marks.add(Mark{At: at.Add(-90 * time.Minute).UnixMilli(), Kind: ConsumersGone, VHost: "/", Queue: "orders", Text: "orders has lost"})
	h.marks.add(Mark{At: at.Add(-80 * time.Minute).UnixMilli(), Kind: ConsumersGone, VHost: "/", Named: []string{"a", "b"}, Text: "a, b have lost"})
	texts = nil
	for _, m := range h.Changes(3*time.Hour, 4, [][2]string{{"/", "orders"}, {"other", "a"}, {"/", "b"}}) {
		texts = append(texts, m.Text)
	}
	require.Len(t, texts, 4)
	require.Equal(t, []string{"a, b have lost", "orders has lost"}, texts[2:])
	require.Empty(t, h.Changes(3*time.Hour, 0, [][2]string{{"/", "orders"}}))
}

// since are the texts of the marks after the first n.
func since(h *History, n int) (texts []string) {
	for _, m := range h.marks.list[n:] {
		texts = append(texts, string(m.Kind)+" "+m.Text)
	}
	return texts
}

// TestMinorIncidentsAreNoMarks, unless they were worse before.
func TestMinorIncidentsAreNoMarks(t *testing.T) {
	h, _ := day(t, Options{})
	a := Alert{Key: "a", Text: "starved", Since: start(), Minor: true}
	h.watch(State{Firing: []Alert{a}}, start())
	require.Empty(t, since(h, 1))
	a.Minor = false
	h.watch(State{Firing: []Alert{a}}, start())
	a.Minor = true
	h.watch(State{Firing: []Alert{a}}, start())
	require.Equal(t, []string{"alert starved"}, since(h, 1))
	h.watch(State{Over: map[string]Alert{"a": {Text: "was starved", Since: start().Add(-9 * time.Second)}}}, start())
	require.Equal(t, []string{"alert starved", "alert_over Over: was starved"}, since(h, 1))
	require.Equal(t, start().Add(-9*time.Second).UnixMilli(), h.marks.list[len(h.marks.list)-1].At, "when it ended, not when that was seen")
	require.Equal(t, "/incidents#incident-a", h.Read(Request{Span: 24 * time.Hour}).Marks[0].Page)
}

// TestWhatGoesOnIsNotMarkedAgain by a restart; what ended or began meanwhile is marked.
func TestWhatGoesOnIsNotMarkedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h, _ := day(t, Options{File: file})
	at := start()
	on, ends, begins := Alert{Key: "on", Text: "goes on", Since: at}, Alert{Key: "ends", Text: "ends", Since: at}, Alert{Key: "begins", Text: "begins", Since: at}
	h.sample(at)
	h.watch(State{Schedule: "down", Firing: []Alert{on, ends}, Clients: []Client{{Name: "orders", Version: "1.0"}}}, at)
	h.save()
	again, _ := day(t, Options{File: file})
	n := len(again.marks.list)
	marks := since(again, 1)
	require.Equal(t, since(h, 1), marks[:len(marks)-1])
	again.watch(State{Schedule: "down", Firing: []Alert{on, begins}, Clients: []Client{{Name: "orders", Version: "1.1"}}}, at.Add(time.Minute))
	require.Equal(t, []string{"alert begins", "alert_over Over: ends", "deploy orders connects in version 1.1, before it in 1.0"}, since(again, n))
	again.watch(State{Schedule: "up", Firing: []Alert{on, begins}}, at.Add(time.Minute))
	require.Equal(t, []string{"redis_back Redis came back after 1 min"}, since(again, n+3))
}

// TestConsumersThatLeave are one mark for their queue, if they were there for a while and do not come back at once.
func TestConsumersThatLeave(t *testing.T) {
	h, f := day(t, Options{})
	at := start()
	with := func(seconds, consumers int) {
		f.queues = []Queue{{VHost: "v", Name: "q", Depth: 1, Consumers: consumers}}
		sampled(h, at, seconds, func(int) {})
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	with(5, 0)
	with(steadyFor-1, 1) // a moment
	with(30, 0)
	require.Empty(t, since(h, 1))
	with(60, 10)
	with(fewerFor-1, 0) // they connect again
	with(60, 10)
	with(60, 6)
	require.Empty(t, since(h, 1))
	left := at.UnixMilli()
	with(60, 3)
	require.Equal(t, []string{"consumers_gone q (vhost v) has lost 7 of its 10 consumers"}, since(h, 1))
	require.Equal(t, left, h.marks.list[1].At, "when they left")
	with(60, 5)
	with(60, 6)
	require.Equal(t, []string{"consumers_back q (vhost v) has consumers again (6)"}, since(h, 2))
	with(60, 3)
	with(60, 0)
	with(2, 4)
	require.Equal(t, []string{"consumers_gone q (vhost v) has lost all its consumers (3)", "consumers_back q (vhost v) has consumers again (4)"}, since(h, 4))
	require.Equal(t, "/queue?name=q&vhost=v", h.Read(Request{VHost: "v", Queue: "q", Span: 24 * time.Hour}).Marks[2].Page)
	with(60, 4)
	with(5, 0)
	f.queues = nil // it is deleted
	sampled(h, at, 60, func(int) {})
	require.Len(t, h.marks.list, 6)
}

// TestConsumersThatCome to queues that had none for a minute are one mark, if they stay for a while.
func TestConsumersThatCome(t *testing.T) {
	h, f := day(t, Options{})
	at := start()
	with := func(seconds int, consumers ...int) {
		f.queues = nil
		for i, n := range consumers {
			f.queues = append(f.queues, Queue{VHost: "v", Name: fmt.Sprint("q", i), Depth: 1, Consumers: n})
		}
		sampled(h, at, seconds, func(int) {})
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	with(30, 0, 0, 0, 0, 0)
	with(60, 1, 0, 0, 0, 0) // it is new
	require.Empty(t, since(h, 1))
	with(steadyFor-1, 1, 2, 0, 0, 0) // a moment
	with(60, 1, 0, 0, 0, 0)
	require.Empty(t, since(h, 1))
	came := at.UnixMilli()
	with(60, 1, 2, 1, 1, 1)
	require.Equal(t, []string{"consumers_back q1, q2, q3 and 1 more queue (vhost v) have consumers now (5)"}, since(h, 1))
	require.Equal(t, came, h.marks.list[1].At, "when they came")
}

// TestAClientOfManyQueues leaves one mark in each virtual host, which is also on the axis of each of its queues.
func TestAClientOfManyQueues(t *testing.T) {
	h, f := day(t, Options{})
	for i := range 36 {
		f.queues = append(f.queues, Queue{VHost: "/", Name: fmt.Sprint(10 + i), Depth: 1, Consumers: 2})
	}
	f.queues = append(f.queues, Queue{VHost: "v", Name: "a", Depth: 1, Consumers: 1}, Queue{VHost: "v", Name: "b", Depth: 1, Consumers: 1}, Queue{VHost: "v", Name: "c", Depth: 1})
	sampled(h, start(), 60, func(int) {})
	for i := range f.queues {
		f.queues[i].Consumers = 0
	}
	f.queues[1].Consumers = 2 // it leaves a little later
	f.queues[0].Left, f.queues[36].Left, f.queues[37].Left = "one of them", "worker", "worker"
	sampled(h, start().Add(time.Minute), 2, func(int) {})
	f.queues[1].Consumers = 0
	sampled(h, start().Add(time.Minute+2*time.Second), 60, func(int) {})
	require.Equal(t, []string{"consumers_gone 10, 12, 13 and 33 more queues have lost consumers (72)", "consumers_gone a, b (vhost v) have lost consumers (2): worker left"}, since(h, 1))
	axis := func(vhost, queue string) int {
		return len(h.Read(Request{VHost: vhost, Queue: queue, Span: 24 * time.Hour}).Marks) - 1
	}
	require.Equal(t, []int{1, 1, 0, 1}, []int{axis("/", "10"), axis("/", "45"), axis("v", "c"), axis("v", "b")})
	for i := range f.queues {
		f.queues[i].Consumers = 1
	}
	sampled(h, start().Add(3*time.Minute), 60, func(int) {})
	require.Contains(t, since(h, 3), "consumers_back a, b, c (vhost v) have consumers now (3)")
}

// TestNewVersions of an application are marks; its first one is not, nor one that was connected in the last day.
func TestNewVersions(t *testing.T) {
	h, _ := day(t, Options{})
	at := start().Add(-20 * time.Hour)
	see := func(after time.Duration, clients ...Client) []string {
		at = at.Add(after)
		n := len(h.marks.list)
		h.watch(State{Clients: clients}, at)
		return since(h, n)
	}
	old, next := Client{"orders", "", "1.9"}, Client{"orders", "", "1.10"}
	require.Empty(t, see(0, old, Client{"pika", "ann", "1.3"}))
	require.Equal(t, []string{"deploy orders connects in version 1.10, before it in 1.9"}, see(time.Minute, old, next))
	require.Empty(t, see(time.Minute, next))
	require.Empty(t, see(time.Hour, old, next, Client{"pika", "bob", "1.4"}))
	require.Equal(t, []string{"deploy pika of the user ann connects in version 1.4, before it in 1.3"}, see(time.Hour, Client{"pika", "ann", "1.4"}))
	require.Equal(t, "/connections?q=pika", h.marks.list[len(h.marks.list)-1].page())
	require.Empty(t, see(25*time.Hour, old), "nobody remembers it")
	for i := range 2 * maxVersions {
		see(time.Second, Client{"orders", "", fmt.Sprint("2.", i)})
	}
	require.Len(t, h.known.Clients["orders\x00"], maxVersions)
	for i := range 2 * maxClients {
		see(0, Client{fmt.Sprint(i), "", "1"})
	}
	require.Len(t, h.known.Clients, maxClients)
	for range 2 {
		see(fullFor*time.Second, Client{"fresh", "", "1"})
	}
	require.Equal(t, []string{"deploy fresh connects in version 2, before it in 1"}, see(0, Client{"fresh", "", "2"}), "names that nobody uses make room")
}

// TestNumbersThatAreNoVersions: workers that count themselves where others have a version leave no marks without end.
func TestNumbersThatAreNoVersions(t *testing.T) {
	h, _ := day(t, Options{})
	at, before := start().Add(-20*time.Hour), len(h.marks.list)
	workers := make([]Client, maxVersions+10)
	for i := range workers {
		workers[i] = Client{"worker", "", fmt.Sprint("1.", i)}
	}
	for range 100 { // connected at the same time
		h.watch(State{Clients: workers}, at)
		at = at.Add(stateEvery)
	}
	for i := range 100 { // one after the other
		h.watch(State{Clients: []Client{{"worker", "", fmt.Sprint("2.", i)}}}, at)
		at = at.Add(stateEvery)
	}
	require.LessOrEqual(t, len(h.marks.list)-before, maxVersions)
	at = at.Add(time.Hour)
	h.watch(State{Clients: []Client{{"worker", "", "3.0"}}}, at)
	require.Equal(t, "worker connects in version 3.0", strings.Split(h.marks.list[len(h.marks.list)-1].Text, ",")[0])
}

// TestRestart: a history goes on where the last one ended, and says when the process began.
func TestRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h, f := day(t, Options{File: file})
	h.save()
	require.NoFileExists(t, file, "nothing was sampled")
	f.queues = []Queue{{VHost: "/", Name: "q", Depth: 5, Published: 9}}
	from := start()
	sampled(h, from, 120, func(int) {})
	h.marks.add(Mark{At: from.UnixMilli(), Kind: PolicyChanged, Text: "policy"})
	h.save()

	again, f := day(t, Options{File: file, Version: "2"})
	require.Equal(t, h.last, again.last)
	require.Equal(t, h.total.rings, again.total.rings)
	require.Equal(t, h.queues[[2]string{"/", "q"}].rings, again.queues[[2]string{"/", "q"}].rings)
	f.queues = []Queue{{VHost: "/", Name: "q", Depth: 6, Published: 2}}
	sampled(again, from.Add(10*time.Minute), 60, func(int) {})
	minutes := again.queues[[2]string{"/", "q"}].read(2, from.Unix()/60, from.Unix()/60+11, again.last, nil)
	require.EqualValues(t, 5, minutes[1].Depth)
	require.False(t, minutes[2].Known, "nobody was there")
	require.EqualValues(t, 6, minutes[10].Depth)
	require.EqualValues(t, 2, minutes[10].Published, "it counts from 0 again")
	var texts []string
	for _, m := range again.marks.list {
		texts = append(texts, m.Text)
	}
	require.Contains(t, texts, "policy")
	require.Contains(t, strings.Join(texts, "\n"), "Curfew 2 started, ")
}

// TestHowItEnded: the mark of a start says how the process before had ended, how long there was none, and what is missing.
func TestHowItEnded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	synctest.Test(t, func(t *testing.T) {
		life := func(lasts time.Duration, killed bool) (began string) {
			h := New(Options{File: file, Version: "2", Queues: new(fake).Queues, State: new(fake).State})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- h.Run(ctx) }()
			time.Sleep(lasts)
			if killed {
				content, err := os.ReadFile(file)
				require.NoError(t, err)
				about, err := os.Stat(file)
				require.NoError(t, err)
				defer func() {
					require.NoError(t, os.WriteFile(file, content, 0o600))
					require.NoError(t, os.Chtimes(file, time.Time{}, about.ModTime()))
				}()
			}
			stop()
			require.NoError(t, <-ended)
			return h.marks.list[len(h.marks.list)-1].Text
		}
		require.Equal(t, "Curfew 2 started", life(time.Minute, false))
		time.Sleep(8 * time.Second)
		require.Equal(t, "Curfew 2 started, 8 s after it was stopped as asked for", life(6*time.Second, true))
		time.Sleep(9 * time.Second)
		require.Equal(t, "Curfew 2 started, 10 s after it was killed or had crashed", life(4*time.Minute+2*time.Second, true))
		time.Sleep(9 * time.Second)
		require.Regexp(t, `^Curfew 2 started, 11 s after it was killed or had crashed; the counts of the 3 min 5\d s before that are missing$`, life(time.Second, false))
	})
}

// TestConsumersOverARestart: those that do not come back are gone.
func TestConsumersOverARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h, f := day(t, Options{File: file})
	f.queues = []Queue{{VHost: "/", Name: "back", Depth: 5, Consumers: 2}, {VHost: "/", Name: "gone", Depth: 5, Consumers: 3}, {VHost: "/", Name: "none", Depth: 5}}
	sampled(h, time.Now().Add(-time.Minute), 30, func(int) {})
	h.save()
	again, f := day(t, Options{File: file})
	n := len(again.marks.list)
	f.queues = []Queue{{VHost: "/", Name: "back", Depth: 5}, {VHost: "/", Name: "gone", Depth: 5}, {VHost: "/", Name: "none", Depth: 5}}
	sampled(again, time.Now(), 50, func(second int) {
		if second == 20 {
			f.queues[0].Consumers = 2
		}
	})
	require.Equal(t, []string{"consumers_gone gone has lost all its consumers (3)"}, since(again, n))
}

// TestFilesThatCannotBeUsed are ignored, and the log says so.
func TestFilesThatCannotBeUsed(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	h, f := day(t, Options{File: good})
	f.queues = []Queue{{VHost: "/", Name: "q", Depth: 5}}
	h.sample(start())
	h.save()
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	h.last -= 3 * 24 * 3600
	h.save()
	old, err := os.ReadFile(good)
	require.NoError(t, err)
	h.last += 6 * 24 * 3600
	h.save()
	future, err := os.ReadFile(good)
	require.NoError(t, err)
	flipped := append([]byte{}, text...)
	flipped[len(flipped)/2] ^= 0x10
	for name, content := range map[string][]byte{
		"empty": {}, "another version": append([]byte("CURFEWH0"), text[8:]...), "cut": text[:len(text)-9], "flipped": flipped, "old": old, "of the future": future,
		"longer": append(append([]byte{}, text...), "more"...),
	} {
		file := filepath.Join(t.TempDir(), "history")
		require.NoError(t, os.WriteFile(file, content, 0o600))
		core, logs := observer.New(zap.WarnLevel)
		again, f := day(t, Options{File: file, Log: zap.New(core)})
		require.Equal(t, 1, logs.Len(), name)
		require.Empty(t, again.queues, name)
		require.Zero(t, again.last, name)
		f.queues = []Queue{{VHost: "/", Name: "q", Depth: 5}}
		again.sample(start())
		again.save()
		require.Zero(t, logs.Len()-1, name)
	}
}

// TestRun samples each second, notes states and saves at the end.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queues: []Queue{{VHost: "/", Name: "q", Depth: 5}}, state: State{Schedule: "down"}}
		h := New(Options{Queues: f.Queues, Meant: f.Meant, State: f.State, File: file})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Run(ctx) }()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		read := h.Read(Request{Span: 5 * time.Minute})
		known := 0
		for _, p := range read.Points {
			if p.Known {
				known++
			}
		}
		require.GreaterOrEqual(t, known, 179)
		require.Equal(t, ScheduleLost, read.Marks[len(read.Marks)-1].Kind)
		cancel()
		require.NoError(t, <-ended)
	})
	require.FileExists(t, file)
}

// TestSamplesThatWait for a busy machine do not make the history stand still.
func TestSamplesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{slow: 400 * time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, New(Options{Queues: f.Queues, Meant: f.Meant, State: f.State}).Run(ctx))
		require.Greater(t, f.rounds, 12)
	})
}

func TestHandler(t *testing.T) {
	h, f := day(t, Options{Traffic: true})
	h.now = func() time.Time { return start().Add(2 * time.Minute) }
	sampled(h, start(), 100, func(n int) {
		f.queues = []Queue{{VHost: "/", Name: "q", Depth: n, Published: uint64(n)}}
		f.totals.Published = uint64(n)
	})
	get := func(query string) (int, map[string]any) {
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/history?"+query, http.NoBody))
		var got map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got), w.Body.String())
		return w.Code, got
	}
	code, got := get("")
	require.Equal(t, http.StatusOK, code)
	require.Len(t, got["depth"], 360)
	require.EqualValues(t, 10, got["step"])
	require.Nil(t, got["depth"].([]any)[0])
	require.NotEmpty(t, got["marks"])
	version := func() string { return fmt.Sprintf("marks=%.0f", got["marks_version"]) }
	_, got = get(version())
	require.NotContains(t, got, "marks", "the reader has them")
	require.Len(t, got["depth"], 360)
	h.AddNow(Mark{Kind: Deployed, Text: "new"})
	_, got = get(version())
	require.Len(t, got["marks"], 2, "all of them")
	code, got = get("queue=q&span=5m&points=10")
	require.Equal(t, http.StatusOK, code)
	require.Len(t, got["published"], 9)
	require.Zero(t, int64(got["from"].(float64))%30)
	for query, want := range map[string]int{
		"marks=x": http.StatusBadRequest, "queue=none": http.StatusNotFound, "span=2": http.StatusBadRequest, "span=48h": http.StatusBadRequest, "points=0": http.StatusBadRequest, "points=99999": http.StatusBadRequest,
	} {
		code, got := get(query)
		assert.Equal(t, want, code, query)
		assert.NotEmpty(t, got["reason"], query)
	}
	h.Traffic = false
	_, got = get("")
	require.NotContains(t, got, "published")
}

// TestAnotherApplication that consumes in place of one that was there is a mark, however fast it came. Another instance of the same is none.
func TestAnotherApplication(t *testing.T) {
	h, f := day(t, Options{})
	at := start()
	with := func(seconds int, first, last string) {
		f.queues = []Queue{{VHost: "/", Name: "invoices", Depth: 1, Consumers: 1, First: first, Last: last}}
		sampled(h, at, seconds, func(int) {})
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	const one, two, v2 = "invoice-worker-1 (user ann, 10.0.0.7)", "invoice-worker-2 (user ann, 10.0.0.8)", "invoice-worker-v2 (user ann, 10.0.0.7)"
	with(60, one, one)
	with(60, two, two)
	with(60, "probe", two) // both consume
	with(5, "probe", "probe")
	with(60, two, two)
	require.Empty(t, since(h, 1))
	came := at.UnixMilli()
	with(60, v2, v2)
	require.Equal(t, []string{"consumers_back invoices has other consumers: " + v2 + " came, and " + two + " left"}, since(h, 1))
	require.Equal(t, came, h.marks.list[1].At)
	with(5, "", "")
	with(60, v2, v2)
	require.Len(t, h.marks.list, 2)
}

// TestApplicationsThatShareAQueue: that one of two which have consumed for long connects again, or leaves, brings nobody.
func TestApplicationsThatShareAQueue(t *testing.T) {
	h, f := day(t, Options{})
	at := start()
	with := func(seconds int, first, last string) {
		f.queues = []Queue{{VHost: "/", Name: "invoices", Depth: 1, Consumers: 1, First: first, Last: last}}
		sampled(h, at, seconds, func(int) {})
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	with(30, "a", "b")
	with(2, "b", "b") // a connects again
	with(15, "b", "a")
	with(2, "b", "b")
	with(60, "b", "a")
	require.Empty(t, since(h, 1))
	with(60, "b", "b")
	require.Empty(t, since(h, 1), "b has not come")
	with(30, "b", "c") // each starts before the one before it stops
	came := at.UnixMilli()
	with(60, "c", "c")
	require.Equal(t, []string{"consumers_back invoices has other consumers: c came, and b left"}, since(h, 1))
	require.Equal(t, came, h.marks.list[1].At)
	with(120, "c", "d") // and stops, but comes again
	with(60, "c", "c")
	with(60, "d", "d")
	require.Equal(t, []string{"consumers_back invoices has other consumers: d came, and c left"}, since(h, 2))
}

// TestApplicationsThatComeBack after a restart, one before the other, have both been there before.
func TestApplicationsThatComeBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	at := time.Now().Truncate(time.Second)
	with := func(h *History, f *fake, seconds int, first, last string) {
		f.queues = []Queue{{VHost: "/", Name: "invoices", Depth: 1, Consumers: 1, First: first, Last: last}}
		sampled(h, at, seconds, func(int) {})
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	at = at.Add(-2 * time.Minute)
	h, f := day(t, Options{File: file})
	with(h, f, 110, "a", "b")
	h.save()
	again, f := day(t, Options{File: file})
	n := len(again.marks.list)
	at = at.Add(11 * time.Second)
	with(again, f, 14, "b", "b")
	with(again, f, 60, "b", "a")
	require.Empty(t, since(again, n))
	with(again, f, 60, "c", "c")
	require.Equal(t, []string{"consumers_back invoices has other consumers: c came, and b left"}, since(again, n))
}

// TestRollingRestarts: two applications share a queue, and each is away for a moment, one soon after the other; or both stop, and come back in another order.
func TestRollingRestarts(t *testing.T) {
	h, f := day(t, Options{})
	at := start()
	with := func(seconds int, left string, clients ...string) {
		q := Queue{VHost: "/", Name: "invoices", Depth: 1, Left: left}
		if len(clients) > 0 {
			q.Consumers, q.First, q.Last = 3, clients[0], clients[len(clients)-1]
		}
		f.queues = []Queue{q}
		sampled(h, at, seconds, func(int) {})
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	with(90, "", "a", "b")
	for range 3 {
		with(15, "", "b") // a restarts
		with(20, "", "b", "a")
		with(15, "", "a") // b restarts
		with(20, "", "a", "b")
	}
	with(3, "b") // both restart
	with(15, "", "a")
	with(60, "", "a", "b")
	with(3, "a")
	with(15, "", "b")
	with(60, "", "b", "a")
	require.Empty(t, since(h, 1))
	with(60, "", "b")
	with(60, "", "c")
	require.Equal(t, []string{"consumers_back invoices has other consumers: c came, and b left"}, since(h, 1))
}

// TestANewVersionFirst: consumers that were more for as long as a new version of an application ran beside the old one are not lost when that stops.
func TestANewVersionFirst(t *testing.T) {
	h, f := day(t, Options{})
	at := start()
	with := func(seconds, consumers int) {
		f.queues = []Queue{{VHost: "/", Name: "q", Depth: 1, Consumers: consumers}}
		sampled(h, at, seconds, func(int) {})
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	with(overlapFor+60, 2)
	for range 3 {
		with(overlapFor-1, 4)
		with(60, 2)
	}
	require.Empty(t, since(h, 1))
	with(30, 3)
	with(overlapFor, 5) // they have come to stay: three of them for long enough
	with(60, 1)
	require.Equal(t, []string{"consumers_gone q has lost 2 of its 3 consumers"}, since(h, 1))
}

// TestKilledSoonAfter: a mark, a loss and who consumed last are in the file 15 s later. What is no news is not written so soon.
func TestKilledSoonAfter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queues: []Queue{{VHost: "/", Name: "q", Depth: 5}, {VHost: "/", Name: "meant", Depth: 5}}, meant: "meant"}
		var mu sync.Mutex // of f
		o := Options{File: file, Meant: f.Meant, State: f.State, Queues: func(fn func(*Queue)) Stats {
			mu.Lock()
			defer mu.Unlock()
			return f.Queues(fn)
		}}
		h := New(o)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Run(ctx) }()
		content := func() string {
			synctest.Wait()
			all, err := os.ReadFile(file)
			require.NoError(t, err)
			return string(all)
		}
		time.Sleep(90*time.Second + 300*time.Millisecond)
		before := content()
		h.Expired([]deadline.Expiry{expiry("meant", 0, deadline.Eager)})
		time.Sleep(30 * time.Second)
		require.Equal(t, before, content())
		for _, news := range []func(){
			func() { h.Expired([]deadline.Expiry{expiry("q", 0, deadline.Eager)}) },
			func() { h.AddNow(Mark{Kind: PolicyChanged, Text: "policy"}) },
			func() {
				mu.Lock()
				defer mu.Unlock()
				f.queues[0].Left, f.queues[0].LeftAt = "worker", time.Now()
			},
		} {
			time.Sleep(30 * time.Second)
			before = content()
			news()
			time.Sleep(15 * time.Second)
			require.NotEqual(t, before, content())
		}
		after := New(o)
		require.EqualValues(t, 1, after.queues[[2]string{"/", "q"}].tolls.sum(after.last).Expired)
		after.Departed(func(_, queue, client string, _ time.Time) { require.Equal(t, "q worker", queue+" "+client) })
		stop()
		require.NoError(t, <-ended)
	})
}

// TestWhoConsumedLast is known after a restart, if it left before or consumed until then.
func TestWhoConsumedLast(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h, f := day(t, Options{File: file})
	now := time.Now().Truncate(time.Second)
	left := now.Add(-10 * time.Minute)
	f.queues = []Queue{{VHost: "/", Name: "a", Depth: 5, Left: "worker", LeftAt: left}, {VHost: "/", Name: "b", Depth: 5, Consumers: 1, First: "mailer", Last: "mailer"}, {VHost: "/", Name: "c", Depth: 5}}
	sampled(h, now.Add(-30*time.Second), 10, func(int) {})
	h.save()
	again, _ := day(t, Options{File: file})
	var is []string
	again.Departed(func(vhost, queue, client string, at time.Time) {
		is = append(is, fmt.Sprint(vhost, queue, " ", client, " ", now.Sub(at)))
	})
	require.ElementsMatch(t, []string{"/a worker 10m0s", "/b mailer 21s"}, is)
}

// TestRates are those of the last minute.
func TestRates(t *testing.T) {
	h, f := day(t, Options{})
	f.queues = []Queue{{VHost: "/", Name: "q", Depth: 1, Consumers: 1}}
	sampled(h, start().Add(-time.Minute), 60, func(int) { f.queues[0].Published += 10; f.queues[0].Delivered++ })
	in, out := h.Rates("/", "q")
	require.InDelta(t, 10, in, 1)
	require.InDelta(t, 1, out, 0.1)
}
