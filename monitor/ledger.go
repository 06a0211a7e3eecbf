package monitor

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/monitor/alert"
	"curfew/scheduler"
)

const (
	// maxQueues bounds the queues that have metrics of their own; all others share
	// the label "_other".
	maxQueues   = 500
	otherQueues = "_other"
	// maxBooks bounds the queues whose counters are at hand. They are looked up
	// anew when that many have been seen.
	maxBooks = 4096
)

// missReason says why a deadline counts as missed by Curfew.
type missReason uint8

const (
	missLate     missReason = iota // later than the threshold, for no reason below
	missStalled                    // the schedule that was up did not fire
	missUnrouted                   // the dead letter was parked

	missReasons = int(iota)
)

func (r missReason) String() string {
	return [missReasons]string{"late", "stalled", "dlx_failed"}[r]
}

// books holds the counters of queues. Safe for concurrent use.
type books struct {
	queueName func(uint64) (vhost, name string, ok bool)
	offset    func() time.Duration   // of the primary's clock from the wall clock
	fired     *prometheus.CounterVec // vhost, queue, action, path
	missed    *prometheus.CounterVec // vhost, queue, reason
	recent    recent

	mu     sync.Mutex
	byID   map[uint64]*book // by incarnation
	labels map[[2]string]struct{}
}

// book holds what is counted for one queue. The counters are made when first used.
type book struct {
	vhost, queue string // its name
	labels       [2]string

	mu     sync.Mutex
	fired  [actions][paths]prometheus.Counter
	missed [missReasons]prometheus.Counter
}

// of finds the book of a queue. vhost and name are what it was called, for one that has been
// deleted since; they may be empty.
func (b *books) of(queue uint64, vhost, name string) *book {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.byID[queue]; k != nil {
		return k
	}
	if len(b.byID) >= maxBooks {
		clear(b.byID)
	}
	k := b.open(queue, vhost, name)
	b.byID[queue] = k
	return k
}

func (b *books) open(queue uint64, vhost, name string) *book {
	if v, n, ok := b.queueName(queue); ok {
		vhost, name = v, n
	} else if name == "" {
		return &book{vhost: otherQueues, queue: otherQueues, labels: [2]string{otherQueues, otherQueues}}
	}
	labels := [2]string{vhost, name}
	if _, known := b.labels[labels]; !known {
		if len(b.labels) >= maxQueues {
			labels = [2]string{otherQueues, otherQueues}
		} else {
			b.labels[labels] = struct{}{}
		}
	}
	return &book{vhost: vhost, queue: name, labels: labels}
}

func (b *books) countFired(k *book, a Action, p Path, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := &k.fired[a][p]
	if *c == nil {
		*c = b.fired.WithLabelValues(k.labels[0], k.labels[1], a.String(), p.String())
	}
	(*c).Add(float64(n))
}

func (b *books) countMissed(k *book, r missReason, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := &k.missed[r]
	if *c == nil {
		*c = b.missed.WithLabelValues(k.labels[0], k.labels[1], r.String())
	}
	(*c).Add(float64(n))
}

// ledger adds up expired messages, so that counters and alerts are touched once per
// run of messages of the same queue and fate. For one goroutine.
type ledger struct {
	books     *books
	histogram *latenessHistogram
	alerts    *alert.Alerts
	lateFrom  int64 // µs; from here on it is late

	lateness latenessCount
	queue    uint64
	action   Action
	path     Path
	run      alert.Tally // of queue, action and path
	late     alert.Tally // those of run that were late
	began    int64       // when the first of run expired, Unix µs
	offset   int64       // of the primary's clock from the wall clock, µs
	book     *book       // of queue
	each     bool        // messages of queue are told one by one

	holding   uint64      // the queue of those below
	held      alert.Tally // seen past their deadline for the first time, unacked
	heldAgain alert.Tally // seen so before
}

func (m *Monitor) newLedger() ledger {
	return ledger{
		books:     m.books,
		histogram: m.metrics.lateness,
		alerts:    m.options.Alerts,
		lateFrom:  m.options.MissThreshold.Microseconds(),
	}
}

// expired counts messages that expired; for any goroutine (Primary.Expiries).
func (m *Monitor) expired(batch []Expiry) {
	l := m.ledgers.Get().(*ledger)
	for i := range batch {
		x := &batch[i]
		l.add(x)
	}
	l.close()
	m.ledgers.Put(l)
}

