package monitor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/monitor/audit"
	"curfew/monitor/schedule"
	"curfew/scheduler"
)

var errAway = errors.New("away")

// absent is a schedule that is away for as long as the test lasts, so the index fires.
type absent struct{ *scheduler.Index }

func (absent) Epoch(context.Context) (bool, error)                             { return false, errAway }
func (absent) Refresh(context.Context) error                                   { return errAway }
func (absent) Begin(context.Context) error                                     { return errAway }
func (absent) Scan(context.Context, func([]deadline.Ref) error) error          { return errAway }
func (absent) Check(context.Context) (scheduler.Status, error)                 { return scheduler.Status{}, errAway }
func (absent) Apply(context.Context, []deadline.Ref, []deadline.Ref) error     { return errAway }
func (absent) Settle(context.Context, []deadline.Ref, []scheduler.Later) error { return errAway }

// fate is what every subscriber must report about an expiry.
type fate struct {
	queue, path, action string
	lateMillis          int64
}

// agreement is a broker whose expiries go to a stream, the audit and the monitor's counters, and whose publisher wants receipts.
type agreement struct {
	*testBroker
	records map[string]fate // by message id
	late    time.Duration   // the sum of those that the histogram counts
	counted int             // how many these are
	metrics *prometheus.Registry
	log     *audit.Log
}

