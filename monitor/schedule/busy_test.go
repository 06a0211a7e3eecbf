package schedule

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// busyView is a primary of which one queue may be in use for some time.
type busyView struct {
	*fakeView

	mu    sync.Mutex
	queue uint64        // 0: none
	free  chan struct{} // closed when it is in use no more
	waits int           // requests that waited for it
}

func (v *busyView) Expire(refs []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer {
	for i := range refs {
		one := refs[i : i+1]
		v.mu.Lock()
		inUse, free := v.queue == one[0].Queue, v.free
		if inUse && wait {
			v.waits++
		}
		v.mu.Unlock()
		switch {
		case inUse && !wait:
			out = append(out, deadline.Answer{Outcome: deadline.Busy})
			continue
		case inUse:
			<-free
		}
		out = v.fakeView.Expire(one, path, wait, out)
	}
	return out
}

func (v *busyView) use(queue uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue, v.free = queue, make(chan struct{})
}

func (v *busyView) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = 0
	close(v.free)
}

// TestFiringWaitsForNoQueue: while a queue is in use, the deadlines of others fire on time, and its own
// as soon as it is free, once each.
func TestFiringWaitsForNoQueue(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		v := &busyView{fakeView: b.view()}
		o.Primary, o.Registerer = v, prometheus.NewRegistry()
		m, _ := start(t, o)
		var mine, others []deadline.Ref
		for i := range 100 {
			ttl := time.Second + time.Duration(i)*time.Millisecond
			mine, others = append(mine, b.publish(1, ttl)), append(others, b.publish(2, ttl))
		}
		time.Sleep(900 * time.Millisecond)
		v.use(1)
		time.Sleep(time.Second)
		for i := range others {
			require.LessOrEqual(t, b.lateness(others[i]), time.Millisecond.Microseconds())
			require.GreaterOrEqual(t, b.lateness(others[i]), int64(0))
			require.Equal(t, int64(-1), b.lateness(mine[i]))
		}
		v.mu.Lock()
		require.Equal(t, 1, v.waits, "one request waits for the queue")
		v.mu.Unlock()
		freed := b.Now()
		v.release()
		time.Sleep(10 * time.Millisecond)
		for _, ref := range mine {
			require.LessOrEqual(t, b.expiredAt(ref).Sub(freed), time.Millisecond)
			require.GreaterOrEqual(t, b.lateness(ref), int64(0))
		}
		time.Sleep(5 * time.Second)
		require.Zero(t, m.Health().Pending)
		require.Equal(t, 2*len(mine), len(b.left))
	})
}

// TestBusyLeaseThatEnds: a queue that is in use for longer than a lease is asked for again, and each of
// its messages still expires once.
func TestBusyLeaseThatEnds(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		v := &busyView{fakeView: b.view()}
		o.Primary, o.Registerer = v, prometheus.NewRegistry()
		m, _ := start(t, o)
		ref := b.publish(1, time.Second)
		v.use(1)
		time.Sleep(30 * time.Second)
		require.Equal(t, int64(-1), b.lateness(ref))
		v.release()
		time.Sleep(10 * time.Millisecond)
		require.NotEqual(t, int64(-1), b.lateness(ref))
		time.Sleep(5 * time.Second)
		require.Zero(t, m.Health().Pending)
	})
}

// crowdedView is a primary that takes time, and of which queue 1 is in use every now and then.
type crowdedView struct {
	*fakeView
	asked atomic.Int64
}

func (v *crowdedView) Expire(refs []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer {
	time.Sleep(time.Duration(len(refs)) * 10 * time.Microsecond)
	inUse := v.asked.Add(1)%3 == 0
	if inUse && wait {
		time.Sleep(5 * time.Millisecond)
	}
	for i, ref := range refs {
		if inUse && !wait && ref.Queue == 1 {
			out = append(out, deadline.Answer{Outcome: deadline.Busy})
		} else {
			out = v.fakeView.Expire(refs[i:i+1], path, wait, out)
		}
	}
	return out
}

// TestAQueueExpiresInItsOrder, however many are due at once, and though others use it.
func TestAQueueExpiresInItsOrder(t *testing.T) {
	eachSchedule(t, func(t *testing.T, r *fakeRedis, o Options) {
		b := newFakeBroker(t)
		o.Primary = &crowdedView{fakeView: b.view()}
		m, _ := start(t, o)
		const n = 20_000
		b.do(func() {
			for i := range n {
				b.enqueue(deadline.Ref{Deadline: b.Now() + 2_000_000 + deadline.Instant(i/1000), Queue: 1 + uint64(i%3)})
			}
		})
		time.Sleep(10 * time.Second)
		require.Zero(t, b.queued())
		require.Zero(t, m.Health().Pending)
		for queue := range uint64(3) {
			other := func(r deadline.Ref) bool { return r.Queue != queue+1 }
			require.Equal(t, slices.DeleteFunc(slices.Clone(b.order), other), slices.DeleteFunc(slices.Clone(b.expired), other))
		}
	})
}

// manyTenants is a primary whose queues are each in a virtual host of its own, or all in one.
type manyTenants struct {
	*fakeView
	one bool
}

func (v manyTenants) QueueName(queue uint64) (vhost, name string, ok bool) {
	if v.one {
		return "/", "q", true
	}
	return "v" + string(rune('0'+queue)), "q", true
}

// Expire takes a microsecond for each message.
func (v manyTenants) Expire(refs []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer {
	time.Sleep(time.Duration(len(refs)) * time.Microsecond)
	return v.fakeView.Expire(refs, path, wait, out)
}

// TestTurnsGoRound: very many deadlines of one virtual host, or queue, that come at once do not hold up those of another.
func TestTurnsGoRound(t *testing.T) {
	for name, one := range map[string]struct {
		host bool
		late time.Duration
	}{"virtual hosts": {false, 2 * time.Millisecond}, "queues of one": {true, 10 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeBroker(t)
				o := Options{Primary: manyTenants{b.view(), one.host}, Registerer: prometheus.NewRegistry()}
				m, _ := start(t, o)
				for range 50_000 {
					b.publish(1, 10*time.Second)
				}
				time.Sleep(9990 * time.Millisecond)
				var others []deadline.Ref
				for i := range 20 {
					others = append(others, b.publish(2, time.Duration(10+2*i)*time.Millisecond))
				}
				time.Sleep(5 * time.Second)
				for _, ref := range others {
					require.LessOrEqual(t, b.lateness(ref), one.late.Microseconds())
				}
				require.Zero(t, m.Health().Pending)
				require.LessOrEqual(t, m.turns.Value(b.Now()), time.Millisecond)
			})
		})
	}
}
