package rabbitmq

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	// maxQueues bounds the queues that have metrics of their own; all others share the label "_other".
	maxQueues   = 500
	otherQueues = "_other"
)

var (
	queuesDesc  = prometheus.NewDesc("curfew_rabbitmq_queues", "Watched queues by mode and state. A kept queue counts on the Curfew that has its lease.", []string{"mode", "state"}, nil)
	notKeptDesc = prometheus.NewDesc("curfew_rabbitmq_queue_not_kept", "1 for a queue that a rule wants kept, and that is refused, has not been kept for 10 s, or has messages that nobody can take (stranded).", []string{"vhost", "queue", "reason"}, nil)
	overdueDesc = prometheus.NewDesc("curfew_rabbitmq_overdue_messages", "Messages of an observed queue that have missed their deadlines and still wait. Only where the observer runs.", []string{"vhost", "queue"}, nil)
	heldDesc    = prometheus.NewDesc("curfew_rabbitmq_held_messages", "Messages that the keeper of a queue holds.", []string{"vhost", "queue"}, nil)
	bytesDesc   = prometheus.NewDesc("curfew_rabbitmq_held_bytes", "Bodies of the messages that the keeper of a queue holds. RabbitMQ has them.", []string{"vhost", "queue"}, nil)
	intendDesc  = prometheus.NewDesc("curfew_rabbitmq_expiry_intended", "1 for a queue that a rule wants kept because its messages are meant to expire: an expiry is not a miss. On every Curfew.", []string{"vhost", "queue"}, nil)
	leasesDesc  = prometheus.NewDesc("curfew_rabbitmq_leases", "Queues whose lease this Curfew has; without Redis, queues that it keeps.", nil, nil)
	redisDesc   = prometheus.NewDesc("curfew_rabbitmq_redis_up", "0 if leases cannot be renewed or taken. Absent without Redis.", nil, nil)
	ageDesc     = prometheus.NewDesc("curfew_rabbitmq_inventory_age_seconds", "Since the queues of RabbitMQ were last looked at.", nil, nil)
	lagDesc     = prometheus.NewDesc("curfew_rabbitmq_observer_lag_seconds", "How far the observer is behind in reading its taps. Only where it runs.", []string{"vhost"}, nil)
)

// counters are the metrics that only grow.
type counters struct {
	releases   *prometheus.CounterVec
	unknownAge prometheus.Counter
	late       prometheus.Histogram

	mu    *sync.Mutex
	named map[string]bool // queues with a label of their own
}

func newCounters() counters {
	return counters{
		releases: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "curfew_rabbitmq_releases_total",
			Help: "Times that a keeper gave back everything it held."}, []string{"vhost", "queue", "reason"}),
		unknownAge: prometheus.NewCounter(prometheus.CounterOpts{Name: "curfew_rabbitmq_unknown_age_total",
			Help: "Messages taken without knowing when they entered their queue. They may be late."}),
		late: newLateness(), mu: new(sync.Mutex), named: make(map[string]bool),
	}
}

// label returns the label of a queue in metrics.
func (c *counters) label(queue string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.named[queue] {
		if len(c.named) >= maxQueues {
			return otherQueues
		}
		c.named[queue] = true
	}
	return queue
}

// forget drops the labels of queues that are gone, so that there is room for others.
func (c *counters) forget(gone func(queue string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for queue := range c.named {
		if gone(queue) {
			delete(c.named, queue)
			c.releases.DeletePartialMatch(prometheus.Labels{"queue": queue})
		}
	}
}

// Describe implements prometheus.Collector.
func (p *Primary) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queuesDesc, notKeptDesc, overdueDesc, heldDesc, bytesDesc, intendDesc, leasesDesc, redisDesc, ageDesc, lagDesc} {
		out <- d
	}
	p.counts.releases.Describe(out)
	p.counts.unknownAge.Describe(out)
	p.counts.late.Describe(out)
}

// Collect implements prometheus.Collector.
func (p *Primary) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	p.collectQueues(gauge)
	p.mu.Lock()
	p.counts.forget(func(queue string) bool { return p.queues[queue] == nil })
	for _, q := range p.queues {
		if q.keeper != nil {
			q.changed(q.keeper.Status())
		}
	}
	if !p.lookedAt.IsZero() {
		gauge(ageDesc, time.Since(p.lookedAt).Seconds())
	}
	if p.observing.observer != nil {
		gauge(lagDesc, p.observing.observer.Lag().Seconds(), p.vhost)
	}
	p.mu.Unlock()
	if p.redis != nil {
		up := 1.0
		if p.group.trouble().err != nil {
			up = 0
		}
		gauge(redisDesc, up)
	}
	p.counts.releases.Collect(out)
	p.counts.unknownAge.Collect(out)
	p.counts.late.Collect(out)
}

// series is one of a metric, by its labels in order.
type series struct {
	of     *prometheus.Desc
	labels [3]string // empty: no more
}

// collectQueues collects the metrics that come from the status of the queues.
func (p *Primary) collectQueues(gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	s := p.Status()
	o, _ := p.observing.now()
	observes := o != nil // only one Curfew does, and counts the queues that nobody keeps
	values := map[series]float64{{of: leasesDesc}: 0}
	for i := range s.Queues {
		q := &s.Queues[i]
		its := func(d *prometheus.Desc, more string) series {
			return series{d, [3]string{s.VHost, p.counts.label(q.Queue), more}}
		}
		if q.Here {
			values[series{of: leasesDesc}]++
			values[its(heldDesc, "")] += float64(q.Held)
			values[its(bytesDesc, "")] += float64(q.HeldBytes)
		}
		if q.Here || !q.running && observes {
			values[series{queuesDesc, [3]string{q.Mode, q.State}}]++
		}
		if observes && q.Observed != nil && q.Observed.Overdue > 0 {
			values[its(overdueDesc, "")] += float64(q.Observed.Overdue)
		}
		if rule, _ := p.rule(q.Queue); rule.ExpiryIntended() {
			values[its(intendDesc, "")] = 1
		}
		if q.Code != "" {
			values[its(notKeptDesc, q.Code)] = 1
		}
	}
	for key, value := range values {
		n := slices.IndexFunc(append(key.labels[:], ""), func(label string) bool { return label == "" })
		gauge(key.of, value, key.labels[:n]...)
	}
}

// newLateness returns a histogram of how late messages were given back: with the buckets of the monitor's, and finer ones below 100 ms.
func newLateness() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "curfew_rabbitmq_kept_lateness_seconds",
		Help:    "How long after its deadline a message of a kept queue was given back to expire; without messages of unknown age.",
		Buckets: []float64{.001, .002, .003, .005, .007, .01, .015, .02, .03, .05, .075, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}})
}

// within returns the lowest upper bound, in ms, that this share of the messages did not exceed; nil: there is none.
func within(h prometheus.Histogram, share float64) *float64 {
	var m dto.Metric
	_ = h.Write(&m) // it never fails
	for _, b := range m.Histogram.Bucket {
		if n := b.GetCumulativeCount(); n > 0 && float64(n) >= share*float64(m.Histogram.GetSampleCount()) {
			return new(math.Round(b.GetUpperBound() * 1000))
		}
	}
	return nil
}
