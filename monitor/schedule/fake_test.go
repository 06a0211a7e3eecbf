package schedule

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"curfew/broker/deadline"
	"curfew/scheduler"
	"curfew/scheduler/redisstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBroker is a primary that remembers what was done to it. Each view of it is
// one monitor's.
type fakeBroker struct {
	t testing.TB

	mu       sync.Mutex
	messages map[deadline.Ref]*fakeMessage
	order    []deadline.Ref
	expired  []deadline.Ref // in the order in which they did
	left     map[deadline.Ref]departure
	views    []*fakeView
	nextSeq  uint64
	offset   time.Duration // of its clock from the wall clock
	slow     int64         // ms by which expiry judges later than Now says
	failures int           // further calls to Expire that panic
	hang     chan struct{} // Expire waits for it
	expires  expireStats
	action   deadline.Action
}

// expireStats counts what Expire was asked.
type expireStats struct{ calls, asked, largest int }

type fakeMessage struct{ held bool }

// departure says when a message left, and how.
type departure struct {
	at      deadline.Instant
	expired bool
}

// fakeView is a monitor's view of a fakeBroker; it implements Primary.
type fakeView struct {
	*fakeBroker
	tracked map[deadline.Ref]bool
	events  []deadline.Event
	expired deadline.Stream
	lagged  bool
	limit   int
	arrived chan struct{}
	panics  int // further calls to Track that panic
	broken  int // further calls to Events that lose what there is and fail
}

func newFakeBroker(t testing.TB) *fakeBroker {
	return &fakeBroker{
		t:        t,
		messages: make(map[deadline.Ref]*fakeMessage),
		left:     make(map[deadline.Ref]departure),
	}
}

func (b *fakeBroker) view() *fakeView {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := &fakeView{
		fakeBroker: b,
		tracked:    make(map[deadline.Ref]bool),
		limit:      1 << 20,
		arrived:    make(chan struct{}, 1),
	}
	b.views = append(b.views, v)
	return v
}

func (b *fakeBroker) Now() deadline.Instant { return deadline.At(time.Now()) }

func (b *fakeBroker) ClockOffset() time.Duration { return b.offset }

func (b *fakeBroker) Survey(int, func(*deadline.Survey)) {}

func (b *fakeBroker) TimeToLive(deadline.Ref) (ttl deadline.Millis, ok bool) { return 0, false }

// expiry is the record of a message that has expired.
func (b *fakeBroker) expiry(s deadline.Ref, at deadline.Instant, path deadline.Path) deadline.Expiry {
	vhost, name, _ := b.QueueName(s.Queue)
	return deadline.Expiry{Ref: s, VHost: vhost, Queue: name, Arrived: at, ClockAhead: b.offset, Path: path, Action: b.action}
}

// publish enqueues a message that expires after ttl.
func (b *fakeBroker) publish(queue uint64, ttl time.Duration) deadline.Ref {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.enqueue(deadline.Ref{Deadline: b.Now().Add(ttl), Queue: queue})
}

func (b *fakeBroker) enqueue(s deadline.Ref) deadline.Ref {
	b.nextSeq++
	s.Seq = b.nextSeq
	b.messages[s] = &fakeMessage{}
	b.order = append(b.order, s)
	for _, v := range b.views {
		v.push(deadline.Event{Kind: deadline.Enqueued, Ref: s})
	}
	return s
}

// ack removes a message as a consumer would.
func (b *fakeBroker) ack(s deadline.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.messages[s] == nil {
		return
	}
	b.leave(s, false)
	for _, v := range b.views {
		if v.tracked[s] {
			v.push(deadline.Event{Kind: deadline.Left, Ref: s})
		}
	}
}

// hold delivers a message; requeue brings it back.
func (b *fakeBroker) hold(s deadline.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages[s].held = true
}

