package schedule

import (
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// remoteView is a primary whose messages are elsewhere: Expire passes requests on, and what
// became of them is reported later.
type remoteView struct {
	*fakeView

	mu    sync.Mutex
	asked []request // in order
}

type request struct {
	ref  deadline.Ref
	path deadline.Path
	at   deadline.Instant
}

func (v *remoteView) Expire(refs []deadline.Ref, path deadline.Path, _ bool, out []deadline.Answer) []deadline.Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, ref := range refs {
		v.asked = append(v.asked, request{ref, path, v.Now()})
		out = append(out, deadline.Answer{Outcome: deadline.Asked})
	}
	return out
}

// requests returns what was asked since the last call.
func (v *remoteView) requests() []request {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.asked
	v.asked = nil
	return all
}

// carryOut does what was asked for, and tells it.
func (v *remoteView) carryOut(r request) {
	answer := v.fakeBroker.Expire([]deadline.Ref{r.ref}, nil)[0]
	if answer.Outcome != deadline.Expired {
		return
	}
	v.fakeBroker.do(func() {
		if v.tracked[r.ref] {
			v.push(deadline.Event{Kind: deadline.Left, Ref: r.ref})
		}
	})
	v.expired.Publish([]deadline.Expiry{v.expiry(r.ref, answer.At, r.path)})
}

// TestAskedIsToldLater: a primary that passes requests on is asked once, its answer comes as an event and as one record on the stream, and a
// request of which nothing comes is repeated after half a minute.
func TestAskedIsToldLater(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		v := &remoteView{fakeView: b.view()}
		told := 0
		v.Expiries().Subscribe(deadline.Basic, func(batch []deadline.Expiry) { told += len(batch) })
		o.Primary, o.Registerer = v, reg
		m, _ := start(t, o)
		fired := func() float64 {
			return gather(t, reg, "curfew_deadlines_fired_total", "queue", "q1", "action", "dropped", "path", "eager")
		}

		ref := b.publish(1, 10*time.Second)
		time.Sleep(10*time.Second + 20*time.Millisecond)
		asked := v.requests()
		require.Len(t, asked, 1)
		require.Equal(t, ref, asked[0].ref)
		require.Less(t, asked[0].at.Sub(ref.Deadline), time.Millisecond, "it is asked at once")
		require.Equal(t, int64(1), m.Health().Pending, "nothing is known yet")
		require.Zero(t, told)

		time.Sleep(20 * time.Second)
		require.Empty(t, v.requests(), "the request is under way")
		v.carryOut(asked[0])
		time.Sleep(time.Second)
		require.Zero(t, m.Health().Pending)
		require.Equal(t, 1, told)
		require.Equal(t, 1.0, fired())
		require.Equal(t, 1.0, gather(t, reg, "curfew_fire_results_total", "outcome", "asked"))
		require.Zero(t, gather(t, reg, "curfew_fire_results_total", "outcome", "expired"))
		time.Sleep(time.Hour)
		require.Empty(t, v.requests(), "it is gone")

		lost := b.publish(1, time.Second)
		time.Sleep(2 * time.Second)
		require.Len(t, v.requests(), 1)
		time.Sleep(askedAfter)
		again := v.requests()
		require.Len(t, again, 1, "nothing came of the request")
		require.Equal(t, lost, again[0].ref)
		v.carryOut(again[0])
		v.carryOut(again[0]) // the first request has arrived, too
		time.Sleep(time.Hour)
		require.Empty(t, v.requests())
		require.Equal(t, 2, told)
		require.Equal(t, 2.0, fired(), "counted once each")
		require.Zero(t, m.Health().Pending)
	})
}