// add counts one message that expired at the given instant. How late one came back to
// its queue is its consumer's doing, and no lateness of ours, nor is how early somebody
// wanted one gone.
func (l *ledger) add(x *Expiry) {
	s, at, a, p := x.Shadow, x.At, x.Action, x.Path
	if l.run.Count > 0 && (s.Queue != l.queue || a != l.action || p != l.path) {
		l.flush()
	}
	if l.run.Count == 0 {
		l.open(x)
	}
	lateness := max(at-s.Deadline, 0)
	l.count(&l.run, s.Deadline, lateness)
	if p != Requeue && p != Manual && p != Scheduled {
		l.lateness.add(lateness)
		if lateness >= l.lateFrom {
			l.count(&l.late, s.Deadline, lateness)
		}
	}
	if l.each {
		l.flush()
		l.merge()
	}
}

// open begins a run at an instant.
func (l *ledger) open(x *Expiry) {
	l.queue, l.action, l.path, l.began = x.Shadow.Queue, x.Action, x.Path, x.At
	l.book = l.books.of(l.queue, x.VHost, x.Queue)
	l.each = l.alerts.Each(l.book.vhost, l.book.queue)
}

// hold counts one message that a consumer holds at the given instant, past its
// deadline. It is looked at again every heldAfter; the first time counts.
func (l *ledger) hold(s scheduler.Shadow, at int64) {
	if l.holding != s.Queue {
		l.flushHeld()
	}
	l.holding = s.Queue
	if late := at - s.Deadline; late < heldAfter.Microseconds() {
		l.count(&l.held, s.Deadline, late)
	} else {
		l.count(&l.heldAgain, s.Deadline, late)
	}
}

// count adds a message to what people are told, in ms of the wall clock.
func (l *ledger) count(t *alert.Tally, deadline, lateness int64) {
	if t.Count == 0 {
		l.offset = l.books.offset().Microseconds()
	}
	t.Add(scheduler.Millis(deadline-l.offset), scheduler.Millis(lateness))
}

func (l *ledger) flushHeld() {
	if l.held.Count+l.heldAgain.Count == 0 {
		return
	}
	k := l.books.of(l.holding, "", "")
	event := alert.Event{Kind: alert.HeldPastDeadline, VHost: k.vhost, Queue: k.queue, Tally: l.held}
	l.alerts.Record(event)
	event.Again, event.Tally = true, l.heldAgain
	l.alerts.Record(event)
	l.held, l.heldAgain = alert.Tally{}, alert.Tally{}
}

// close hands on what was added since the last call.
func (l *ledger) close() {
	l.flushHeld()
	if l.run.Count == 0 {
		return
	}
	l.flush()
	l.merge()
}

func (l *ledger) merge() {
	l.histogram.merge(&l.lateness)
	l.lateness = latenessCount{}
}

func (l *ledger) flush() {
	k := l.book
	if l.path == Scheduled {
		l.alerts.Record(alert.Event{Kind: alert.DeadLetterUnroutable, VHost: k.vhost, Queue: k.queue, Action: l.action.String(), Tally: l.run})
		l.run = alert.Tally{}
		return
	}
	l.books.countFired(k, l.action, l.path, l.run.Count)
	l.books.recent.add(Miss{
		At: scheduler.Millis(l.began - l.offset), VHost: k.vhost, Queue: k.queue, Action: l.action.String(), Path: l.path.String(),
		Count: l.run.Count, WorstMillis: l.run.WorstMillis, Late: l.late.Count > 0,
	})
	event := alert.Event{
		Kind:   alert.DeadlineMissed,
		VHost:  k.vhost,
		Queue:  k.queue,
		Action: l.action.String(),
		Tally:  l.run,
	}
	if l.path != Manual { // else somebody wanted that
		l.alerts.Record(event)
	}
	if l.action == Parked {
		l.books.countMissed(k, missUnrouted, l.run.Count)
		event.Kind = alert.DeadLetterUnroutable
		l.alerts.Record(event)
	}
	if l.path == Stalled {
		l.books.countMissed(k, missStalled, l.run.Count)
	}
	if l.late.Count > 0 {
		if l.path != Stalled {
			l.books.countMissed(k, missLate, l.late.Count)
		}
		event.Kind, event.Tally = alert.DeadlineFiredLate, l.late
		l.alerts.Record(event)
	}
	l.run, l.late = alert.Tally{}, alert.Tally{}
}