func (b *fakeBroker) requeue(s deadline.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages[s].held = false
	if b.Now() < s.Deadline {
		return
	}
	b.leave(s, true)
	for _, v := range b.views {
		if v.tracked[s] {
			v.push(deadline.Event{Kind: deadline.Left, Ref: s})
		}
		v.expired.Publish([]deadline.Expiry{b.expiry(s, b.Now(), deadline.Requeued)})
	}
}

func (b *fakeBroker) leave(s deadline.Ref, expired bool) {
	if _, twice := b.left[s]; twice {
		b.t.Errorf("%v left twice", s)
	}
	if expired && b.Now() < s.Deadline {
		b.t.Errorf("%v expired early, at %d", s, b.Now())
	}
	b.left[s] = departure{b.Now(), expired}
	if expired {
		b.expired = append(b.expired, s)
	}
	delete(b.messages, s)
}

// expiredAt is when s expired; 0 when it has not.
func (b *fakeBroker) expiredAt(s deadline.Ref) deadline.Instant {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.left[s]; d.expired {
		return d.at
	}
	return 0
}

// lateness of s, -1 when it has not expired.
func (b *fakeBroker) lateness(s deadline.Ref) int64 {
	if at := b.expiredAt(s); at != 0 {
		return int64(at - s.Deadline)
	}
	return -1
}

func (b *fakeBroker) stats() expireStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.expires
}

func (b *fakeBroker) do(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn()
}

func (b *fakeBroker) queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.messages)
}

// Expire tells this view's monitor what expired.
func (v *fakeView) Expire(shadows []deadline.Ref, path deadline.Path, _ bool, out []deadline.Answer) []deadline.Answer {
	from := len(out)
	out = v.fakeBroker.Expire(shadows, out)
	var told []deadline.Expiry
	for i, r := range out[from:] {
		if r.Outcome == deadline.Expired {
			told = append(told, v.expiry(shadows[i], r.At, path))
		}
	}
	v.expired.Publish(told)
	return out
}

// Expiries implements Primary.
func (v *fakeView) Expiries() *deadline.Stream { return &v.expired }

func (b *fakeBroker) Expire(shadows []deadline.Ref, out []deadline.Answer) []deadline.Answer {
	var hang chan struct{}
	b.do(func() { hang = b.hang })
	if hang != nil {
		<-hang
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expires.calls++
	b.expires.asked += len(shadows)
	b.expires.largest = max(b.expires.largest, len(shadows))
	if b.failures > 0 {
		b.failures--
		panic("as told")
	}
	for _, s := range shadows {
		out = append(out, b.expire(s))
	}
	return out
}

func (b *fakeBroker) expire(s deadline.Ref) deadline.Answer {
	switch m := b.messages[s]; {
	case m == nil:
		return deadline.Answer{Outcome: deadline.Gone}
	case m.held:
		return deadline.Answer{Outcome: deadline.Held}
	case b.Now()-deadline.Instant(b.slow) < s.Deadline:
		return deadline.Answer{Outcome: deadline.NotDue, At: s.Deadline}
	}
	b.leave(s, true)
	return deadline.Answer{Outcome: deadline.Expired, At: b.Now()}
}

func (b *fakeBroker) QueueName(queue uint64) (vhost, name string, ok bool) {
	return "/", "q" + strconv.FormatUint(queue, 10), queue != 0
}

// push appends an event. Callers hold mu.
func (v *fakeView) push(e deadline.Event) {
	if len(v.events) >= v.limit {
		v.lagged = true
	} else {
		v.events = append(v.events, e)
	}
	select {
	case v.arrived <- struct{}{}:
	default:
	}
}

func (v *fakeView) take(buf []deadline.Event) (n int, lagged bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n = copy(buf, v.events)
	v.events = slices.Delete(v.events, 0, n)
	lagged, v.lagged = v.lagged, false
	return n, lagged
}

// breaks says that the feed fails, and loses what is in it.
func (v *fakeView) breaks() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broken == 0 || len(v.events) == 0 {
		return false
	}
	v.broken--
	v.events = nil
	return true
}