// newAgreement makes everything. The monitor counts, and does not run yet.
func newAgreement(t *testing.T) *agreement {
	a := &agreement{records: map[string]fate{}, metrics: prometheus.NewRegistry()}
	var err error
	a.log, err = audit.Open(audit.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	var expiries deadline.Stream
	expiries.Subscribe(deadline.WithMessage, a.take)
	expiries.Subscribe(deadline.WithMessage, a.log.Expired)
	var reads atomic.Int64 // the clock goes on between any two: reading it again gives another lateness
	clock := func() int64 { return time.Now().UnixNano() + reads.Add(1)*int64(700*time.Microsecond) }
	b, err := broker.New(broker.Options{Clock: clock, Expiries: &expiries})
	require.NoError(t, err)
	vh, _ := b.VHost("/")
	a.testBroker = &testBroker{t: t, broker: b, vh: vh, publisher: vh.NewPublisher("guest")}
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	a.monitor, err = schedule.New(schedule.Options{Primary: b.Deadlines(), Redis: absent{scheduler.NewIndex(nil)}, Registerer: a.metrics})
	require.NoError(t, err)
	return a
}

func (a *agreement) take(batch []deadline.Expiry) {
	for i := range batch {
		e := &batch[i]
		id := string(e.MessageID)
		if _, twice := a.records[id]; twice {
			a.t.Errorf("%s is told twice", id)
		}
		a.records[id] = fate{e.Queue, e.Path.String(), e.Action.String(), int64(deadline.RoundUp(e.Lateness()))}
		if e.Path != deadline.Requeued && e.Path != deadline.Manual {
			a.late += e.Lateness()
			a.counted++
		}
	}
}

// publish asks for a receipt, a few µs later than a whole ms.
func (a *agreement) publish(queue, id string, ttl time.Duration) {
	time.Sleep(1_234_567 * time.Nanosecond)
	p := amqp.Properties{MessageID: id, ReplyTo: "receipts", Expiration: fmt.Sprint(ttl.Milliseconds()), Headers: amqp.Table{"x-expiry-receipt": true}}
	_, err := a.publisher.Add(&broker.Publication{RoutingKey: []byte(queue), Properties: p.Append(nil)})
	require.NoError(a.t, err)
	a.publisher.Flush(nil)
}

// run runs something until the test ends.
func (a *agreement) run(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(a.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run(ctx)
	}()
	a.t.Cleanup(func() { cancel(); <-ended })
}

// everyWay has messages expire by every path, and with every action.
func (a *agreement) everyWay() {
	t := a.t
	dead := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
	plain, dying := a.declare("plain", nil), a.declare("dying", dead)
	a.declare("lost", amqp.Table{"x-dead-letter-exchange": "none"})
	a.declare("dead", nil)

	a.publish("plain", "lazy, dropped", 10*time.Millisecond)
	a.publish("dying", "lazy, dead-lettered", 10*time.Millisecond)
	time.Sleep(1234 * time.Millisecond)
	for _, q := range []*broker.Queue{plain, dying} {
		found, err := q.Messages.Get(true, func(*broker.Delivery) {})
		require.NoError(t, err)
		require.False(t, found)
	}
	synctest.Wait()

	a.run(a.monitor.Run)
	synctest.Wait()
	for _, name := range []string{"plain", "dying", "lost"} {
		a.publish(name, "index, "+name, 300*time.Millisecond)
	}
	a.publish("plain", "requeued", 500*time.Millisecond)
	back := a.get(plain, false) // "index, plain", which comes back in time
	requeued := a.get(plain, false)
	plain.Messages.Settle(broker.Requeue, []queue.Seq{back.Seq}, nil)
	time.Sleep(900*time.Millisecond + 321*time.Microsecond)
	plain.Messages.Settle(broker.Requeue, []queue.Seq{requeued.Seq}, nil)
	a.publish("dying", "manual", time.Hour)
	var refs []deadline.Ref
	require.NoError(t, a.broker.Deadlines().Snapshot(t.Context(), func(page []deadline.Ref) error {
		refs = append(refs, page...)
		return nil
	}))
	require.Len(t, refs, 1)
	require.Equal(t, deadline.Expired, a.broker.FireNow(refs[0], false))
	time.Sleep(time.Minute)
}

// receipts are what the publisher was told, by message id.
func (a *agreement) receipts(q *broker.Queue) map[string]fate {
	all := map[string]fate{}
	for {
		found, err := q.Messages.Get(true, func(d *broker.Delivery) {
			var r struct {
				MessageID  string `json:"message_id"`
				Queue      string `json:"queue"`
				Outcome    string `json:"outcome"`
				LatenessMS int64  `json:"lateness_ms"`
			}
			require.NoError(a.t, json.Unmarshal(d.Message.Body, &r))
			all[r.MessageID] = fate{queue: r.Queue, action: r.Outcome, lateMillis: r.LatenessMS}
		})
		require.NoError(a.t, err)
		if !found {
			return all
		}
	}
}

// TestAllReportsOfAnExpiryAgree: over one run, the stream, the audit, the receipts and the counters have the same expiries, each once, with the
// same path, action and lateness.
func TestAllReportsOfAnExpiryAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgreement(t)
		receipts := a.declare("receipts", nil)
		a.run(a.log.Run)
		a.everyWay()

		var all, paths []string
		for id, r := range a.records {
			all = append(all, id)
			paths = append(paths, r.path+" "+r.action)
		}
		slices.Sort(all)
		require.Equal(t, []string{"index, dying", "index, lost", "index, plain", "lazy, dead-lettered", "lazy, dropped", "manual", "requeued"}, all)
		for _, want := range []string{"index dropped", "index dead_lettered", "index parked", "lazy dropped", "lazy dead_lettered", "requeue dropped", "manual dead_lettered"} {
			require.Contains(t, paths, want)
		}
		require.GreaterOrEqual(t, a.records["lazy, dropped"].lateMillis, int64(1226))
		require.Zero(t, a.records["manual"].lateMillis)

		audited := map[string]fate{}
		for r, err := range audit.Search(t.Context(), a.log.Dir, audit.Query{}) {
			require.NoError(t, err)
			audited[string(r.MessageID)] = fate{r.Queue, r.Path, r.Outcome, r.LateMillis}
		}
		require.Equal(t, a.records, audited, "the audit")

		withoutPath := map[string]fate{}
		for id, r := range a.records {
			r.path = ""
			withoutPath[id] = r
		}
		require.Equal(t, withoutPath, a.receipts(receipts), "the receipts")

		counts := map[fate]int{}
		for _, r := range a.records {
			counts[fate{queue: r.queue, path: r.path, action: r.action}]++
		}
		fired, sum, n := a.counters()
		require.Equal(t, counts, fired, "the counters")
		require.Equal(t, a.counted, n, "the histogram")
		require.InDelta(t, a.late.Seconds(), sum, 1e-9, "the histogram")
	})
}

// counters are what the monitor's metrics say: how many expired by queue, path and action, and the sum and number of what the histogram of
// lateness counts.
func (a *agreement) counters() (fired map[fate]int, sum float64, n int) {
	families, err := a.metrics.Gather()
	require.NoError(a.t, err)
	fired = map[fate]int{}
	for _, f := range families {
		switch f.GetName() {
		case "curfew_deadlines_fired_total":
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				fired[fate{queue: labels["queue"], path: labels["path"], action: labels["action"]}] = int(m.GetCounter().GetValue())
			}
		case "curfew_deadline_lateness_seconds":
			h := f.GetMetric()[0].GetHistogram()
			sum, n = h.GetSampleSum(), int(h.GetSampleCount())
		}
	}
	return fired, sum, n
}
