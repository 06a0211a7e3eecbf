package schedule

import (
	"sync"
	"testing"
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

// manyTenants is a primary whose queues are each in a virtual host of its own.
type manyTenants struct{ *fakeView }

func (manyTenants) QueueName(queue uint64) (vhost, name string, ok bool) {
	return "v" + string(rune('0'+queue)), "q", true
}

// Expire takes a microsecond for each message.
func (v manyTenants) Expire(refs []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer {
	time.Sleep(time.Duration(len(refs)) * time.Microsecond)
	return v.fakeView.Expire(refs, path, wait, out)
}

// TestTurnsGoRoundTheVirtualHosts: very many deadlines of one virtual host that come at once do not
// hold up those of another.
func TestTurnsGoRoundTheVirtualHosts(t *testing.T) {
	eachSchedule(t, func(t *testing.T, r *fakeRedis, o Options) {
		if r != nil {
			return // what is not claimed yet fires from the index
		}
		b := newFakeBroker(t)
		o.Primary, o.Registerer = manyTenants{b.view()}, prometheus.NewRegistry()
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
			require.LessOrEqual(t, b.lateness(ref), 2*time.Millisecond.Microseconds())
		}
		require.Zero(t, m.Health().Pending)
		require.LessOrEqual(t, m.turns.Value(b.Now()), time.Millisecond)
	})
}