func (v *fakeView) Events(ctx context.Context, buf []deadline.Event) (n int, lagged bool, err error) {
	for {
		if v.breaks() {
			return 0, false, errors.New("the feed broke")
		}
		if n, lagged = v.take(buf); n > 0 || lagged {
			return n, lagged, nil
		}
		select {
		case <-v.arrived:
		case <-ctx.Done():
			return 0, false, ctx.Err()
		}
	}
}

func (v *fakeView) Track(shadows []deadline.Ref) []deadline.Ref {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.panics > 0 {
		v.panics--
		panic("as told")
	}
	kept := shadows[:0]
	for _, s := range shadows {
		if v.messages[s] != nil {
			v.tracked[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

func (v *fakeView) Snapshot(ctx context.Context, fn func([]deadline.Ref) error) error {
	var all []deadline.Ref
	v.do(func() {
		for _, s := range v.order {
			if v.messages[s] != nil {
				v.tracked[s] = true
				all = append(all, s)
			}
		}
	})
	for page := range slices.Chunk(all, 100) {
		if err := fn(page); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fakeRedis is a Schedule in memory that fails on command.
type fakeRedis struct {
	Faulty
	mem *scheduler.Index

	mu     sync.Mutex
	epoch  bool
	added  map[deadline.Ref]bool // ever
	owned  bool                  // by somebody else
	status scheduler.Status
}

func newFakeRedis() *fakeRedis {
	r := &fakeRedis{mem: scheduler.NewIndex(nil), added: make(map[deadline.Ref]bool)}
	r.Store = &recorder{Store: r.mem, r: r}
	return r
}

// recorder remembers what was added.
type recorder struct {
	scheduler.Store
	r *fakeRedis
}

func (s *recorder) Apply(ctx context.Context, add, remove []deadline.Ref) error {
	s.r.mu.Lock()
	for _, a := range add {
		s.r.added[a] = true
	}
	s.r.mu.Unlock()
	return s.Store.Apply(ctx, add, remove)
}

// has reports whether a shadow is in a schedule, claimed or not.
func has(schedule interface {
	Scan(ctx context.Context, fn func(page []deadline.Ref) error) error
}, shadow deadline.Ref) (found bool) {
	_ = schedule.Scan(context.Background(), func(page []deadline.Ref) error {
		found = found || slices.Contains(page, shadow)
		return nil
	})
	return found
}

func (r *fakeRedis) wasAdded(s deadline.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.added[s]
}

// flush empties it, as FLUSHALL does.
func (r *fakeRedis) flush() {
	var all []deadline.Ref
	_ = r.mem.Scan(context.Background(), func(page []deadline.Ref) error {
		all = append(all, page...)
		return nil
	})
	_ = r.mem.Apply(context.Background(), nil, all)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch = false
}

func (r *fakeRedis) Epoch(ctx context.Context) (ok bool, err error) {
	err = r.Do(ctx, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		ok = r.epoch
		return nil
	})
	return ok, err
}

func (r *fakeRedis) Begin(ctx context.Context) error {
	return r.Do(ctx, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.owned {
			return redisstore.ErrOwned
		}
		r.epoch = true
		return nil
	})
}

func (r *fakeRedis) Refresh(ctx context.Context) error {
	return r.Do(ctx, func() error { return nil })
}

func (r *fakeRedis) Scan(ctx context.Context, fn func([]deadline.Ref) error) error {
	return r.Do(ctx, func() error { return r.mem.Scan(ctx, fn) })
}

func (r *fakeRedis) Check(ctx context.Context) (scheduler.Status, error) {
	return r.status, r.Do(ctx, func() error { return nil })
}

var errRedis = errors.New("redis is away")

// start runs a monitor until the test ends and returns it with what stops it.
func start(t *testing.T, o Options) (*Scheduler, func()) {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m, run(t, m)
}

func run(t *testing.T, m *Scheduler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}
