package monitor

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
	"curfew/monitor/alert"
)

// HeldAfter is how long after its deadline a message that a consumer holds is counted again, and again.
const HeldAfter = 30 * time.Second

// heldSeconds is how long a held message counts: until it is counted again.
const heldSeconds = int64(HeldAfter / time.Second)

var heldDesc = prometheus.NewDesc("curfew_deadlines_held",
	"Messages that consumers held past their deadlines in the last 30 s. They expire if they are returned.", []string{"vhost", "queue"}, nil)

// heldCounts counts, by queue, the messages that consumers hold past their deadlines. Each
// is counted every HeldAfter, so those of the last HeldAfter are the messages that are held now,
// and some that have been acked since. Safe for concurrent use. The zero value is ready.
type heldCounts struct {
	now func() time.Time // nil: time.Now

	mu      sync.Mutex
	byQueue map[[2]string]*[heldSeconds]heldSecond // by labels; by second modulo their count
}

// heldSecond is how many were counted in one second.
type heldSecond struct{ unix, n int64 }

func (h *heldCounts) second() int64 {
	if h.now != nil {
		return h.now().Unix()
	}
	return time.Now().Unix()
}

// add counts n messages of a queue that are held now.
func (h *heldCounts) add(labels [2]string, n int64) {
	second := h.second()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byQueue == nil {
		h.byQueue = make(map[[2]string]*[heldSeconds]heldSecond)
	}
	ring := h.byQueue[labels]
	if ring == nil {
		ring = new([heldSeconds]heldSecond)
		h.byQueue[labels] = ring
	}
	if at := &ring[second%heldSeconds]; at.unix == second {
		at.n += n
	} else {
		*at = heldSecond{second, n}
	}
}

// counts returns the messages held, by queue. A queue that has no held messages left is listed
// with 0 once, and then forgotten.
func (h *heldCounts) counts() map[[2]string]int64 {
	second := h.second()
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := make(map[[2]string]int64, len(h.byQueue))
	for labels, ring := range h.byQueue {
		counts[labels] = 0
		for _, at := range ring {
			if second-at.unix < heldSeconds {
				counts[labels] += at.n
			}
		}
		if counts[labels] == 0 {
			delete(h.byQueue, labels)
		}
	}
	return counts
}

// Describe implements prometheus.Collector.
func (*heldCounts) Describe(out chan<- *prometheus.Desc) { out <- heldDesc }

// Collect implements prometheus.Collector.
func (h *heldCounts) Collect(out chan<- prometheus.Metric) {
	for labels, n := range h.counts() {
		out <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}

// Holds adds up messages that consumers hold past their deadlines, so that counters and alerts are updated once
// per run of messages of one queue. Not safe for concurrent use.
type Holds struct {
	m            *Monitor
	queue        uint64
	first, again alert.Stats // seen for the first time; seen before
}

// NewHolds returns a Holds without a message.
func (m *Monitor) NewHolds() *Holds { return &Holds{m: m} }

// Add counts one message that a consumer holds past its deadline at the given instant. It is to be
// counted again every HeldAfter. Alerts count each message once.
func (h *Holds) Add(s deadline.Ref, at deadline.Instant) {
	if h.queue != s.Queue {
		h.Close()
	}
	h.queue = s.Queue
	late, stats := at.Sub(s.Deadline), &h.first
	if late >= HeldAfter {
		stats = &h.again
	}
	stats.Add(s.Deadline.Add(-h.m.options.Source.ClockOffset()), late)
}

// Close records what was added since the last call.
func (h *Holds) Close() {
	n := h.first.Count + h.again.Count
	if n == 0 {
		return
	}
	q := h.m.counters.of(h.queue, "", "")
	h.m.counters.held.add(q.labels, n)
	event := alert.Event{Kind: alert.HeldPastDeadline, VHost: q.vhost, Queue: q.queue, Stats: h.first}
	h.m.options.Alerts.Record(event)
	event.Again, event.Stats = true, h.again
	h.m.options.Alerts.Record(event)
	h.first, h.again = alert.Stats{}, alert.Stats{}
}
